"""Personal rules against a model that reads the wall clock minute by minute."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import SECOND, Instant, from_datetime, to_datetime
from leadline.storage.notifications.rules.personal_rules import (
    PersonalRule,
    PersonalRules,
    QuietHours,
    Urgency,
    after_quiet,
    planned_notifications,
    quiet_fault,
    rules_fault,
    urgency_of,
)

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")
# The clocks change on or near these days in the zones above.
CHANGES = ("2026-03-29", "2026-10-25", "2026-03-08", "2026-11-01", "2026-04-05", "2026-10-04")

quiets = st.builds(
    QuietHours,
    st.integers(0, 1_439),
    st.integers(0, 1_439),
    st.sampled_from(ZONES),
).filter(lambda quiet: quiet.from_minute != quiet.until_minute)
instants = st.builds(
    lambda day, seconds: Instant(
        from_datetime(datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(seconds=seconds))
    ),
    st.sampled_from(CHANGES),
    st.integers(-2 * 86_400, 2 * 86_400),
)
rules = st.lists(st.builds(PersonalRule, st.integers(1, 6), st.integers(0, 86_400)), max_size=6)


def shows_quiet(quiet: QuietHours, at: datetime) -> bool:
    """Walks the hands of the clock from the start of the quiet hours to their end."""
    local = at.astimezone(ZoneInfo(quiet.zone))
    shown = (local.hour, local.minute)
    minute = quiet.from_minute
    while minute % 1_440 != quiet.until_minute:
        if shown == divmod(minute % 1_440, 60):
            return True
        minute += 1
    return False


def model(quiet: QuietHours, at: Instant) -> datetime:
    moment = to_datetime(at)
    if not shows_quiet(quiet, moment):
        return moment
    moment = moment.replace(second=0, microsecond=0)
    while shows_quiet(quiet, moment):
        moment += timedelta(minutes=1)
    return moment


@given(quiets, instants)
def test_quiet_hours_end_when_the_wall_clock_says_so(quiet: QuietHours, at: Instant) -> None:
    assert to_datetime(after_quiet(quiet, at)) == model(quiet, at)


@given(st.lists(st.integers(1, 6), max_size=6, unique=True), rules, rules, quiets, instants)
def test_each_usable_method_is_planned_as_the_rules_say(
    methods: list[int],
    page: list[PersonalRule],
    ticket: list[PersonalRule],
    quiet: QuietHours,
    now: Instant,
) -> None:
    person = PersonalRules(methods, {Urgency.PAGE: page, Urgency.TICKET: ticket}, quiet)
    for urgency, wanted in ((Urgency.PAGE, page), (Urgency.TICKET, ticket)):
        named = [rule for rule in wanted if rule.method in methods]
        found = planned_notifications(person, urgency, now)
        if not named:
            expected = dict.fromkeys(methods, 0)
        else:
            expected = {}
            for rule in named:
                known = expected.get(rule.method, rule.delay_seconds)
                expected[rule.method] = min(known, rule.delay_seconds)
        assert {one.method for one in found} == set(expected)
        assert len(found) == len(expected)
        assert [one.at for one in found] == sorted(one.at for one in found)
        for one in found:
            due = Instant(now + expected[one.method] * SECOND)
            if urgency is Urgency.PAGE:
                assert one.at == due
            else:
                assert to_datetime(one.at) == model(quiet, due)


@pytest.mark.parametrize(
    ("severity", "urgency"),
    [("critical", "page"), ("major", "page"), ("minor", "ticket"), ("none", "ticket")],
)
def test_the_impact_decides_the_urgency(severity: str, urgency: str) -> None:
    assert urgency_of(severity) == urgency


def test_quiet_hours_over_a_skipped_end_last_until_the_clocks_change() -> None:
    # Berlin skips 02:00 to 03:00 on 29 March 2026.
    quiet = QuietHours(23 * 60, 2 * 60 + 30, "Europe/Berlin")
    at = from_datetime(datetime(2026, 3, 29, 0, 10, 5, tzinfo=UTC))
    assert to_datetime(after_quiet(quiet, at)) == datetime(2026, 3, 29, 1, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("quiet", "field"),
    [
        (QuietHours(-1, 10, "UTC"), "quiet_hours.from"),
        (QuietHours(0, 1_440, "UTC"), "quiet_hours.until"),
        (QuietHours(5, 5, "UTC"), "quiet_hours.until"),
        (QuietHours(5, 6, "Mars/Base"), "quiet_hours.time_zone"),
        (QuietHours(5, 6, ""), "quiet_hours.time_zone"),
    ],
)
def test_invalid_quiet_hours_are_refused_with_the_field(quiet: QuietHours, field: str) -> None:
    fault = quiet_fault(quiet)
    assert fault is not None
    assert fault[0] == field


def test_rules_name_own_methods_once_with_a_bounded_delay() -> None:
    assert rules_fault([PersonalRule(1, 0), PersonalRule(2, 86_400)], {1, 2}) is None
    for wrong, field in (
        ([PersonalRule(3, 0)], "[0].method_id"),
        ([PersonalRule(1, 0), PersonalRule(2, 86_401)], "[1].delay_seconds"),
        ([PersonalRule(1, 0), PersonalRule(1, 60)], ""),
        ([PersonalRule(1, 0)] * 21, ""),
    ):
        fault = rules_fault(wrong, {1, 2})
        assert fault is not None
        assert fault[0] == field
