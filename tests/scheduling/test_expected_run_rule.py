"""Verdicts, history and the watermark, compared with a model that is written from the
specification.
"""

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import HOUR, SECOND, Instant
from leadline.storage.scheduling.rules import expected_run as ledger
from leadline.storage.scheduling.rules.expected_run import (
    WithheldReason,
    covered_until,
    is_history,
    verdict_of_result,
    watermark,
    withheld_at_reservation,
)
from leadline.storage.scheduling.rules.run_schedule import (
    ResultMode,
    RunWindow,
    ScheduleTerm,
    sealing_at,
    windows,
)

NOW = Instant(1_800_000_000 * SECOND)
GRACE_S = 120


@given(
    st.sampled_from(ResultMode),
    st.integers(5, 600),
    st.integers(1, 300),
    st.integers(0, 300),
    st.integers(0, 2_000),
    st.booleans(),
    st.booleans(),
)
def test_a_result_covers_in_time_until_the_next_run_or_the_sealing(
    manner: ResultMode,
    interval: int,
    timeout: int,
    grace: int,
    seconds: int,
    history: bool,
    backfill: bool,
) -> None:
    window = RunWindow(
        NOW, ScheduleTerm(NOW, NOW, interval * SECOND, timeout * SECOND, grace * SECOND)
    )
    limit = {
        ResultMode.PROBE: min(interval, timeout + GRACE_S),
        ResultMode.COMPOSITE: min(interval, GRACE_S),
        ResultMode.PUSH: interval + grace,
    }[manner]
    in_time = seconds <= limit and not history and not backfill
    committed_at = Instant(NOW + seconds * SECOND)
    verdict = verdict_of_result(
        covered_until(window, manner), committed_at, history=history, backfill=backfill
    )
    assert verdict == ("covered" if in_time else "covered_late")


def test_a_paused_window_is_withheld_as_paused_even_in_maintenance() -> None:
    paused = RunWindow(NOW, ScheduleTerm(NOW, NOW, HOUR, SECOND, enabled=False))
    running = RunWindow(NOW, ScheduleTerm(NOW, NOW, HOUR, SECOND))
    for in_maintenance in (True, False):
        ruling = withheld_at_reservation(paused, in_maintenance=in_maintenance)
        assert ruling == ledger.withheld(WithheldReason.PAUSED)
    assert withheld_at_reservation(running, in_maintenance=True) == ledger.withheld(
        WithheldReason.MAINTENANCE
    )
    assert withheld_at_reservation(running, in_maintenance=False) is None


def test_a_result_is_history_when_its_run_could_no_longer_be_waiting() -> None:
    for manner, lag in (
        (ResultMode.PROBE, 130),
        (ResultMode.COMPOSITE, 120),
        (ResultMode.PUSH, 120),
    ):
        edge = Instant(NOW - lag * SECOND)
        assert not is_history(edge, NOW, 10 * SECOND, manner)
        assert is_history(Instant(edge - 1), NOW, 10 * SECOND, manner)


@st.composite
def terms_of_two_regions(draw: st.DrawFn) -> list[ScheduleTerm]:
    starts = sorted(draw(st.lists(st.integers(0, 2_000), min_size=1, max_size=4)))
    return [
        ScheduleTerm(
            Instant(start * SECOND),
            Instant(0),
            draw(st.integers(5, 300)) * SECOND,
            draw(st.integers(1, 300)) * SECOND,
            shard=draw(st.integers(0, 1)),
        )
        for start in starts
    ]


@given(terms_of_two_regions(), st.integers(0, 3_000), st.integers(0, 3_000))
def test_below_the_watermark_everything_is_sealed(
    terms: list[ScheduleTerm], one: int, two: int
) -> None:
    fences = {0: Instant(one * SECOND), 1: Instant(two * SECOND)}
    mark = watermark(terms, fences, ResultMode.PROBE)
    assert mark is not None
    for window in windows(terms, Instant(-1), Instant(mark - 1)):
        assert sealing_at(window, ResultMode.PROBE) <= fences[window.term.shard]


@given(terms_of_two_regions(), st.data())
def test_no_live_result_lies_below_the_watermark(
    terms: list[ScheduleTerm], data: st.DataObject
) -> None:
    fences = {shard: Instant(data.draw(st.integers(0, 3_000)) * SECOND) for shard in (0, 1)}
    mark = watermark(terms, fences, ResultMode.PROBE)
    assert mark is not None
    instant = Instant(data.draw(st.integers(0, 3_500)) * SECOND)
    begun = [term for term in terms if term.from_ < instant]
    if begun and instant < mark:
        term = begun[-1]
        assert is_history(instant, fences[term.shard], term.timeout_us, ResultMode.PROBE)


@given(terms_of_two_regions(), st.data())
def test_the_watermark_never_moves_back(terms: list[ScheduleTerm], data: st.DataObject) -> None:
    """The fences advance, and each edit begins at the reserved instant of the schedule."""
    fences = {0: Instant(0), 1: Instant(0)}
    history: list[ScheduleTerm] = [terms[0]]
    last = watermark(history, fences, ResultMode.PROBE)
    assert last is not None
    for term in terms[1:]:
        for shard in (0, 1):
            reached = data.draw(st.integers(fences[shard] // SECOND, term.from_ // SECOND))
            fences[shard] = Instant(reached * SECOND)
        for known in (history, [*history, term]):
            mark = watermark(known, fences, ResultMode.PROBE)
            assert mark is not None
            assert mark >= last
            last = mark
        history.append(term)


def test_a_steady_monitor_is_sealed_its_timeout_and_two_minutes_behind_the_fence() -> None:
    term = ScheduleTerm(Instant(NOW - HOUR), NOW, 30 * SECOND, 10 * SECOND)
    assert watermark([term], {0: NOW}, ResultMode.PROBE) == NOW - 130 * SECOND
    assert watermark([term], {0: NOW}, ResultMode.PUSH) == NOW - 120 * SECOND
    assert watermark([], {0: NOW}, ResultMode.PROBE) is None
    assert watermark([term], {}, ResultMode.PROBE) == term.from_


def test_a_change_of_region_waits_for_the_old_region() -> None:
    change = Instant(NOW - 300 * SECOND)
    old = ScheduleTerm(Instant(NOW - HOUR), NOW, 30 * SECOND, 10 * SECOND, shard=0)
    new = ScheduleTerm(change, NOW, 30 * SECOND, 10 * SECOND, shard=1)
    stuck = {0: Instant(change - 60 * SECOND), 1: NOW}
    assert watermark([old, new], stuck, ResultMode.PROBE) == change - 190 * SECOND
    passed = {0: Instant(change + 131 * SECOND), 1: NOW}
    assert watermark([old, new], passed, ResultMode.PROBE) == NOW - 130 * SECOND


def test_of_several_the_least_counts_and_an_unknown_one_makes_it_unknown() -> None:
    assert ledger.least_watermark([NOW, Instant(NOW - 5)]) == NOW - 5
    assert ledger.least_watermark([NOW, None]) is None
    assert ledger.least_watermark([]) is None
