"""Pauses of an escalation: which one is in force, and how the escalation continues."""

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import LATEST, MINUTE, SECOND, Instant
from leadline.storage.incidents.rules.escalation_pause import (
    ASSIGNEE_US,
    SNOOZE_MINUTES,
    handed_over,
    paused_until,
    snooze_fault,
    woken,
)
from leadline.storage.oncall.rules.escalation import EscalationPolicy, EscalationStep, due_steps

NOW = Instant(1_767_225_600_000_000)
instants = st.none() | st.integers(-5, 5).map(lambda n: Instant(NOW + n * MINUTE))
delays = st.lists(st.integers(0, 2_000), min_size=1, max_size=5).map(sorted)


@given(st.booleans(), instants, instants)
def test_a_snooze_takes_precedence_over_an_acknowledgement(
    is_acknowledged: bool, expires: Instant | None, snoozed: Instant | None
) -> None:
    found = paused_until(
        is_acknowledged=is_acknowledged, ack_expires_at=expires, snoozed_until=snoozed, now=NOW
    )
    if snoozed is not None:
        assert found == (snoozed if snoozed > NOW else None)
    elif not is_acknowledged:
        assert found is None
    elif expires is None:
        assert found == LATEST
    else:
        assert found == (expires if expires > NOW else None)


@given(delays, st.integers(0, 6))
def test_the_last_step_is_taken_again_after_a_snooze(after: list[int], taken: int) -> None:
    policy = EscalationPolicy(tuple(EscalationStep(one * SECOND) for one in after))
    start, then = woken(policy, taken, NOW)
    assert then == max(min(taken, len(after)) - 1, 0)
    due, _ = due_steps(policy, start, then, None, NOW)
    assert due[0] == then + 1
    for number in range(due[-1] + 1, len(after) + 1):
        at = Instant(NOW + (after[number - 1] - after[then]) * SECOND)
        assert number in due_steps(policy, start, number - 1, None, at)[0]
        assert number not in due_steps(policy, start, number - 1, None, Instant(at - 1))[0]


@given(delays, st.integers(0, 6))
def test_an_assigned_person_has_time_and_then_a_step_follows(after: list[int], taken: int) -> None:
    policy = EscalationPolicy(tuple(EscalationStep(one * SECOND) for one in after))
    start, then = handed_over(policy, taken, NOW)
    assert 0 <= then < len(after)
    assert due_steps(policy, start, then, NOW, Instant(NOW + ASSIGNEE_US - 1))[0] == []
    distance = (after[then] - (after[then - 1] if then else 0)) * SECOND
    at = Instant(NOW + max(distance, ASSIGNEE_US))
    assert due_steps(policy, start, then, NOW, at)[0][0] == then + 1
    if 0 < taken < len(after):
        assert then == taken, "no step is skipped"


@given(st.integers(-10, 3_000))
def test_the_minutes_are_bounded(minutes: int) -> None:
    least, most = SNOOZE_MINUTES
    assert (snooze_fault(minutes) is None) == (least <= minutes <= most)
