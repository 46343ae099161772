"""Gate marks."""

from typing import Final

from ...storage.gate.rules.gate import State

MARKS: Final = {
    State.ALLOW: "up",
    State.WARN: "degraded",
    State.BLOCK: "down",
    State.UNKNOWN: "unknown",
    State.NOT_CONFIGURED: "pending",
}

STATE_WORDS: Final = {
    State.ALLOW: "ALLOW",
    State.WARN: "WARN",
    State.BLOCK: "BLOCK",
    State.UNKNOWN: "UNKNOWN",
    State.NOT_CONFIGURED: "Not configured",
}
