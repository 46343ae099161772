"""The timetable returns the windows of each monitor through changes of its schedule terms."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import HOUR, MINUTE, SECOND, Instant
from leadline.storage.scheduling.rules.due_queue import Timetable
from leadline.storage.scheduling.rules.run_schedule import (
    RunWindow,
    ScheduleTerm,
    anchor_for,
    windows,
)

NOW = Instant(1_800_000_000 * SECOND)


def expected(
    monitors: dict[int, list[ScheduleTerm]], shard: int, after: int, through: int
) -> list[tuple[int, RunWindow]]:
    found = [
        (key, window)
        for key, terms in monitors.items()
        for window in windows(terms, Instant(after), Instant(through))
        if window.term.shard == shard
    ]
    return sorted(found, key=lambda item: (item[1].due, item[0]))


@st.composite
def a_term(draw: st.DrawFn, at: int) -> ScheduleTerm:
    return ScheduleTerm(
        Instant(at),
        Instant(at - draw(st.integers(0, 20))),
        draw(st.integers(1, 20)),
        1,
        enabled=draw(st.booleans()),
        shard=draw(st.integers(0, 1)),
    )


@given(st.data())
def test_it_is_the_brute_force_sum_over_monitors_through_every_edit(data: st.DataObject) -> None:
    monitors: dict[int, list[ScheduleTerm]] = {
        key: [data.draw(a_term(data.draw(st.integers(0, 30))))] for key in range(4)
    }
    cursor = data.draw(st.integers(0, 20))
    timetable = Timetable(0, Instant(cursor), monitors)
    for _ in range(data.draw(st.integers(1, 12))):
        match data.draw(st.sampled_from(["take", "take", "edit", "drop", "seek"])):
            case "take":
                through = cursor + data.draw(st.integers(-2, 40))
                assert timetable.take(Instant(through)) == expected(monitors, 0, cursor, through)
                cursor = max(cursor, through)
            case "edit":
                key = data.draw(st.integers(0, 5))
                terms = monitors.get(key, [])
                begin = max(cursor, terms[-1].from_ if terms else 0)
                monitors[key] = [*terms, data.draw(a_term(begin + data.draw(st.integers(0, 5))))]
                timetable.put(key, monitors[key])
            case "drop":
                key = data.draw(st.integers(0, 5))
                monitors.pop(key, None)
                timetable.drop(key)
            case "seek":
                cursor = max(0, cursor + data.draw(st.integers(-30, 30)))
                timetable.seek(Instant(cursor))
        assert timetable.reserved_through == cursor


def test_hours_of_outage_are_caught_up_in_steps_without_loss() -> None:
    monitors = {
        key: [
            ScheduleTerm(
                NOW, anchor_for(UUID(int=key), seconds * SECOND, NOW), seconds * SECOND, SECOND
            )
        ]
        for key, seconds in enumerate([5, 7, 30, 60, 61, 300, 3_600] * 20)
    }
    timetable = Timetable(0, NOW, monitors)
    taken: list[tuple[int, RunWindow]] = []
    for minute in range(1, 181):
        taken += timetable.take(Instant(NOW + minute * MINUTE))
    assert taken == expected(monitors, 0, NOW, NOW + 3 * HOUR)


def test_ten_thousand_monitors_each_run_once_an_interval() -> None:
    interval_us = 30 * SECOND
    timetable = Timetable(
        0,
        NOW,
        {
            key: [
                ScheduleTerm(NOW, anchor_for(UUID(int=key), interval_us, NOW), interval_us, SECOND)
            ]
            for key in range(10_000)
        },
    )
    seen: dict[int, int] = {}
    for second in range(1, 61):
        for key, _ in timetable.take(Instant(NOW + second * SECOND)):
            seen[key] = seen.get(key, 0) + 1
    assert set(seen.values()) == {2}
    assert len(seen) == 10_000
