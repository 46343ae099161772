"""The results and windows that a maintenance covers: the start is included, the end is not."""

import pytest

from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.scheduling.rules.maintenance_window import (
    AHEAD_MOST_US,
    LONGEST_US,
    REASON_LONGEST,
    plan_fault,
    withholds,
)
from leadline.storage.scheduling.rules.run_schedule import ResultMode, RunWindow, ScheduleTerm

NOW = Instant(1_800_000_000 * SECOND)


def test_a_probe_is_judged_by_its_due_instant_and_a_push_by_the_end_of_its_promise() -> None:
    window = RunWindow(NOW, ScheduleTerm(NOW, NOW, MINUTE, SECOND, grace_us=MINUTE))
    at_due = [TimeSpan(NOW, Instant(NOW + 1))]
    at_end = [TimeSpan(Instant(NOW + 2 * MINUTE), Instant(NOW + 3 * MINUTE))]
    assert withholds(window, ResultMode.PROBE, at_due)
    assert withholds(window, ResultMode.COMPOSITE, at_due)
    assert not withholds(window, ResultMode.PUSH, at_due)
    assert withholds(window, ResultMode.PUSH, at_end)
    assert not withholds(window, ResultMode.PROBE, at_end)


@pytest.mark.parametrize(
    ("starts_at", "length", "reason", "field"),
    [
        (NOW, 1, "", None),
        (NOW, 0, "", "ends_at"),
        (NOW, LONGEST_US, "", None),
        (NOW, LONGEST_US + 1, "", "ends_at"),
        (NOW + AHEAD_MOST_US, 1, "", None),
        (NOW + AHEAD_MOST_US + 1, 1, "", "starts_at"),
        (NOW, 1, "x" * REASON_LONGEST, None),
        (NOW, 1, "x" * (REASON_LONGEST + 1), "reason"),
    ],
)
def test_an_announcement_is_refused_by_its_field(
    starts_at: int, length: int, reason: str, field: str | None
) -> None:
    fault = plan_fault(Instant(starts_at), Instant(starts_at + length), reason, NOW)
    assert (None if fault is None else fault[0]) == field
