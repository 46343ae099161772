"""Decoding of a gate decision, and the exit status that follows from it.

Invariant: a decision that contradicts itself or belongs to another service is rejected. A pipeline
continues only if all fields of the decision agree on it.
"""

from typing import Annotated, Final
from uuid import UUID

import msgspec

from ...storage.gate.rules.gate import GateAction, GateState
from .api_client import read_json

Figure = float | int | str
# Five clauses over four windows give 20 reasons.
REASONS_MOST: Final = 200

# Actions that can follow from a state, before any override.
_ACTIONS: Final[dict[GateState, frozenset[GateAction | None]]] = {
    GateState.ALLOW: frozenset({GateAction.ALLOW}),
    GateState.WARN: frozenset({GateAction.WARN}),
    GateState.BLOCK: frozenset({GateAction.BLOCK}),
    GateState.UNKNOWN: frozenset({GateAction.WARN, GateAction.BLOCK}),
    GateState.NOT_CONFIGURED: frozenset({None}),
}
_EXIT: Final = {GateAction.ALLOW: 0, GateAction.WARN: 0, GateAction.BLOCK: 2, None: 4}


class NoDecision(Exception):
    """The response is not a valid decision. The message is the reason."""


class PrintedReason(msgspec.Struct, frozen=True, kw_only=True):
    """Clause that matched or was unavailable.

    Fields are plain strings, so that codes of a later server version are printed unchanged."""

    code: str
    clause: str | None = None
    assignment: str | None = None
    value: Figure | None = None
    window: str | None = None
    source: str | None = None

    @property
    def is_undecided(self) -> bool:
        """Whether the clause was unavailable. The code of a matched clause is the clause."""
        return self.clause is not None and self.code != self.clause


class PrintedOverride(msgspec.Struct, frozen=True, kw_only=True):
    actor_label: str
    reason: str
    expires_at: str


class PrintedDecision(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of a decision that the command uses or prints. Other fields are ignored."""

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
        """The action without an override, derived if the server does not send it."""
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


def read_decision(body: bytes, service: UUID | None) -> PrintedDecision:
    """Decodes the decision of the service. Raises NoDecision.

    Any service is accepted if `service` is None, because it was named by its slug.
    """
    decision = read_json(body, PrintedDecision)
    if decision is None:
        raise NoDecision("the response is not a gate decision")
    fault = _fault(decision, service)
    if fault is not None:
        raise NoDecision(f"the decision is inconsistent: {fault}")
    return decision


def _fault(decision: PrintedDecision, service: UUID | None) -> str | None:
    """Returns the contradiction in the decision; None if it is consistent."""
    if service is not None and decision.service_id != service:
        return "it is for another service"
    intended = decision.intended
    if intended not in _ACTIONS[decision.state]:
        return f"{_reason_text(intended)} does not follow from {decision.state}"
    behavior = decision.unknown_behavior
    if decision.state is GateState.UNKNOWN and behavior not in (None, str(intended).lower()):
        return f"{intended} differs from unknown_behavior {behavior}"
    if decision.is_overridden and not _may_override(decision):
        done, due = _reason_text(decision.action), _reason_text(intended)
        return f"action is {done} instead of {due} without a valid override"
    return None


def _may_override(decision: PrintedDecision) -> bool:
    """Returns whether an override explains the action: it only turns BLOCK into ALLOW."""
    return (
        decision.override_id is not None
        and decision.intended is GateAction.BLOCK
        and decision.action is GateAction.ALLOW
    )


def _reason_text(action: GateAction | None) -> str:
    return "no action" if action is None else str(action)
