"""Cron expressions in time zones, against a walk over each minute of the wall clock."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
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
