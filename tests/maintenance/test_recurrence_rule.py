"""Recurring maintenance, compared with a walk through a local calendar day by day."""

from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest
from dateutil.rrule import rrulestr
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.storage.core.instant import DAY, HOUR, SECOND, Instant, from_datetime, to_datetime
from leadline.storage.maintenance.rules import Recurrence, fault, occurrences
from tests.support.run.calls import counted_calls
from tests.support.run.effort import examples

ZONES = ["", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]
DAYS = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]


def at(text: str, zone: str = "UTC") -> Instant:
    local = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))
    return from_datetime(local.astimezone(UTC))


@given(
    st.sets(st.sampled_from(range(7)), min_size=1),
    st.integers(1, 3),
    st.integers(0, 500),
    st.integers(0, 24 * 60 - 1),
    st.sampled_from(ZONES),
)
@settings(max_examples=examples(100), deadline=None)
def test_weekly_rules_come_at_the_local_time_of_their_days(
    days: set[int], interval: int, day: int, minute: int, zone: str
) -> None:
    tz = ZoneInfo(zone or "UTC")
    first = datetime.fromisoformat("2026-01-05") + timedelta(days=day, minutes=minute)
    first += timedelta(days=next(n for n in range(7) if (first.weekday() + n) % 7 in days))
    starts = from_datetime(first.replace(tzinfo=tz).astimezone(UTC))
    by_day = ",".join(DAYS[n] for n in sorted(days))
    rule = f"FREQ=WEEKLY;INTERVAL={interval};BYDAY={by_day}"
    until = Instant(starts + 200 * DAY)
    if to_datetime(starts).astimezone(tz).replace(tzinfo=None) != first:
        return  # A first occurrence at a skipped local time is not valid.
    found = occurrences(Recurrence(rule, starts, HOUR, zone), Instant(starts - 1), until)
    monday = first - timedelta(days=first.weekday())
    expected = []
    for n in range(210):
        local = first + timedelta(days=n)
        if local.weekday() in days and (local - monday).days // 7 % interval == 0:
            instant = from_datetime(local.replace(tzinfo=tz).astimezone(UTC))
            if instant <= until:
                expected.append(instant)
    assert found == expected


def test_a_skipped_local_time_begins_when_the_clocks_have_gone_forward() -> None:
    starts = at("2026-03-28T02:30", "Europe/Berlin")
    rule = Recurrence("FREQ=DAILY", starts, HOUR, "Europe/Berlin")
    assert occurrences(rule, starts, Instant(starts + 2 * DAY)) == [
        at("2026-03-29T01:30"),
        at("2026-03-30T00:30"),
    ]


@pytest.mark.parametrize(
    ("end", "count"),
    [("COUNT=3", 3), ("UNTIL=20260107", 3), ("UNTIL=20260107T020000Z", 3), ("UNTIL=20260106", 2)],
)
def test_a_rule_ends_at_its_count_or_end(end: str, count: int) -> None:
    starts = at("2026-01-05T02:00")
    rule = Recurrence(f"FREQ=DAILY;{end}", starts, HOUR)
    assert fault(rule) is None
    assert len(occurrences(rule, Instant(starts - 1), Instant(starts + 300 * DAY))) == count


def test_a_rule_without_an_occurrence_is_refused_after_a_limited_search() -> None:
    starts = at("2026-01-05T02:00")
    never = Recurrence("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", starts, HOUR)
    with counted_calls() as calls:
        found = fault(never)
    assert found == ("starts_at", "must be an instant at which the rule begins")
    # A search to the end of the calendar makes twenty times as many calls.
    assert calls.count < 1_000_000


@given(
    st.sampled_from(["DAILY", "WEEKLY", "MONTHLY", "YEARLY"]),
    st.integers(1, 366),
    st.sampled_from(["", ";BYMONTHDAY=29", ";BYMONTH=2;BYMONTHDAY=-1", ";BYDAY=TU", ";COUNT=5"]),
    st.integers(0, 40_000),
)
def test_a_rule_occurs_as_in_the_library_in_any_year(
    often: str, interval: int, more: str, day: int
) -> None:
    rule = f"FREQ={often};INTERVAL={interval}{more}"
    starts = Instant(at("2026-01-05T02:00") + day * DAY)
    until = Instant(starts + 9 * 366 * DAY)
    begins = to_datetime(starts).replace(tzinfo=None)
    wanted = takewhile(
        lambda found: found <= to_datetime(until).replace(tzinfo=None),
        islice(rrulestr(rule, dtstart=begins), 4_000),
    )
    found = occurrences(Recurrence(rule, starts, HOUR), Instant(starts - 1), until)
    assert found == [from_datetime(each.replace(tzinfo=UTC)) for each in wanted]


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "FREQ=HOURLY",
        "FREQ=DAILY;BYHOUR=1,2,3",
        "FREQ=DAILY;FREQ=DAILY",
        "FREQ=DAILY;INTERVAL=0",
        "FREQ=DAILY;INTERVAL=367",
        "FREQ=DAILY;COUNT=1001",
        "FREQ=DAILY;UNTIL=tomorrow",
        "FREQ=WEEKLY;BYDAY=XX",
        "FREQ=DAILY\nDTSTART:20260101T000000Z",
        "FREQ=DAILY;BYMONTH=" + "1," * 100 + "1",
        "FREQ=DAILY;BYMONTHDAY=99999999999",
        "FREQ=DAILY;UNTIL=20269999",
    ],
)
def test_an_invalid_rule_is_refused_by_its_field(rule: str) -> None:
    found = fault(Recurrence(rule, at("2026-01-05T02:00"), HOUR))
    assert found is not None
    assert found[0] in ("rrule", "starts_at")


@given(st.text(max_size=60) | st.from_regex(r"FREQ=(DAILY|WEEKLY);[A-Z]+=[0-9A-Z,;=+-]{0,30}"))
@settings(max_examples=examples(300), deadline=None)
def test_any_text_is_judged_without_an_exception(text: str) -> None:
    fault(Recurrence(text, at("2026-01-05T02:00"), HOUR))


def test_an_invalid_zone_or_duration_is_refused() -> None:
    starts = at("2026-01-05T02:00")
    assert (fault(Recurrence("FREQ=DAILY", starts, HOUR, "Mars/Base")) or ("",))[0] == "timezone"
    for duration in (59 * SECOND, 8 * DAY):
        said = fault(Recurrence("FREQ=DAILY", starts, duration))
        assert said is not None
        assert said[0] == "duration_seconds"
