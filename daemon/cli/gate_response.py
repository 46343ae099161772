"""What counts as a decision of the gate, and how a command ends by it.

It keeps true: what contradicts itself, or is of another service, is no decision. So a pipeline goes
on only where the gate said so in every field that speaks of it.
"""

from typing import Annotated, Final
from uuid import UUID

import msgspec

from ...storage.gate.rules.gate import GateAction, GateState
from .api_client import read_json

Figure = float | int | str
# Five clauses over four windows are twenty.
REASONS_MOST: Final = 200

# What may be done of what was seen, before any override.
_ACTIONS: Final[dict[GateState, frozenset[GateAction | None]]] = {
    GateState.ALLOW: frozenset({GateAction.ALLOW}),
    GateState.WARN: frozenset({GateAction.WARN}),
    GateState.BLOCK: frozenset({GateAction.BLOCK}),
    GateState.UNKNOWN: frozenset({GateAction.WARN, GateAction.BLOCK}),
    GateState.NOT_CONFIGURED: frozenset({None}),
}
_EXIT: Final = {GateAction.ALLOW: 0, GateAction.WARN: 0, GateAction.BLOCK: 2, None: 4}


class NoDecision(Exception):
    """What came is no decision; the text says why."""


class PrintedReason(msgspec.Struct, frozen=True, kw_only=True):
    """A clause that matched or could not be decided. A later version may say words that this one
    does not know: they are shown as they are."""

    code: str
    clause: str | None = None
    assignment: str | None = None
    value: Figure | None = None
    window: str | None = None
    source: str | None = None

    @property
    def is_undecided(self) -> bool:
        """One that matched has its clause for a code."""
        return self.clause is not None and self.code != self.clause


class PrintedOverride(msgspec.Struct, frozen=True, kw_only=True):
    actor_label: str
    reason: str
    expires_at: str


class PrintedDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a decision that is acted on and told; what else it says is passed over."""

    decision_id: UUID
    evaluated_at: str
    service_id: UUID
    service_slug: str
    service_name: str
    state: GateState
    reasons: Annotated[list[PrintedReason], msgspec.Meta(max_length=REASONS_MOST)]
    action: GateAction | None = None
    unoverridden_action: GateAction | None = None
    override_id: UUID | None = None
    override: PrintedOverride | None = None
    policy_revision: int | None = None
    policy_source: str | None = None
    unknown_behavior: str | None = None
    seal_lag: float | None = None
    max_seal_lag_seconds: int | None = None

    @property
    def intended(self) -> GateAction | None:
        """What would be done without an override."""
        if self.unoverridden_action is not None:
            return self.unoverridden_action
        let_through = self.override_id is not None and self.action is GateAction.ALLOW
        return GateAction.BLOCK if let_through and self.state in _BLOCKABLE else self.action

    @property
    def is_overridden(self) -> bool:
        return self.action is not self.intended

    @property
    def exit_status(self) -> int:
        return _EXIT[self.action]


_BLOCKABLE: Final = frozenset({GateState.BLOCK, GateState.UNKNOWN})


def read_decision(body: bytes, service: UUID) -> PrintedDecision:
    """The decision of that service; `NoDecision` where the body is none."""
    decision = read_json(body, PrintedDecision)
    if decision is None:
        raise NoDecision("what the server answered is no decision")
    fault = _fault(decision, service)
    if fault is not None:
        raise NoDecision(f"what the server answered contradicts itself: {fault}")
    return decision


def _fault(decision: PrintedDecision, service: UUID) -> str | None:
    """Why it is no decision of that service; None where it is one."""
    if decision.service_id != service:
        return "it is of another service"
    intended = decision.intended
    if intended not in _ACTIONS[decision.state]:
        return f"{_reason_text(intended)} does not follow from {decision.state}"
    behavior = decision.unknown_behavior
    if decision.state is GateState.UNKNOWN and behavior not in (None, str(intended).lower()):
        return f"{intended} is not what the policy does where it is unknown"
    if decision.is_overridden and not _may_override(decision):
        done, due = _reason_text(decision.action), _reason_text(intended)
        return f"{done} where {due} was due, by no override"
    return None


def _may_override(decision: PrintedDecision) -> bool:
    """An override lets through what would be blocked, and nothing else."""
    return (
        decision.override_id is not None
        and decision.intended is GateAction.BLOCK
        and decision.action is GateAction.ALLOW
    )


def _reason_text(action: GateAction | None) -> str:
    return "no action" if action is None else str(action)
