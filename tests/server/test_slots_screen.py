"""A slot shows what was so in it: results, then what still holds, and else that nobody knows."""

from hypothesis import given
from hypothesis import strategies as st

from leadline.http.ui.plots.heartbeat_strip import Beat
from leadline.http.ui.time_slots import Axis, beats
from leadline.storage.core.instant import MINUTE, Instant
from leadline.storage.core.time_span import Span
from leadline.storage.results.queries.console_results import Course, Taken
from leadline.storage.scheduling.rules.run_schedule import Term

START = Instant(1_767_571_200_000_000)
AXIS = Axis(START, MINUTE, 10)
NOW = AXIS.until
FOREVER = Term(Instant(START - 100 * MINUTE), START, MINUTE, MINUTE // 6)


def at(minutes: float) -> Instant:
    return Instant(START + int(minutes * MINUTE))


def taken(slot: int, *, up: int = 1, failed: int = 0, last_up: bool = True) -> Taken:
    return Taken(1, 1, AXIS.start(slot), up, failed, at(slot + 0.1), last_up)


def test_a_slot_with_a_failure_is_failed_however_many_were_good() -> None:
    course = Course([taken(0), taken(1, up=5, failed=1)], terms=[FOREVER])
    assert beats(course, AXIS, NOW, held_us=0)[:3] == [Beat.UP, Beat.FAILED, Beat.NONE]


def test_a_result_holds_for_as_long_as_it_may_and_not_longer() -> None:
    course = Course([taken(2)], terms=[FOREVER])
    found = beats(course, AXIS, NOW, held_us=3 * MINUTE)
    assert found[2:7] == [Beat.UP, Beat.UP, Beat.UP, Beat.NONE, Beat.NONE]


def test_what_came_before_the_range_holds_into_it_as_what_it_said() -> None:
    course = Course((), (at(-0.5), False), [FOREVER])
    assert beats(course, AXIS, NOW, held_us=2 * MINUTE)[:2] == [Beat.FAILED, Beat.NONE]


def test_a_maintenance_covers_what_was_measured_in_it_and_ends_what_held() -> None:
    course = Course(
        [taken(0), taken(3, up=0, failed=1, last_up=False)], None, [FOREVER], [Span(at(2), at(4))]
    )
    found = beats(course, AXIS, NOW, held_us=60 * MINUTE)
    assert found[:6] == [Beat.UP, Beat.UP, Beat.MAINTENANCE, Beat.MAINTENANCE, *2 * [Beat.FAILED]]
    course = Course([taken(0)], None, [FOREVER], [Span(at(2), at(4))])
    assert beats(course, AXIS, NOW, held_us=60 * MINUTE)[4] is Beat.NONE


def test_a_pause_is_neither_up_nor_unknown_and_nothing_holds_across_it() -> None:
    pause = Term(at(3), START, MINUTE, MINUTE // 6, enabled=False)
    again = Term(at(5), START, MINUTE, MINUTE // 6)
    course = Course([taken(0)], None, [FOREVER, pause, again])
    found = beats(course, AXIS, NOW, held_us=60 * MINUTE)
    assert found[2:7] == [Beat.UP, Beat.PAUSED, Beat.PAUSED, Beat.NONE, Beat.NONE]


def test_before_the_monitor_was_nothing_is_drawn_and_nothing_of_what_is_to_come() -> None:
    young = Term(at(4), START, MINUTE, MINUTE // 6)
    found = beats(Course((), None, [young]), AXIS, at(6.5), held_us=0)
    assert found == [*4 * [Beat.AWAY], *3 * [Beat.NONE], *3 * [Beat.AWAY]]


def test_a_slot_that_may_still_get_its_result_is_not_called_missing() -> None:
    found = beats(Course((), None, [FOREVER]), AXIS, at(5.1), held_us=0, patience_us=MINUTE // 2)
    assert found[4:6] == [Beat.NONE, Beat.AWAY]


@given(
    st.sets(st.integers(0, 9)),
    st.sets(st.integers(0, 9)),
    st.integers(0, 12 * MINUTE),
    st.integers(0, 10 * MINUTE),
)
def test_nothing_is_green_without_a_good_result_that_reaches_it(
    good: set[int], bad: set[int], held_us: int, passed_us: int
) -> None:
    now = Instant(START + passed_us)
    rows = [
        taken(slot, up=slot in good, failed=slot in bad, last_up=slot not in bad)
        for slot in sorted(good | bad)
        if AXIS.start(slot) < now
    ]
    found = beats(Course(rows, None, [FOREVER]), AXIS, now, held_us=held_us)
    assert len(found) == AXIS.many
    for slot, beat in enumerate(found):
        reaching = [
            row
            for row in rows
            if row.start <= AXIS.start(slot)
            and (row.start == AXIS.start(slot) or row.last_at + held_us > AXIS.start(slot))
        ]
        if beat is Beat.UP:
            assert reaching
            assert reaching[-1].last_up
        if slot in bad and AXIS.start(slot) < now:
            assert beat is Beat.FAILED
        if AXIS.start(slot) >= now:
            assert beat is Beat.AWAY
