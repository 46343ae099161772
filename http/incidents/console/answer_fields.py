"""Fields of an answer that the incident screen and the page of a link share."""

from typing import Final
from uuid import UUID

from ....storage.core.refusal import Refused
from ....storage.engine.pools import Tx
from ....storage.incidents.rows import IncidentRow
from ....storage.incidents.rules.answer_link import AnswerAction
from ....storage.incidents.rules.escalation_pause import SNOOZE_MINUTES, snooze_fault
from ....storage.incidents.transactions.answer_incident import IncidentAnswer
from ....storage.notifications.queries.project_people import people_choices
from ....storage.oncall.queries.escalation_policies import select_policies_of
from ....storage.oncall.rules.escalation import TargetKind
from ...ui.form_values import stripped, value_of
from ...wire.errors import Problem
from ...wire.route import Request

_DIGITS_MOST: Final = 6
_LABELS: Final = {"minutes": "The minutes", "id": "The recipient"}


def answer_of_form(ask: Request) -> IncidentAnswer:
    """Returns the answer that the button of a form names.

    Raises: Problem for an unknown action. Refused invalid, if a value of the action is missing.
    """
    try:
        action = AnswerAction(value_of(ask, "act"))
    except ValueError:
        raise Problem("Unknown action") from None
    minutes = _minutes(stripped(ask, "minutes")) if action is AnswerAction.SNOOZE else 0
    assignee = None
    if action is AnswerAction.REASSIGN:
        assignee = _assignee(stripped(ask, "assignee"))
    return IncidentAnswer(
        action=action, body=stripped(ask, "body"), minutes=minutes, assignee=assignee
    )


def _minutes(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MOST):
        raise Refused("invalid", "minutes", snooze_fault(SNOOZE_MINUTES[0] - 1) or "")
    return int(text)


def _assignee(text: str) -> tuple[TargetKind, UUID]:
    kind, _, uid = text.partition(":")
    try:
        return TargetKind(kind), UUID(uid)
    except ValueError:
        raise Refused("invalid", "id", "must be a person or an escalation policy") from None


def words_of(refused: Refused) -> str:
    """Returns the text of a refused field."""
    return f"{_LABELS.get(refused.field, refused.field.capitalize())} {refused.message}."


async def recipients(tx: Tx, row: IncidentRow) -> list[tuple[str, str]]:
    """Returns (value, text) of the people and policies that an incident can be reassigned to."""
    people = await people_choices(tx, row.org, row.project)
    policies = await select_policies_of(tx, row.org, row.project)
    found = [(f"{TargetKind.PERSON.value}:{uid}", text) for uid, text in people]
    return found + [
        (f"{TargetKind.POLICY.value}:{one.uid}", f"{one.name} (escalation policy)")
        for one in policies
    ]
