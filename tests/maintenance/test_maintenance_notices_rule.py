"""Steps of a maintenance that subscribers are told, over random lives of a maintenance."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import HOUR, Instant
from leadline.storage.status_pages.rules.maintenance_step import LAST, MaintenanceStep, due_step

pytestmark = pytest.mark.rule
STEP = MaintenanceStep


@given(
    st.lists(st.integers(0, 12), max_size=12).map(sorted),
    st.integers(1, 6),
    st.integers(1, 6),
    st.one_of(st.none(), st.integers(0, 12)),
)
def test_steps_come_once_in_order_and_state_the_truth(
    looks: list[int], starts: int, length: int, archived: int | None
) -> None:
    """`looks` are the hours at which the teller looks; it can be down for any time."""
    ends = starts + length
    told: list[MaintenanceStep] = []
    for hour in looks:
        gone = archived is not None and hour >= archived
        found = due_step(
            told,
            Instant(hour * HOUR),
            Instant(starts * HOUR),
            Instant(ends * HOUR),
            is_archived=gone,
        )
        # Written from the documentation, without the function.
        if gone:
            truth = STEP.CANCELLED
        elif hour < starts:
            truth = STEP.SCHEDULED
        else:
            truth = STEP.IN_PROGRESS if hour < ends else STEP.COMPLETED
        is_news = truth not in told and not (told and told[-1] in LAST)
        expected = truth if is_news and (told or truth not in LAST) else None
        assert found is expected
        told += [] if found is None else [found]
    assert len(told) == len(set(told))
    assert told == sorted(told, key=list(STEP).index)
    assert not any(step in LAST for step in told[:-1])
