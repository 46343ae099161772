"""What falls into maintenance, with its start and without its end."""

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.rules.instant import MINUTE, SECOND, Instant
from leadline.storage.rules.maintenance import (
    Maintenance,
    is_in_maintenance,
    is_retroactive,
    last_end,
    spans_of,
    withholds,
)
from leadline.storage.rules.schedule import Manner, Term, Window
from leadline.storage.rules.span import Span

NOW = Instant(1_800_000_000 * SECOND)


@given(
    st.lists(
        st.builds(
            lambda start, length, monitor, cancelled: Maintenance(
                Instant(start), Instant(start + length), monitor, cancelled
            ),
            st.integers(0, 40),
            st.integers(1, 20),
            st.sampled_from([None, 1, 2]),
            st.none() | st.integers(0, 60).map(Instant),
        ),
        max_size=6,
    ),
    st.integers(0, 70),
)
def test_a_monitor_is_in_its_own_and_its_project_s_maintenance(
    announced: list[Maintenance], instant: int
) -> None:
    expected = any(
        m.monitor in (None, 1)
        and m.starts_at <= instant < m.ends_at
        and (m.cancelled_at is None or instant < m.cancelled_at)
        for m in announced
    )
    assert is_in_maintenance(Instant(instant), spans_of(1, announced)) == expected


def test_a_probe_is_judged_by_its_due_instant_and_a_push_by_the_end_of_its_promise() -> None:
    window = Window(NOW, Term(NOW, NOW, MINUTE, SECOND, grace_us=MINUTE))
    at_due = [Span(NOW, Instant(NOW + 1))]
    at_end = [Span(Instant(NOW + 2 * MINUTE), Instant(NOW + 3 * MINUTE))]
    assert withholds(window, Manner.PROBE, at_due)
    assert withholds(window, Manner.COMPOSITE, at_due)
    assert not withholds(window, Manner.PUSH, at_due)
    assert withholds(window, Manner.PUSH, at_end)
    assert not withholds(window, Manner.PROBE, at_end)


def test_the_newest_end_is_where_promises_begin_anew() -> None:
    spans = [Span(Instant(10), Instant(20)), Span(Instant(30), Instant(40))]
    assert last_end(spans, Instant(39)) == 20
    assert last_end(spans, Instant(40)) == 40
    assert last_end(spans, Instant(19)) is None


def test_what_touches_the_past_or_what_is_sealed_is_retroactive() -> None:
    assert is_retroactive(Instant(NOW - 1), NOW, None)
    assert not is_retroactive(NOW, NOW, NOW)
    assert is_retroactive(NOW, NOW, Instant(NOW + 1))
