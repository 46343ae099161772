"""Which months of a page's past may be asked for, held against a reading day by day."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leadline.storage.core.instant import DAY, Instant, from_datetime, to_datetime
from leadline.storage.status_pages.rules.status_page_history import (
    Month,
    MonthRefusal,
    earliest_shown,
    month_of,
    months_shown,
)

NOW = from_datetime(datetime(2026, 6, 9, 14, 26, 8, tzinfo=UTC))
moments = st.integers(
    from_datetime(datetime(2000, 1, 1, tzinfo=UTC)),
    from_datetime(datetime(2199, 12, 31, tzinfo=UTC)),
).map(Instant)


def days_of(now: Instant) -> list[date]:
    """The ninety days that a page draws."""
    today = to_datetime(now).date()
    return [today - timedelta(days=back) for back in range(90)]


def midnight(day: date) -> Instant:
    return from_datetime(datetime(day.year, day.month, day.day, tzinfo=UTC))


@given(moments, st.integers(-200, 60))
@example(from_datetime(datetime(2024, 3, 30, tzinfo=UTC)), -89)
@example(from_datetime(datetime(2024, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)), 1)
def test_a_month_may_be_asked_for_exactly_if_it_holds_one_of_the_ninety_days(
    now: Instant, offset: int
) -> None:
    name = f"{to_datetime(now).date() + timedelta(days=offset):%Y-%m}"
    shown = [day for day in days_of(now) if f"{day:%Y-%m}" == name]
    found = month_of(name, now)
    if not shown:
        assert found is MonthRefusal.MONTH_OUTSIDE_HISTORY
        return
    assert isinstance(found, Month)
    assert found.name == name
    assert found.shown.from_ == midnight(min(shown))
    assert found.shown.until == min(midnight(max(shown) + timedelta(days=1)), now + 1)


@given(moments)
def test_the_months_together_are_the_ninety_days_until_now_each_instant_once(now: Instant) -> None:
    names = months_shown(now)
    assert names == sorted({f"{day:%Y-%m}" for day in days_of(now)}, reverse=True)
    spans = [month.shown for name in names if isinstance(month := month_of(name, now), Month)]
    assert len(spans) == len(names)
    assert spans[0].until == now + 1
    assert spans[-1].from_ == earliest_shown(now) == midnight(days_of(now)[-1])
    for later, earlier in pairwise(spans):
        assert earlier.until == later.from_


@given(moments)
def test_who_asks_for_no_month_gets_the_present_one(now: Instant) -> None:
    found = month_of(None, now)
    assert found == month_of(f"{to_datetime(now):%Y-%m}", now)
    assert isinstance(found, Month)
    assert found.shown.from_ <= now < found.shown.until


@pytest.mark.parametrize(
    "name",
    [
        *("", "2026", "2026-6", "2026-13", "2026-00", "26-06", "2026-06-01", "2026-06\n"),
        *(" 2026-06", "2026/06", "２０２６-06", "-2026-06", "20260-6", "today", "2026-06\0"),
    ],
)
def test_what_is_no_month_is_refused_as_such(name: str) -> None:
    assert month_of(name, NOW) is MonthRefusal.INVALID_MONTH


@given(st.text(max_size=12))
def test_no_text_breaks_it(name: str) -> None:
    found = month_of(name, NOW)
    assert isinstance(found, MonthRefusal) or found.name == name


@pytest.mark.parametrize("name", ["0000-01", "0001-01", "9999-12", "2026-07", "2026-02"])
def test_a_month_without_a_day_of_the_history_is_outside_it(name: str) -> None:
    assert month_of(name, NOW) is MonthRefusal.MONTH_OUTSIDE_HISTORY


def test_the_first_day_of_the_history_is_shown_from_its_midnight() -> None:
    found = month_of("2026-03", NOW)
    assert isinstance(found, Month)
    assert found.shown.from_ == midnight(date(2026, 3, 12)) == NOW - NOW % DAY - 89 * DAY
    assert found.shown.until == midnight(date(2026, 4, 1))
