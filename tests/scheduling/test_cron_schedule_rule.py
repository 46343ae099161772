"""Cron expressions in time zones, against a walk over each minute of the wall clock."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from leadline.probes.check.cron_schedule import cron_fault, cron_schedule
from leadline.storage.core.instant import DAY, MINUTE

ZONES: Final = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    # Half an hour.
    "Australia/Lord_Howe",
    # At midnight, where a day begins at 01:00 or ends twice.
    "America/Havana",
    "Asia/Beirut",
    "America/Santiago",
    # At 00:01, so that minutes of two dates alternate.
    "America/St_Johns",
    # A skipped day.
    "Pacific/Apia",
    # Winter time in summer, at movable dates.
    "Africa/Casablanca",
    "Asia/Kathmandu",
)
ONE: Final = timedelta(minutes=1)


@dataclass(frozen=True)
class Part:
    """Text of a field, and what it matches."""

    text: str
    matches: Callable[[int], bool]


@st.composite
def numbers(draw: st.DrawFn, least: int, most: int) -> Part:
    # A step after a single number continues to the end of the field, so the range has two.
    first = draw(st.integers(least, most - 1))
    last = draw(st.integers(first + 1, most))
    step = draw(st.integers(1, 12))
    return draw(
        st.sampled_from(
            [
                Part("*", lambda _: True),
                Part(f"*/{step}", lambda n: (n - least) % step == 0),
                Part(f"{first}", lambda n: n == first),
                Part(f"{first}-{last}", lambda n: first <= n <= last),
                Part(f"{first},{last}", lambda n: n in (first, last)),
                Part(
                    f"{first}-{last}/{step}",
                    lambda n: first <= n <= last and (n - first) % step == 0,
                ),
            ]
        )
    )


@dataclass(frozen=True)
class Expression:
    minute: Part
    hour: Part
    day: Part
    weekday: Part

    @property
    def text(self) -> str:
        return f"{self.minute.text} {self.hour.text} {self.day.text} * {self.weekday.text}"

    def is_due(self, wall: datetime) -> bool:
        if not (self.minute.matches(wall.minute) and self.hour.matches(wall.hour)):
            return False
        day = self.day.matches(wall.day) if self.day.text != "L" else _is_last(wall.date())
        weekday = self.weekday.matches(wall.isoweekday() % 7)
        if "*" in (self.day.text[0], self.weekday.text[0]):
            return day and weekday
        return day or weekday

    @property
    def is_wild(self) -> bool:
        return "*" in (self.minute.text[0], self.hour.text[0])


def _is_last(day: date) -> bool:
    return (day + timedelta(days=1)).day == 1


days = st.one_of(
    st.just(Part("*", lambda _: True)),
    st.just(Part("L", lambda _: False)),
    numbers(1, 28),
)
expressions = st.builds(Expression, numbers(0, 59), numbers(0, 23), days, numbers(0, 6))


@st.composite
def moments(draw: st.DrawFn, zone: str) -> datetime:
    """An instant, mostly near a change of the clocks."""
    place = ZoneInfo(zone)
    day = datetime(draw(st.integers(2005, 2026)), draw(st.integers(1, 12)), 1, tzinfo=UTC)
    hours = [day + timedelta(hours=n) for n in range(31 * 24)]
    changes = [
        hour
        for hour, later in pairwise(hours)
        if hour.astimezone(place).utcoffset() != later.astimezone(place).utcoffset()
    ]
    near = draw(st.sampled_from(changes)) if changes else day
    return near + timedelta(minutes=draw(st.integers(-1_600, 1_600)))


def walked(expression: Expression, zone: str, begin: datetime, end: datetime) -> Iterator[datetime]:
    """Yields the due instants in [begin, end): a clerk who looks at the clock each minute."""
    place = ZoneInfo(zone)
    seen: set[datetime] = set()
    # A day before, for the local times that already occurred.
    at = begin - timedelta(hours=26)
    shown = (at - ONE).astimezone(place).replace(tzinfo=None)
    while at < end:
        wall = at.astimezone(place).replace(tzinfo=None)
        skipped, missing = shown + ONE, []
        while skipped < wall:
            missing.append(skipped)
            skipped += ONE
        if expression.is_wild:
            due = expression.is_due(wall)
        else:
            due = expression.is_due(wall) and wall not in seen
            due = due or any(map(expression.is_due, missing))
        if due and at >= begin:
            yield at
        seen.add(wall)
        shown, at = wall, at + ONE


def micros(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@given(st.data(), expressions, st.sampled_from(ZONES), st.integers(0, 59_999_999))
def test_due_instants_are_those_of_a_walk_over_the_minutes(
    data: st.DataObject, expression: Expression, zone: str, past_us: int
) -> None:
    assume(cron_fault(expression.text) is None)
    begin = data.draw(moments(zone))
    end = begin + timedelta(hours=30)
    expected = [micros(at) for at in walked(expression, zone, begin, end)]
    schedule = cron_schedule(expression.text, zone)
    found, at = [], micros(begin) - 1 - past_us % 1_000
    while (at := schedule.next_after(at)) < micros(end):
        found.append(at)
    assert found == expected
    # From any instant, both directions agree with the same list.
    for due, following in pairwise(expected):
        between = min(due + past_us, following - 1)
        assert schedule.next_after(between) == following
        assert schedule.last_through(between) == due
        assert schedule.is_due(due)


@st.composite
def rare_days(draw: st.DrawFn, day: date) -> tuple[str, Callable[[date], bool]]:
    """Day fields that match about once a month, among others on the given day."""
    weekday, number = day.isoweekday() % 7, (day.day + 6) // 7
    later = day + timedelta(days=7)
    found: list[tuple[str, Callable[[date], bool]]] = []
    if number < 5:
        found.append(
            (f"* * {weekday}#{number}", lambda d: _nth(d) == (weekday, number)),
        )
    if later.month != day.month:
        found.append((f"* * {weekday}L", lambda d: d.isoweekday() % 7 == weekday and _ends(d, 7)))
    if _is_last(day):
        found.append(("L * *", _is_last))
    if day.day < 29:
        found.append((f"{day.day} * *", lambda d: d.day == day.day))
    assume(found)
    return draw(st.sampled_from(found))


def _nth(day: date) -> tuple[int, int]:
    return day.isoweekday() % 7, (day.day + 6) // 7


def _ends(day: date, days: int) -> bool:
    return (day + timedelta(days=days)).month != day.month


def quarters(
    hour: int, matches: Callable[[date], bool], zone: str, around: date, days: int
) -> list[int]:
    """Each quarter of an hour that a clock shows in the hour on matching days."""
    place = ZoneInfo(zone)
    found = []
    for number in range(-days, days + 1):
        day = around + timedelta(days=number)
        if not matches(day):
            continue
        start = datetime(day.year, day.month, day.day, tzinfo=UTC) - timedelta(hours=15)
        for quarter in range(4 * 54):
            at = start + timedelta(minutes=15 * quarter)
            wall = at.astimezone(place)
            if wall.date() == day and wall.hour == hour and not wall.minute % 15:
                found.append(micros(at))
    return sorted(found)


@cache
def skipped(zone: str) -> list[datetime]:
    """Local hours that a change of the clocks skips, at least in part."""
    place, found = ZoneInfo(zone), []
    days = [datetime(2015, 1, 1, tzinfo=UTC) + timedelta(days=n) for n in range(6_500)]
    offsets = [day.astimezone(place).utcoffset() or timedelta() for day in days]
    for day, (before, after) in zip(days, pairwise(offsets), strict=False):
        if before < after:
            hours = (day + timedelta(hours=n) for n in range(25))
            change = next(h for h in hours if h.astimezone(place).utcoffset() == after)
            found.append(change.astimezone(place) - (after - before))
    return found


@given(st.data(), st.sampled_from(ZONES), st.integers(-40, 40))
def test_a_rare_day_whose_times_are_skipped_has_a_next_and_a_last_due_instant(
    data: st.DataObject, zone: str, days_on: int
) -> None:
    near = data.draw(st.sampled_from(skipped(zone))) if skipped(zone) else data.draw(moments(zone))
    day, hour = near.date(), near.hour
    fields, matches = data.draw(rare_days(day))
    assert cron_fault(f"*/15 {hour} {fields}") is None
    schedule = cron_schedule(f"*/15 {hour} {fields}", zone)
    at = micros(near.astimezone(UTC) + timedelta(days=days_on))
    dues = quarters(hour, matches, zone, day + timedelta(days=days_on), 80)
    before, after = (max(d for d in dues if d <= at), min(d for d in dues if d > at))
    assert (schedule.last_through(at), schedule.next_after(at)) == (before, after)
    assert after - before <= schedule.distance_most_us


@pytest.mark.parametrize(
    ("expression", "zone", "day", "gap_days"),
    [
        ("*/15 2 * * SUN#2", "America/New_York", date(2027, 3, 14), 56),
        ("*/30 2 * * 7L", "Europe/Berlin", date(2027, 3, 28), 56),
        ("* 2 L * *", "Europe/Berlin", date(2030, 3, 31), 61),
    ],
)
def test_a_skipped_day_joins_two_distances(
    expression: str, zone: str, day: date, gap_days: int
) -> None:
    schedule = cron_schedule(expression, zone)
    at = micros(datetime(day.year, day.month, day.day, tzinfo=UTC))
    after, before = schedule.next_after(at), schedule.last_through(at)
    assert (after - before + DAY // 2) // DAY == gap_days
    assert schedule.next_after(before) == after
    assert schedule.last_through(after - 1) == before
    assert schedule.longest_us <= 35 * DAY < after - before <= schedule.distance_most_us


@given(expressions)
def test_distances_of_days_are_those_of_a_walk(expression: Expression) -> None:
    assume(cron_fault(expression.text) is None)
    begin, end = date(2024, 1, 1), date(2036, 1, 1)
    minutes = [
        60 * hour + minute
        for hour in range(24)
        for minute in range(60)
        if expression.hour.matches(hour) and expression.minute.matches(minute)
    ]
    noon = datetime(2024, 1, 1, minutes[0] // 60, minutes[0] % 60)  # noqa: DTZ001 - local
    days = [
        number
        for number in range((end - begin).days)
        if expression.is_due(noon + timedelta(days=number))
    ]
    between = {1_440 * (b - a) - minutes[-1] + minutes[0] for a, b in pairwise(days)}
    apart = between | {b - a for a, b in pairwise(minutes)}
    schedule = cron_schedule(expression.text, "")
    found = schedule.shortest_us // MINUTE, schedule.longest_us // MINUTE
    assert found == (min(apart), max(apart))


@given(expressions, st.integers(0, 10_000))
def test_the_distances_are_bounds_without_changes_of_the_clock(
    expression: Expression, days_on: int
) -> None:
    assume(cron_fault(expression.text) is None)
    schedule = cron_schedule(expression.text, "")
    at = schedule.next_after((20_000 + days_on) * DAY)
    for _ in range(50):
        following = schedule.next_after(at)
        assert schedule.shortest_us <= following - at <= schedule.longest_us
        at = following


def test_clock_changes_in_berlin() -> None:
    def dues(expression: str, day: date) -> list[str]:
        schedule = cron_schedule(expression, "Europe/Berlin")
        at = micros(datetime(day.year, day.month, day.day, tzinfo=ZoneInfo("Europe/Berlin")))
        end = at + 23 * 60 * MINUTE
        found = []
        at -= 1
        while (at := schedule.next_after(at)) < end:
            found.append(f"{datetime.fromtimestamp(at / 1e6, UTC):%H:%M}")
        return found

    spring, autumn = date(2026, 3, 29), date(2026, 10, 25)
    assert dues("30 2 * * *", spring) == ["01:00"]
    assert dues("0,30 2,3 * * *", spring) == ["01:00", "01:30"]
    assert dues("30 2 * * *", autumn) == ["00:30"]
    assert dues("*/30 2 * * *", spring) == []
    assert dues("*/30 2 * * *", autumn) == ["00:00", "00:30", "01:00", "01:30"]


@pytest.mark.parametrize(
    ("expression", "word"),
    [
        ("* * * *", "five fields"),
        ("0 * * * * *", "five fields"),
        ("@daily", "five fields"),
        ("0 25 * * *", "hour"),
        ("0 0 30 2 *", "day-of-month"),
        ("0 0 29 2 *", "35 days"),
        ("0 0 1 1 *", "35 days"),
        ("0 0 * 2 MON#5", "never due"),
        (f"{'0,' * 60}0 * * * *", "100 characters"),
    ],
)
def test_an_expression_that_is_refused_says_why(expression: str, word: str) -> None:
    assert word in (cron_fault(expression) or "")
