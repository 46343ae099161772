"""Rosters against a calendar that is walked minute by minute, written from the rules' words."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import (
    DAY,
    HOUR,
    LATEST,
    MINUTE,
    SECOND,
    Instant,
    from_datetime,
    is_timezone,
    to_datetime,
)
from leadline.storage.oncall.rules.oncall_schedule import (
    Duty,
    OnCallLayer,
    OnCallOverride,
    OnCallSchedule,
    duties,
    gaps,
    hand_off,
    layer_fault,
    override_fault,
    roster_fault,
    stretch,
)
from leadline.storage.oncall.rules.weekly_hours import (
    DAY_MINUTES,
    WeeklyWindow,
    clock_minutes,
    hours_at,
    weekday_numbers,
    window_of,
    window_text,
    windows_fault,
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
layers = st.builds(
    OnCallLayer,
    anchor_at=instants,
    shift_us=st.sampled_from([1, 2, 5, 8, 12, 24, 36, 7 * 24]).map(lambda hours: hours * HOUR),
    participants=st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple),
    timezone=st.sampled_from(ZONES),
)
rosters = layers.map(lambda layer: OnCallSchedule((layer,)))


def on_call(roster: OnCallSchedule, overrides: list[OnCallOverride], at: Instant) -> Duty:
    return stretch(roster, overrides, at)


def rotation(
    anchor: Instant, shift_us: int, people: tuple[int, ...], zone: str = ""
) -> OnCallSchedule:
    return OnCallSchedule((OnCallLayer(anchor, shift_us, people, zone),))


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


def walked(roster: OnCallLayer, from_at: Instant, minutes: int) -> list[int]:
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


@given(layers, instants)
def test_hand_offs_happen_at_their_local_time(layer: OnCallLayer, from_at: Instant) -> None:
    # Whole minutes: the walk sees no finer.
    layer = layer if layer.timezone else replace(layer, timezone="UTC")
    roster = OnCallSchedule((layer,))
    numbers = walked(layer, from_at, 36 * 60)
    for minute, number in enumerate(numbers):
        near = numbers[max(minute - 1, 0) : minute + 2]
        if len(set(near)) == 1 and minute % 61:
            continue
        at = Instant(from_at + minute * MINUTE)
        expected = layer.participants[number % len(layer.participants)]
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


@given(layers, st.integers(-500, 500))
def test_hand_offs_never_run_back(roster: OnCallLayer, number: int) -> None:
    assert hand_off(roster, number) <= hand_off(roster, number + 1)


@given(layers)
def test_shift_nought_begins_at_the_anchor(roster: OnCallLayer) -> None:
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
    roster = rotation(anchor, DAY, (1, 2), "Europe/Berlin")
    starts = from_datetime(datetime.fromisoformat(f"{day}T09:00").replace(tzinfo=berlin))
    duty = on_call(roster, [], starts)
    assert duty.from_at == starts
    assert duty.until - duty.from_at == hours * HOUR


def test_a_skipped_hand_off_comes_when_the_clocks_have_gone_forward() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    anchor = from_datetime(datetime(2026, 1, 5, 2, 30, tzinfo=berlin))
    roster = rotation(anchor, DAY, (1, 2), "Europe/Berlin")
    at = from_datetime(datetime(2026, 3, 29, 1, tzinfo=UTC))
    assert on_call(roster, [], at).from_at == at
    assert on_call(roster, [], Instant(at - 1)).until == at


def test_a_shift_continues_when_clocks_are_set_back_before_its_hand_off() -> None:
    anchor = from_datetime(datetime(2026, 1, 5, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")))
    roster = rotation(anchor, DAY, (1, 2), "Europe/Berlin")
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
            roster = rotation(anchor, shift * SECOND, (1, 2), zone)
            for at in map(from_datetime, [*years, *NEAR]):
                assert stretch(roster, [], at).until > at


# Layers, weekly hours and gaps, against a model that walks the clock.

minutes_of_day = st.sampled_from([0, 60, 90, 120, 135, 150, 180, 540, 1_020, 1_320, 1_439])
window_lists = st.lists(
    st.builds(
        WeeklyWindow,
        weekdays=st.lists(st.integers(0, 6), min_size=1, max_size=7).map(
            lambda days: tuple(sorted(set(days)))
        ),
        from_=minutes_of_day,
        until=st.one_of(minutes_of_day, st.just(DAY_MINUTES)),
    ),
    max_size=3,
).map(tuple)


@st.composite
def layered(draw: st.DrawFn) -> tuple[OnCallSchedule, list[OnCallOverride]]:
    found = []
    for place in range(draw(st.integers(1, 3))):
        layer = draw(layers)
        bounds = sorted(draw(st.lists(instants, min_size=2, max_size=2, unique=True)))
        found.append(
            replace(
                layer,
                participants=tuple(who + 10 * place for who in layer.participants),
                windows=draw(window_lists),
                starts_at=bounds[0] if draw(st.booleans()) else None,
                ends_at=bounds[1] if draw(st.booleans()) else None,
            )
        )
    _, overrides = draw(with_overrides())
    return OnCallSchedule(tuple(found)), overrides


class Clock:
    """The furthest local time that a clock on the wall has shown, minute by minute."""

    def __init__(self, zone: str, from_at: Instant) -> None:
        self.zone = zone or "UTC"
        self.shown = max(
            wall(Instant(from_at - minute * MINUTE), self.zone) for minute in range(3 * 60)
        )

    def tick(self, at: Instant) -> datetime:
        self.shown = max(self.shown, wall(at, self.zone))
        return self.shown


def is_open(windows: tuple[WeeklyWindow, ...], shown: datetime) -> bool:
    """By the words: a window of today, or of yesterday until today, contains the local time."""
    if not windows:
        return True
    for window in windows:
        for back in (0, 1):
            midnight = datetime.combine(shown.date() - timedelta(days=back), datetime.min.time())
            opens = midnight + timedelta(minutes=window.from_)
            closes = midnight + timedelta(minutes=window.until)
            closes += timedelta(days=1) if closes <= opens else timedelta(0)
            if midnight.weekday() in window.weekdays and opens <= shown < closes:
                return True
    return False


def named(layer: OnCallLayer, shown: datetime, at: Instant) -> int | None:
    """Person of a layer, None if it is not active."""
    if layer.starts_at is not None and at < layer.starts_at:
        return None
    if layer.ends_at is not None and at >= layer.ends_at:
        return None
    if not is_open(layer.windows, shown):
        return None
    anchor = wall(layer.anchor_at, layer.timezone or "UTC")
    shift = (shown - anchor) // timedelta(microseconds=layer.shift_us)
    return layer.participants[shift % len(layer.participants)]


def model(
    roster: OnCallSchedule, overrides: list[OnCallOverride], from_at: Instant, minutes: int
) -> list[int | None]:
    clocks = [Clock(layer.timezone, from_at) for layer in roster.layers]
    found: list[int | None] = []
    for minute in range(minutes):
        at = Instant(from_at + minute * MINUTE)
        who = None
        for layer, clock in zip(roster.layers, clocks, strict=True):
            who = named(layer, clock.tick(at), at) or who
        for override in overrides:
            who = override.channel if override.starts_at <= at < override.ends_at else who
        found.append(who)
    return found


@given(layered(), instants)
def test_the_rule_names_the_person_of_the_clock_on_the_wall(
    given_: tuple[OnCallSchedule, list[OnCallOverride]], from_at: Instant
) -> None:
    roster, overrides = given_
    expected = model(roster, overrides, from_at, 30 * 60)
    until = Instant(from_at + 30 * 60 * MINUTE)
    found: list[int | None] = []
    for duty in duties(roster, overrides, from_at, until):
        found += [duty.channel] * ((duty.until - duty.from_at) // MINUTE)
    assert found == expected
    nobody = [(gap.from_at, gap.until) for gap in gaps(roster, overrides, from_at, until)]
    silent = {minute for minute, who in enumerate(expected) if who is None}
    assert silent == {
        minute
        for starts, ends in nobody
        for minute in range((starts - from_at) // MINUTE, (ends - from_at) // MINUTE)
    }


@given(layered(), instants)
def test_duties_are_whole_at_each_of_their_instants(
    given_: tuple[OnCallSchedule, list[OnCallOverride]], at: Instant
) -> None:
    roster, overrides = given_
    duty = stretch(roster, overrides, at)
    assert duty.from_at <= at < duty.until
    for inside in (duty.from_at, Instant((duty.from_at + duty.until) // 2), duty.until - 1):
        assert stretch(roster, overrides, Instant(inside)) == duty
    if duty.channel is not None:
        (whole,) = duties(roster, overrides, duty.from_at, duty.until)
        assert whole == duty
    # A gap is one span.
    assert (
        not duty.is_gap
        or duty.until == LATEST
        or not (stretch(roster, overrides, duty.until).is_gap)
    )


@given(layers, window_lists, instants)
def test_follow_the_sun_has_neither_gaps_nor_overlaps(
    layer: OnCallLayer, windows: tuple[WeeklyWindow, ...], at: Instant
) -> None:
    zone = layer.timezone or "UTC"
    days = tuple(range(7))
    thirds = [(0, 480), (480, 960), (960, DAY_MINUTES)]
    roster = OnCallSchedule(
        tuple(
            replace(
                layer,
                timezone=zone,
                participants=(number,),
                windows=(WeeklyWindow(days, from_, until),),
            )
            for number, (from_, until) in enumerate(thirds, 1)
        )
    )
    until = Instant(at + 3 * DAY)
    assert list(gaps(roster, [], at, until)) == []
    for duty in duties(roster, [], at, until):
        assert duty.channel == wall(duty.from_at, zone).hour // 8 + 1


@pytest.mark.parametrize(
    ("day", "windows", "spans"),
    [
        # 02:30 is skipped: the window opens when the clocks go forward, at 03:00 local.
        ("2026-03-29", ["sun 02:30-05:00"], ["01:00-03:00"]),
        # The whole window is skipped.
        ("2026-03-29", ["sun 02:10-02:50"], []),
        # 02:30 comes twice: the window opens at the first and closes once.
        ("2026-10-25", ["sun 02:30-05:00"], ["00:30-04:00"]),
        # It also closes at the first.
        ("2026-10-25", ["sat 22:00-02:30"], ["00:00-00:30"]),
        ("2026-06-01", ["mon 09:00-17:00", "mon 16:00-18:00"], ["07:00-16:00"]),
    ],
)
def test_weekly_hours_on_days_of_clock_changes(
    day: str, windows: list[str], spans: list[str]
) -> None:
    starts = from_datetime(datetime.fromisoformat(f"{day}T00:00+00:00"))
    found = []
    at = starts
    while at < starts + 20 * HOUR:
        span = hours_at(tuple(map(window_of, windows)), ZoneInfo("Europe/Berlin"), at)
        assert span is not None
        if span.is_inside:
            edges = (max(span.from_at, starts), span.until)
            found.append("-".join(f"{to_datetime(edge):%H:%M}" for edge in map(Instant, edges)))
        at = span.until
    assert found == spans


def test_windows_of_the_whole_week_are_no_restriction() -> None:
    whole = (window_of("mon,tue,wed,thu,fri,sat,sun 09:00-09:00"),)
    assert hours_at(whole, ZoneInfo("UTC"), Instant(0)) is None
    assert hours_at((), ZoneInfo("UTC"), Instant(0)) is None
    assert hours_at((window_of("mon 00:00-24:00"),), ZoneInfo("UTC"), Instant(0)) is not None


@given(window_lists)
def test_windows_are_spelt_and_read_back(windows: tuple[WeeklyWindow, ...]) -> None:
    assert tuple(map(window_of, map(window_text, windows))) == windows


def test_clock_times_and_weekdays_are_read() -> None:
    times = ("00:00", "09:30", "24:00", "24:01", "9:30", "23:60", "")
    assert [clock_minutes(text) for text in times] == [0, 570, 1_440, None, None, None, None]
    assert weekday_numbers(["sun", "mon", "mon"]) == (0, 6)
    assert weekday_numbers([]) == (0, 1, 2, 3, 4, 5, 6)
    with pytest.raises(ValueError, match="not in tuple"):
        weekday_numbers(["moon"])


def test_the_limits_of_layers_are_checked() -> None:
    anchor = from_datetime(NEAR[0])
    layer = OnCallLayer(anchor, DAY, (1,), "UTC", (window_of("mon 09:00-17:00"),))
    assert layer_fault(layer, 1) is None
    for changed, field in (
        (replace(layer, timezone="Mars/Olympus"), "timezone"),
        (replace(layer, windows=(WeeklyWindow((), 0, 60),)), "restrictions"),
        (replace(layer, windows=layer.windows * 51), "restrictions"),
        (replace(layer, starts_at=Instant(-(10**17))), "starts_at"),
        (replace(layer, starts_at=anchor, ends_at=anchor), "ends_at"),
    ):
        fault = layer_fault(changed, 1)
        assert fault is not None
        assert fault[0] == field
    assert windows_fault(()) is None
