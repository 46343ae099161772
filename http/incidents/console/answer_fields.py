"""Fields of an answer that the incident screen and the page of a link share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ....storage.core.refusal import Refused
from ....storage.engine.pools import Tx
from ....storage.incidents.rows import IncidentRow
from ....storage.incidents.rules.answer_link import AnswerAction
from ....storage.incidents.rules.escalation_pause import SNOOZE_MINUTES, snooze_fault
from ....storage.incidents.transactions.answer_incident import IncidentAnswer
from ....storage.oncall.rules.escalation import TargetKind
from ....storage.services.queries.pickable_objects import PickableKind, PickableType
from ...ui.form_values import stripped, value_of
from ...ui.pickers.fields import PickerOption
from ...ui.pickers.objects import options_of, resolved
from ...wire.errors import Problem
from ...wire.route import Request

_DIGITS_MOST: Final = 6
_LABELS: Final = {"minutes": "The minutes", "id": "The recipient"}


_ASSIGNEE: Final = PickableKind.ASSIGNEE


@dataclass(frozen=True, slots=True)
class AnswerFields:
    """Shown values of the answer fields. `path` is the address of the recipients."""

    path: str
    options: Sequence[PickerOption]
    minutes: str = ""
    assignee: str = ""
    assignee_was: str = ""


def possible_action(ask: Request) -> AnswerAction:
    """Returns the action of the pressed button. Raises: Problem for an unknown action."""
    try:
        return AnswerAction(value_of(ask, "act"))
    except ValueError:
        raise Problem("Unknown action") from None


async def answer_of_form(ask: Request, tx: Tx, org: int, project: int) -> IncidentAnswer:
    """Returns the answer that the button of a form names.

    Raises: Problem for an unknown action. Refused invalid, if a value of the action is missing.
    """
    action = possible_action(ask)
    minutes = _minutes(stripped(ask, "minutes")) if action is AnswerAction.SNOOZE else 0
    assignee = None
    if action is AnswerAction.REASSIGN:
        assignee = await _assignee(ask, tx, org, project)
    return IncidentAnswer(
        action=action, body=stripped(ask, "body"), minutes=minutes, assignee=assignee
    )


def _minutes(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MOST):
        raise Refused("invalid", "minutes", snooze_fault(SNOOZE_MINUTES[0] - 1) or "")
    return int(text)


async def _assignee(ask: Request, tx: Tx, org: int, project: int) -> tuple[TargetKind, UUID]:
    text, was = stripped(ask, "assignee"), value_of(ask, "assignee_was")
    found = await resolved(tx, org, project, _ASSIGNEE, text, was, "id")
    if found is None:
        raise Refused("invalid", "id", "must be a person or an escalation policy")
    is_person = found.type == PickableType.PERSON
    return TargetKind.PERSON if is_person else TargetKind.POLICY, found.uid


def words_of(refused: Refused) -> str:
    """Returns the text of a refused field."""
    return f"{_LABELS.get(refused.field, refused.field.capitalize())} {refused.message}."


async def answer_fields(ask: Request, tx: Tx, row: IncidentRow, path: str) -> AnswerFields:
    """Returns the fields with the submitted values and the first recipients."""
    return AnswerFields(
        path,
        await options_of(tx, row.org, row.project, _ASSIGNEE),
        value_of(ask, "minutes"),
        stripped(ask, "assignee"),
        value_of(ask, "assignee_was"),
    )
