"""The months that the history of a page has, compared with a model that reads day by day."""

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
    """Returns the 90 days that a page shows."""
    today = to_datetime(now).date()
    return [today - timedelta(days=back) for back in range(90)]


def midnight(day: date) -> Instant:
    return from_datetime(datetime(day.year, day.month, day.day, tzinfo=UTC))


@given(moments, st.integers(-200, 60))
@example(from_datetime(datetime(2024, 3, 30, tzinfo=UTC)), -89)
@example(from_datetime(datetime(2024, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)), 1)
def test_a_month_is_available_if_it_has_one_of_the_90_days(now: Instant, offset: int) -> None:
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
def test_the_months_partition_the_90_days_until_now(now: Instant) -> None:
    names = months_shown(now)
    assert names == sorted({f"{day:%Y-%m}" for day in days_of(now)}, reverse=True)
    spans = [month.shown for name in names if isinstance(month := month_of(name, now), Month)]
    assert len(spans) == len(names)
    assert spans[0].until == now + 1
    assert spans[-1].from_ == earliest_shown(now) == midnight(days_of(now)[-1])
    for later, earlier in pairwise(spans):
        assert earlier.until == later.from_


@given(moments)
def test_the_default_month_is_the_current_one(now: Instant) -> None:
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
def test_an_invalid_month_is_refused(name: str) -> None:
    assert month_of(name, NOW) is MonthRefusal.INVALID_MONTH


@given(st.text(max_size=12))
def test_any_text_is_a_month_or_a_refusal(name: str) -> None:
    found = month_of(name, NOW)
    assert isinstance(found, MonthRefusal) or found.name == name


@pytest.mark.parametrize("name", ["0000-01", "0001-01", "9999-12", "2026-07", "2026-02"])
def test_a_month_without_a_shown_day_is_outside_the_history(name: str) -> None:
    assert month_of(name, NOW) is MonthRefusal.MONTH_OUTSIDE_HISTORY


def test_the_first_month_begins_at_midnight_of_the_first_day() -> None:
    found = month_of("2026-03", NOW)
    assert isinstance(found, Month)
    assert found.shown.from_ == midnight(date(2026, 3, 12)) == NOW - NOW % DAY - 89 * DAY
    assert found.shown.until == midnight(date(2026, 4, 1))
