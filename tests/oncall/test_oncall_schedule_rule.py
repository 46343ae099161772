"""Rosters against a calendar that is walked minute by minute, written from the rules' words."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    Instant,
    from_datetime,
    is_timezone,
    to_datetime,
)
from leadline.storage.oncall.rules.oncall_schedule import (
    OnCallOverride,
    OnCallSchedule,
    duties,
    hand_off,
    on_call,
    override_fault,
    roster_fault,
    stretch,
)

# Berlin sets its clocks forward on 2026-03-29 at 02:00 and back on 2026-10-25 at 03:00, Lord Howe
# by half an hour, Troll by two hours. Saint John's has an offset with half an hour, the Chatham
# Islands with 45 minutes. Dublin and Casablanca have standard time in the other half of the year.
ZONES = ["", "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/St_Johns"]
ZONES += ["Pacific/Chatham", "Europe/Dublin", "Antarctica/Troll", "Africa/Casablanca"]
NEAR = [datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 10, 25, tzinfo=UTC)]
instants = st.builds(
    lambda near, minutes: from_datetime(near + timedelta(minutes=minutes)),
    st.sampled_from([*NEAR, datetime(2026, 4, 5, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)]),
    st.integers(-4 * 24 * 60, 4 * 24 * 60),
)
rosters = st.builds(
    OnCallSchedule,
    anchor_at=instants,
    shift_us=st.sampled_from([1, 2, 5, 8, 12, 24, 36, 7 * 24]).map(lambda hours: hours * HOUR),
    participants=st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple),
    timezone=st.sampled_from(ZONES),
)


@st.composite
def with_overrides(draw: st.DrawFn) -> tuple[OnCallSchedule, list[OnCallOverride]]:
    roster = draw(rosters)
    found = []
    for number in range(draw(st.integers(0, 4))):
        starts = draw(instants)
        length = draw(st.integers(1, 3 * 24 * 60)) * MINUTE
        found.append(
            OnCallOverride(number, draw(st.integers(6, 9)), starts, Instant(starts + length))
        )
    return roster, found


def wall(at: Instant, zone: str) -> datetime:
    return to_datetime(at).astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def walked(roster: OnCallSchedule, from_at: Instant, minutes: int) -> list[int]:
    """The shift of each minute by local time: a shift begins in the first minute whose local time
    has reached its hand-off."""
    anchor = wall(roster.anchor_at, roster.timezone)
    shift = timedelta(microseconds=roster.shift_us)
    number = (wall(Instant(from_at - 2 * DAY), roster.timezone) - anchor) // shift
    found = []
    for minute in range(-2 * 24 * 60, minutes):
        shows = wall(Instant(from_at + minute * MINUTE), roster.timezone)
        # A shift that has begun continues when the clock is set back.
        number = max(number, (shows - anchor) // shift)
        if minute >= 0:
            found.append(number)
    return found


@given(rosters, instants)
def test_hand_offs_happen_at_their_local_time(roster: OnCallSchedule, from_at: Instant) -> None:
    # Whole minutes: the walk sees no finer.
    if not roster.timezone:
        roster = OnCallSchedule(roster.anchor_at, roster.shift_us, roster.participants, "UTC")
    numbers = walked(roster, from_at, 36 * 60)
    for minute, number in enumerate(numbers):
        near = numbers[max(minute - 1, 0) : minute + 2]
        if len(set(near)) == 1 and minute % 61:
            continue
        at = Instant(from_at + minute * MINUTE)
        expected = roster.participants[number % len(roster.participants)]
        assert on_call(roster, [], at).channel == expected, (minute, number)


@given(with_overrides(), instants)
def test_at_every_instant_exactly_one_is_on_call_and_the_newest_override_wins(
    given_: tuple[OnCallSchedule, list[OnCallOverride]], from_at: Instant
) -> None:
    roster, overrides = given_
    until = Instant(from_at + 5 * DAY)
    found = list(duties(roster, overrides, from_at, until))
    assert found[0].from_at == from_at
    assert found[-1].until == until
    for one, next_ in pairwise(found):
        assert one.until == next_.from_at
        assert (one.channel, one.override) != (next_.channel, next_.override)
    for duty in found:
        for at in (
            duty.from_at,
            Instant((duty.from_at + duty.until) // 2),
            Instant(duty.until - 1),
        ):
            here = on_call(roster, overrides, at)
            assert here.from_at <= at < here.until
            assert here.channel == duty.channel
            holding = [o for o in overrides if o.starts_at <= at < o.ends_at]
            newest = max((o.number for o in holding), default=None)
            assert (here.override.number if here.override else None) == newest


@given(rosters, st.integers(-500, 500))
def test_hand_offs_never_run_back(roster: OnCallSchedule, number: int) -> None:
    assert hand_off(roster, number) <= hand_off(roster, number + 1)


@given(rosters)
def test_shift_nought_begins_at_the_anchor(roster: OnCallSchedule) -> None:
    begins = hand_off(roster, 0)
    if not roster.timezone:
        assert begins == roster.anchor_at
    else:
        # An anchor in an hour that comes twice is taken for its first coming.
        assert wall(begins, roster.timezone) == wall(roster.anchor_at, roster.timezone)


@pytest.mark.parametrize(
    ("day", "hours"), [("2026-03-28", 23), ("2026-10-24", 25), ("2026-06-01", 24)]
)
def test_a_day_s_shift_is_as_long_as_its_day(day: str, hours: int) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    anchor = from_datetime(datetime(2026, 1, 5, 9, tzinfo=berlin))
    roster = OnCallSchedule(anchor, DAY, (1, 2), "Europe/Berlin")
    starts = from_datetime(datetime.fromisoformat(f"{day}T09:00").replace(tzinfo=berlin))
    duty = on_call(roster, [], starts)
    assert duty.from_at == starts
    assert duty.until - duty.from_at == hours * HOUR


def test_a_skipped_hand_off_comes_when_the_clocks_have_gone_forward() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    anchor = from_datetime(datetime(2026, 1, 5, 2, 30, tzinfo=berlin))
    roster = OnCallSchedule(anchor, DAY, (1, 2), "Europe/Berlin")
    at = from_datetime(datetime(2026, 3, 29, 1, tzinfo=UTC))
    assert on_call(roster, [], at).from_at == at
    assert on_call(roster, [], Instant(at - 1)).until == at


def test_a_shift_continues_when_clocks_are_set_back_before_its_hand_off() -> None:
    anchor = from_datetime(datetime(2026, 1, 5, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")))
    roster = OnCallSchedule(anchor, DAY, (1, 2), "Europe/Berlin")
    begun = from_datetime(datetime(2026, 10, 25, 0, 30, tzinfo=UTC))
    # Clocks show 02:15 for the second time.
    at = from_datetime(datetime(2026, 10, 25, 1, 15, tzinfo=UTC))
    assert on_call(roster, [], at).from_at == begun
    assert on_call(roster, [], at) == on_call(roster, [], begun)


def test_time_zones_come_from_the_database_and_not_from_the_host() -> None:
    assert is_timezone("Europe/Berlin")
    for name in ("localtime", "Factory", "", "Mars/Olympus", "../etc/passwd"):
        assert not is_timezone(name)


@given(with_overrides(), instants)
def test_a_stretch_is_one_complete_shift_or_override(
    given_: tuple[OnCallSchedule, list[OnCallOverride]], at: Instant
) -> None:
    roster, overrides = given_
    found = stretch(roster, overrides, at)
    assert found.from_at <= at < found.until

    def holds(instant: int) -> tuple[int | None, int]:
        """By the words: the newest override there, or else whose shift it is, and which one."""
        moment = Instant(instant)
        here = [o.number for o in overrides if o.starts_at <= moment < o.ends_at]
        shift = 0 if here else on_call(roster, [], moment).from_at
        return max(here, default=None), shift

    inside = holds(at)
    assert (found.override.number if found.override else None) == inside[0]
    assert found.channel == on_call(roster, overrides, at).channel
    edges = [e for o in overrides for e in (o.starts_at, o.ends_at)]
    for moment in (found.from_at, found.until - 1, *edges):
        if found.from_at <= moment < found.until:
            assert holds(moment) == inside
    assert holds(found.from_at - 1) != inside
    assert holds(found.until) != inside


def test_the_limits_of_schedules_and_overrides_are_checked() -> None:
    anchor = from_datetime(NEAR[0])
    assert roster_fault(anchor, 3_600, 1, "") is None
    assert roster_fault(anchor, 366 * 86_400, 100, "Europe/Berlin") is None
    for shift, many, zone, field in (
        (3_599, 1, "", "shift_seconds"),
        (366 * 86_400 + 1, 1, "", "shift_seconds"),
        (3_600, 0, "", "participants"),
        (3_600, 101, "", "participants"),
        (3_600, 1, "Mars/Olympus", "timezone"),
    ):
        fault = roster_fault(anchor, shift, many, zone)
        assert fault is not None
        assert fault[0] == field
    assert override_fault(anchor, Instant(anchor + 1)) is None
    assert override_fault(anchor, Instant(anchor + 366 * DAY)) is None
    for ends in (anchor, Instant(anchor - 1), Instant(anchor + 366 * DAY + 1)):
        fault = override_fault(anchor, ends)
        assert fault is not None
        assert fault[0] == "ends_at"


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Pacific/Apia", "America/St_Johns"])
def test_every_allowed_schedule_can_be_computed(zone: str) -> None:
    years = [datetime(1970, 1, 1, tzinfo=UTC), datetime(2199, 12, 31, 23, tzinfo=UTC)]
    for anchor in map(from_datetime, years):
        for shift in (3_600, 366 * 86_400):
            assert roster_fault(anchor, shift, 1, zone) is None
            roster = OnCallSchedule(anchor, shift * SECOND, (1, 2), zone)
            for at in map(from_datetime, [*years, *NEAR]):
                assert stretch(roster, [], at).until > at
