"""Performs an answer of a principal. The API, the console, links and buttons all use it."""

from dataclasses import dataclass
from uuid import UUID

from ...accounts.rules.access import Principal
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...oncall.rules.escalation import TargetKind
from ..rows import IncidentRow
from ..rules.answer_link import AnswerAction
from ..rules.incident import IncidentStatus
from .edit_incidents import acknowledge, add_update
from .reassign_incident import reassign
from .snooze_incident import snooze


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentAnswer:
    """Answer with the values of its action: a text, minutes, or a person or policy."""

    action: AnswerAction
    body: str = ""
    minutes: int = 0
    assignee: tuple[TargetKind, UUID] | None = None


async def answer_incident(
    tx: Tx, principal: Principal, incident: UUID, answer: IncidentAnswer
) -> IncidentRow:
    """Performs the answer, with its audit row and its entry of the timeline.

    Raises: the refusals of the action.
    """
    match answer.action:
        case AnswerAction.ACKNOWLEDGE:
            return await acknowledge(tx, principal, incident)
        case AnswerAction.RESOLVE:
            row, _ = await add_update(
                tx, principal, incident, IncidentStatus.RESOLVED, answer.body, public=False
            )
            return row
        case AnswerAction.NOTE:
            row, _ = await add_update(tx, principal, incident, None, answer.body, public=False)
            return row
        case AnswerAction.SNOOZE:
            return await snooze(tx, principal, incident, answer.minutes)
        case AnswerAction.REASSIGN:
            if answer.assignee is None:
                raise Refused("invalid", "id", "is required")
            return await reassign(tx, principal, incident, *answer.assignee)
