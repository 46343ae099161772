"""The log of an application: its newest objects, and a time left only from a measured rate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.bundles.rules.apply_log import (
    RATE_LEAST_OBJECTS,
    RATE_LEAST_US,
    STEPS_KEPT,
    ApplyLog,
    extended,
)
from leadline.storage.core.instant import SECOND, Instant

START = Instant(1_767_571_200_000_000)
TOTAL = 1_000


def sampled(*samples: tuple[int, int]) -> ApplyLog:
    """Returns the log of samples of (seconds since the start, written objects)."""
    log = None
    for seconds, done in samples:
        log = extended(log, Instant(START + seconds * SECOND), done, TOTAL, [])
    assert log is not None
    return log


@pytest.mark.parametrize(
    ("samples", "seconds"),
    [
        # One sample has no rate, also if many objects were unchanged before it.
        ([(0, 900)], None),
        ([(0, 0), (1, 500)], None),
        ([(0, 0), (100, RATE_LEAST_OBJECTS - 1)], None),
        ([(0, 0), (10, 100)], 90),
        # Objects before the first sample do not count into the rate.
        ([(0, 900), (10, 910)], 90),
        ([(0, 0), (5, 10), (10, 500)], 10),
        # Only the commit remains.
        ([(0, 0), (10, TOTAL)], None),
        # A repeated transaction begins at an earlier object.
        ([(0, 500), (10, 100)], None),
    ],
)
def test_the_time_left_follows_the_measured_rate(
    samples: list[tuple[int, int]], seconds: int | None
) -> None:
    left_us = sampled(*samples).us_left()
    assert left_us == (None if seconds is None else seconds * SECOND)


@given(st.integers(0, 60 * SECOND), st.integers(0, TOTAL), st.integers(0, TOTAL))
def test_no_time_left_is_invented(passed_us: int, first: int, done: int) -> None:
    log = extended(None, START, first, TOTAL, [])
    log = extended(log, Instant(START + passed_us), done, TOTAL, [])
    left_us = log.us_left()
    if left_us is not None:
        assert done - first >= RATE_LEAST_OBJECTS
        assert passed_us >= RATE_LEAST_US
        assert 0 < left_us <= (TOTAL - done) * passed_us / (done - first)


@given(st.lists(st.lists(st.text(max_size=3), max_size=30), max_size=6))
def test_the_log_has_the_newest_objects_in_order(reports: list[list[str]]) -> None:
    log, every = None, list[tuple[Instant, str]]()
    for n, uids in enumerate(reports):
        at = Instant(START + n * SECOND)
        log = extended(log, at, n, TOTAL, [("create", "monitor", uid) for uid in uids])
        every += [(at, uid) for uid in uids]
    kept = [] if log is None else [(step.at, step.uid) for step in log.steps]
    assert kept == every[-STEPS_KEPT:]
