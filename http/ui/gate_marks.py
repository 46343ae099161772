"""Mark and word of each gate state."""

from typing import Final

from ...storage.gate.rules.gate import GateState

MARKS: Final = {
    GateState.ALLOW: "up",
    GateState.WARN: "degraded",
    GateState.BLOCK: "down",
    GateState.UNKNOWN: "unknown",
    GateState.NOT_CONFIGURED: "pending",
}

STATE_WORDS: Final = {
    GateState.ALLOW: "ALLOW",
    GateState.WARN: "WARN",
    GateState.BLOCK: "BLOCK",
    GateState.UNKNOWN: "UNKNOWN",
    GateState.NOT_CONFIGURED: "Not configured",
}
