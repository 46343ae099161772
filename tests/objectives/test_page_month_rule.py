"""Months of reports in the zone of a page, and the figure of a month."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.availability import Withheld
from leadline.storage.core.instant import Instant, from_datetime, to_datetime
from leadline.storage.core.sli import Split
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.status_pages.rules.page_month import (
    MONTHS_MOST,
    ReportMonth,
    covered_part,
    month_figure,
    report_month,
    report_months,
)
from leadline.storage.status_pages.rules.status_page_history import MonthRefusal

pytestmark = pytest.mark.rule
ZONES = ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/Sao_Paulo", "Pacific/Auckland"]


@given(
    st.integers(1_420_070_400, 2_051_222_400),
    st.sampled_from(ZONES),
    st.integers(0, MONTHS_MOST - 1),
)
def test_a_month_has_exactly_the_instants_of_its_local_days(
    second: int, zone: str, back: int
) -> None:
    at = datetime.fromtimestamp(second, UTC)
    now = from_datetime(at)
    names = report_months(zone, now)
    found = report_month(names[back], zone, now)
    assert isinstance(found, ReportMonth)
    for edge, step in ((found.span.from_, 0), (found.span.until, -1)):
        inside = to_datetime(Instant(edge + step)).astimezone(ZoneInfo(zone))
        outside = to_datetime(Instant(edge + step - 1 if step == 0 else edge)).astimezone(
            ZoneInfo(zone)
        )
        assert f"{inside:%Y-%m}" == names[back]
        assert f"{outside:%Y-%m}" != names[back]
    assert names[0] == f"{at.astimezone(ZoneInfo(zone)):%Y-%m}"
    earliest = datetime.strptime(f"{names[-1]}-01", "%Y-%m-%d").replace(tzinfo=UTC)
    too_early = earliest - timedelta(days=1)
    assert report_month(f"{too_early:%Y-%m}", zone, now) is MonthRefusal.MONTH_OUTSIDE_HISTORY
    assert report_month("2026-13", zone, now) is MonthRefusal.INVALID_MONTH
    by_default = report_month(None, zone, now)
    assert isinstance(by_default, ReportMonth)
    assert by_default.name == names[1]


@given(
    *(st.one_of(st.none(), st.integers(0, 40)) for _ in range(2)),
    st.integers(0, 30),
    st.integers(0, 30),
    st.integers(0, 3),
    st.integers(0, 2),
    st.booleans(),
)
def test_a_figure_needs_all_stored_time_of_the_covered_part(
    begun: int | None,
    through: int | None,
    good: int,
    bad: int,
    missing: int,
    edge: int,
    is_over: bool,
) -> None:
    month = TimeSpan(Instant(10), Instant(30))
    part = covered_part(
        month,
        None if begun is None else Instant(begun),
        None if through is None else Instant(through),
    )
    hours = [] if None in (begun, through) else range(begun or 0, through or 0)
    assert (0 if part is None else part.length_us) == sum(10 <= hour < 30 for hour in hours)
    stored = 0 if part is None else part.length_us - missing
    over_at = Instant(30) if is_over else None
    split = Split(good, bad, 0, 0)
    found = month_figure(part, stored, split, 1, over_at=over_at, edge_us=edge).availability
    if part is not None and is_over and (through or 0) < 30:
        assert found.withheld_reason is Withheld.NOT_SEALED_YET
    elif part is not None and missing and missing == edge:
        assert found.withheld_reason is Withheld.EDGE_NOT_STORED
    elif part is None:
        assert found.withheld_reason is Withheld.NOTHING_SEALED
    elif missing:
        assert found.withheld_reason is Withheld.STORAGE_GAP
    elif not good + bad:
        assert found.withheld_reason is Withheld.NOTHING_MEASURED
    else:
        assert found.uptime_percent == pytest.approx(100 * good / (good + bad))
    assert (found.uptime_percent is None) is (found.withheld_reason is not None)
