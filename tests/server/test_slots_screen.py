"""The state of a slot: the results in it, then the result that is still fresh, and otherwise no
data.
"""

from hypothesis import given
from hypothesis import strategies as st

from leadline.http.ui.plots.heartbeat_strip import HeartbeatSlot
from leadline.http.ui.time_slots import Axis, beats
from leadline.storage.core.instant import MINUTE, Instant
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.results.queries.console_results import ResultSlot, ResultTimeline
from leadline.storage.scheduling.rules.run_schedule import ScheduleTerm

START = Instant(1_767_571_200_000_000)
AXIS = Axis(START, MINUTE, 10)
NOW = AXIS.until
FOREVER = ScheduleTerm(Instant(START - 100 * MINUTE), START, MINUTE, MINUTE // 6)


def at(minutes: float) -> Instant:
    return Instant(START + int(minutes * MINUTE))


def taken(slot: int, *, up: int = 1, failed: int = 0, last_up: bool = True) -> ResultSlot:
    return ResultSlot(1, 1, AXIS.start(slot), up, failed, at(slot + 0.1), last_up)


def test_one_failure_makes_a_slot_failed() -> None:
    course = ResultTimeline([taken(0), taken(1, up=5, failed=1)], terms=[FOREVER])
    assert beats(course, AXIS, NOW, held_us=0)[:3] == [
        HeartbeatSlot.UP,
        HeartbeatSlot.FAILED,
        HeartbeatSlot.NONE,
    ]


def test_a_result_applies_until_it_is_stale() -> None:
    course = ResultTimeline([taken(2)], terms=[FOREVER])
    found = beats(course, AXIS, NOW, held_us=3 * MINUTE)
    assert found[2:7] == [
        HeartbeatSlot.UP,
        HeartbeatSlot.UP,
        HeartbeatSlot.UP,
        HeartbeatSlot.NONE,
        HeartbeatSlot.NONE,
    ]


def test_the_result_before_the_range_applies_until_it_is_stale() -> None:
    course = ResultTimeline((), (at(-0.5), False), [FOREVER])
    assert beats(course, AXIS, NOW, held_us=2 * MINUTE)[:2] == [
        HeartbeatSlot.FAILED,
        HeartbeatSlot.NONE,
    ]


def test_a_maintenance_hides_its_results_and_ends_earlier_ones() -> None:
    course = ResultTimeline(
        [taken(0), taken(3, up=0, failed=1, last_up=False)],
        None,
        [FOREVER],
        [TimeSpan(at(2), at(4))],
    )
    found = beats(course, AXIS, NOW, held_us=60 * MINUTE)
    assert found[:6] == [
        HeartbeatSlot.UP,
        HeartbeatSlot.UP,
        HeartbeatSlot.MAINTENANCE,
        HeartbeatSlot.MAINTENANCE,
        *2 * [HeartbeatSlot.FAILED],
    ]
    course = ResultTimeline([taken(0)], None, [FOREVER], [TimeSpan(at(2), at(4))])
    assert beats(course, AXIS, NOW, held_us=60 * MINUTE)[4] is HeartbeatSlot.NONE


def test_a_pause_is_its_own_state_and_ends_earlier_results() -> None:
    pause = ScheduleTerm(at(3), START, MINUTE, MINUTE // 6, enabled=False)
    again = ScheduleTerm(at(5), START, MINUTE, MINUTE // 6)
    course = ResultTimeline([taken(0)], None, [FOREVER, pause, again])
    found = beats(course, AXIS, NOW, held_us=60 * MINUTE)
    assert found[2:7] == [
        HeartbeatSlot.UP,
        HeartbeatSlot.PAUSED,
        HeartbeatSlot.PAUSED,
        HeartbeatSlot.NONE,
        HeartbeatSlot.NONE,
    ]


def test_slots_before_the_monitor_have_no_data_yet_and_future_ones_are_empty() -> None:
    young = ScheduleTerm(at(4), START, MINUTE, MINUTE // 6)
    found = beats(ResultTimeline((), None, [young]), AXIS, at(6.5), held_us=0)
    assert found == [
        *4 * [HeartbeatSlot.BEFORE],
        *3 * [HeartbeatSlot.NONE],
        *3 * [HeartbeatSlot.AWAY],
    ]


def test_a_monitor_without_a_schedule_has_no_time_before_its_start() -> None:
    found = beats(ResultTimeline((), None, []), AXIS, NOW, held_us=0)
    assert set(found) == {HeartbeatSlot.AWAY}


def test_a_slot_that_awaits_its_result_is_not_missing() -> None:
    found = beats(
        ResultTimeline((), None, [FOREVER]), AXIS, at(5.1), held_us=0, patience_us=MINUTE // 2
    )
    assert found[4:6] == [HeartbeatSlot.NONE, HeartbeatSlot.AWAY]


@given(
    st.sets(st.integers(0, 9)),
    st.sets(st.integers(0, 9)),
    st.integers(0, 12 * MINUTE),
    st.integers(0, 10 * MINUTE),
)
def test_a_green_slot_needs_a_fresh_good_result(
    good: set[int], bad: set[int], held_us: int, passed_us: int
) -> None:
    now = Instant(START + passed_us)
    rows = [
        taken(slot, up=slot in good, failed=slot in bad, last_up=slot not in bad)
        for slot in sorted(good | bad)
        if AXIS.start(slot) < now
    ]
    found = beats(ResultTimeline(rows, None, [FOREVER]), AXIS, now, held_us=held_us)
    assert len(found) == AXIS.many
    for slot, beat in enumerate(found):
        reaching = [
            row
            for row in rows
            if row.start <= AXIS.start(slot)
            and (row.start == AXIS.start(slot) or row.last_at + held_us > AXIS.start(slot))
        ]
        if beat is HeartbeatSlot.UP:
            assert reaching
            assert reaching[-1].last_up
        if slot in bad and AXIS.start(slot) < now:
            assert beat is HeartbeatSlot.FAILED
        if AXIS.start(slot) >= now:
            assert beat is HeartbeatSlot.AWAY
