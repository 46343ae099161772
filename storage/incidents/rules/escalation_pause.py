"""Pauses of an escalation: an acknowledgement until its expiry, and a snooze until its end.

A snooze takes precedence over an acknowledgement, and when it ends the escalation continues in any
case. The first acknowledgement stays recorded. The last step is taken again first, for the person
who snoozed; the later ones keep their distances. After a reassignment to a person, the next step
waits for its distance to the step before it, and at least ASSIGNEE_US.
"""

from typing import Final

from ...core.instant import LATEST, MINUTE, Instant
from ...oncall.rules.escalation import EscalationPolicy, resumed

SNOOZE_MINUTES: Final = (1, 1_440)
# Snooze of a button, which cannot ask for a number.
BUTTON_SNOOZE_MINUTES: Final = 30
# Time that an assigned person has at least before the escalation continues.
ASSIGNEE_US: Final = 5 * MINUTE


def snooze_fault(minutes: int) -> str | None:
    """Returns why the number of minutes is invalid, None if it is valid."""
    least, most = SNOOZE_MINUTES
    return None if least <= minutes <= most else f"must be {least} to {most}"


def paused_until(
    *,
    is_acknowledged: bool,
    ack_expires_at: Instant | None,
    snoozed_until: Instant | None,
    now: Instant,
) -> Instant | None:
    """Returns when the pause in force ends, LATEST for never, None if no pause is in force."""
    if snoozed_until is not None:
        return snoozed_until if snoozed_until > now else None
    if not is_acknowledged:
        return None
    until = LATEST if ack_expires_at is None else ack_expires_at
    return until if until > now else None


def woken(policy: EscalationPolicy, taken: int, now: Instant) -> tuple[Instant, int]:
    """Returns the start and the taken steps of an escalation whose snooze ends now."""
    return resumed(policy, max(min(taken, len(policy.steps)) - 1, 0), now)


def handed_over(policy: EscalationPolicy, taken: int, now: Instant) -> tuple[Instant, int]:
    """Returns the start and the taken steps after a page to the assigned person.

    The page counts as the first step if none was taken. After the last step, that step follows
    again.
    """
    steps = policy.steps
    taken = min(max(taken, 1), len(steps) - 1)
    before = steps[taken - 1].after_us if taken else 0
    wait_us = max(steps[taken].after_us - before, ASSIGNEE_US)
    return Instant(now + wait_us - steps[taken].after_us), taken
