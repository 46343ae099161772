"""Weekly hours found in stored edges, against a search that computes all spans each time."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
from typing import Any
from unittest.mock import patch
from zoneinfo import ZoneInfo

import trio
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import DAY, MINUTE, Instant, from_datetime, to_datetime
from leadline.storage.engine.paced import paced
from leadline.storage.oncall.rules import weekly_hours
from leadline.storage.oncall.rules.oncall_schedule import (
    LAYERS_MOST,
    WINDOWS_OF_SCHEDULE_MOST,
    OnCallLayer,
    OnCallSchedule,
    duties,
    windows_of_schedule_fault,
)
from leadline.storage.oncall.rules.weekly_hours import (
    DAY_MINUTES,
    HoursSpan,
    WeeklyWindow,
    first_instant,
    hours_at,
)
from tests.oncall.test_oncall_schedule_rule import ZONES, instants, window_lists

EVERY_DAY = tuple(range(7))


def spans_of(
    windows: tuple[WeeklyWindow, ...], zone: ZoneInfo, at: Instant
) -> list[tuple[Instant, Instant]]:
    """All spans from five weeks before the instant to five weeks after it, united."""
    today = to_datetime(at).astimezone(zone).date()
    found: list[tuple[Instant, Instant]] = []
    for number in range(-35, 36):
        day = today + timedelta(days=number)
        for one in windows:
            if day.weekday() in one.weekdays:
                begins = datetime.combine(day, time()) + timedelta(minutes=one.from_)
                ends = begins + timedelta(minutes=one.minutes)
                found.append((first_instant(begins, zone), first_instant(ends, zone)))
    united: list[tuple[Instant, Instant]] = []
    for from_at, until in sorted(span for span in found if span[0] < span[1]):
        if united and from_at <= united[-1][1]:
            united[-1] = united[-1][0], max(united[-1][1], until)
        else:
            united.append((from_at, until))
    return united


def slow_hours_at(
    windows: tuple[WeeklyWindow, ...], zone: ZoneInfo, at: Instant
) -> HoursSpan | None:
    spans = spans_of(windows, zone, at)
    for from_at, until in spans:
        if from_at <= at < until:
            is_whole = from_at == spans[0][0]
            return None if is_whole else HoursSpan(True, from_at, until)
    for (_, from_at), (until, _) in pairwise(spans):
        if from_at <= at < until:
            return HoursSpan(False, from_at, until)
    return None


@given(window_lists, st.sampled_from(ZONES), instants, st.lists(st.integers(-9_000, 9_000)))
def test_stored_edges_give_the_spans_of_a_search_without_them(
    windows: tuple[WeeklyWindow, ...], name: str, near: Instant, minutes: list[int]
) -> None:
    zone = ZoneInfo(name or "UTC")
    at = [near, *(Instant(near + minute * MINUTE) for minute in minutes)]
    # Each edge, and the instants beside it.
    edges = [edge for span in spans_of(windows, zone, near) for edge in span]
    at += [Instant(edge + by) for edge in edges for by in (-1, 0) if abs(edge - near) < 8 * DAY]
    for one in at:
        assert hours_at(windows, zone, one) == slow_hours_at(windows, zone, one), to_datetime(one)


def most_windows() -> OnCallSchedule:
    """Nearly as many windows and layers as a schedule can have, all with short spans."""
    anchor = from_datetime(datetime(2026, 1, 5, tzinfo=UTC))
    each = WINDOWS_OF_SCHEDULE_MOST // LAYERS_MOST
    step = DAY_MINUTES // each
    return OnCallSchedule(
        tuple(
            OnCallLayer(
                anchor,
                DAY,
                (place,),
                "Europe/Berlin",
                tuple(window_at(step * number + 7 * place) for number in range(each - 1)),
            )
            for place in range(LAYERS_MOST)
        )
    )


def window_at(minute: int) -> WeeklyWindow:
    return WeeklyWindow(EVERY_DAY, minute, minute + 3)


def test_the_spans_of_a_week_are_united_once() -> None:
    roster = most_windows()
    united = 0
    unite = weekly_hours._united

    def counted(spans: Any) -> Any:
        nonlocal united
        united += 1
        return unite(spans)

    from_at = from_datetime(datetime(2026, 3, 28, tzinfo=UTC))
    with patch.object(weekly_hours, "_united", counted):
        found = list(duties(roster, [], from_at, Instant(from_at + DAY)))
    assert len(found) > 200
    # For each layer: the week, the ones beside it, and the three of them together.
    assert united <= 4 * LAYERS_MOST


def test_the_windows_of_all_layers_are_bounded_together() -> None:
    layers = [layer.windows for layer in most_windows().layers]
    assert windows_of_schedule_fault(layers) is None
    one = WeeklyWindow(EVERY_DAY, 0, 1)
    full = (one,) * 50
    assert windows_of_schedule_fault([full] * (WINDOWS_OF_SCHEDULE_MOST // 50)) is None
    fault = windows_of_schedule_fault([full, (), full, full, full, (replace(one, until=2),)])
    assert fault is not None
    assert fault[0] == 5
    assert str(WINDOWS_OF_SCHEDULE_MOST) in fault[1]


async def test_other_tasks_run_between_two_items_of_a_long_computation() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        seen = await paced(turns for _ in range(5))
        # Trio runs the two tasks of a round in any order.
        assert seen[-1] - seen[0] >= 3
        nursery.cancel_scope.cancel()
