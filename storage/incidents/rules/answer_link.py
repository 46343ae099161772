"""Links and buttons of messages by which a person answers.

Invariants: opening a link changes nothing, since mail programs open links. A link is used once, and
is valid for LINK_LASTS_US after its message was written.
"""

from enum import StrEnum
from typing import Final

from ...core.instant import DAY, Instant

LINK_LASTS_US: Final = 3 * DAY


class AnswerAction(StrEnum):
    ACKNOWLEDGE = "acknowledge"
    RESOLVE = "resolve"
    NOTE = "note"
    SNOOZE = "snooze"
    REASSIGN = "reassign"


class LinkState(StrEnum):
    OPEN = "open"
    USED = "used"
    EXPIRED = "expired"


def link_state(written_at: Instant, used_at: Instant | None, now: Instant) -> LinkState:
    if used_at is not None:
        return LinkState.USED
    return LinkState.OPEN if now < written_at + LINK_LASTS_US else LinkState.EXPIRED


def possible_answers(*, is_resolved: bool, is_acknowledged: bool) -> list[AnswerAction]:
    """Returns the actions that can have an effect. A note can always be added."""
    found = []
    if not is_resolved and not is_acknowledged:
        found.append(AnswerAction.ACKNOWLEDGE)
    if not is_resolved:
        found += [AnswerAction.RESOLVE, AnswerAction.SNOOZE, AnswerAction.REASSIGN]
    return [*found, AnswerAction.NOTE]


def acknowledged_words(*, is_snoozed: bool) -> str:
    """Returns the text after an acknowledgement.

    Args:
        is_snoozed: the incident is snoozed still, because it was acknowledged before.
    """
    if is_snoozed:
        return "Already acknowledged. The escalation continues after the snooze."
    return "Acknowledged. The escalation has stopped."
