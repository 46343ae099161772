"""Plot, table and gaps of four weeks of an on-call schedule, with local days of its zone."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from markupsafe import Markup

from ....storage.core.instant import DAY, EARLIEST, LATEST, Instant, from_datetime, to_datetime
from ....storage.engine.paced import paced
from ....storage.oncall.queries.oncall_schedules import ScheduleRoster
from ....storage.oncall.rules.oncall_schedule import Duty, stretch
from ...ui.formatting import NOTHING
from ...ui.plots.oncall_calendar import NAMED_SHARE, OnCallSpan, OnCallWeek, calendar, tint
from ...ui.shown_time import time_of_day

WEEKS = 4
# With more shifts, the plot has no room for names and ticks.
DENSE = 120
TABLE_MOST = 60
# Gaps that the screen states, in the weeks from now on.
GAPS_SHOWN = 5
GAPS_WITHIN_US = 28 * DAY


@dataclass(frozen=True, slots=True)
class OnCallTable:
    caption: str
    heads: list[str]
    rows: list[list[str]]
    further: int


@dataclass(frozen=True, slots=True)
class OnCallPlot:
    """`people` is the legend (tint class, name) of a plot without room for names."""

    plot: Markup
    table: OnCallTable
    people: list[tuple[str, str]]
    has_ticks: bool


@dataclass(frozen=True, slots=True)
class OnCallGaps:
    """Spans from now on in which nobody is on call: the first ones, and how many more."""

    spans: list[str]
    further: int


async def gaps_ahead(standing: ScheduleRoster, now: Instant) -> OnCallGaps:
    """Returns the gaps of the next four weeks."""
    zone = zone_of(standing)
    walk = _walk(standing, now, Instant(now + GAPS_WITHIN_US), overridden=True)
    found = [
        f"{_edge_text(max(duty.from_at, now), zone, now)} {_end_text(duty, zone, now)}"
        for duty in await paced(walk)
        if duty.is_gap
    ]
    return OnCallGaps(found[:GAPS_SHOWN], max(len(found) - GAPS_SHOWN, 0))


def until_text(duty: Duty, zone: ZoneInfo, now: Instant) -> str:
    """Returns the end of a duty, such as `until Friday 17:00`."""
    return "without an end" if duty.until == LATEST else f"until {plot_text(duty.until, zone, now)}"


def _end_text(duty: Duty, zone: ZoneInfo, now: Instant) -> str:
    return "without an end" if duty.until == LATEST else f"to {plot_text(duty.until, zone, now)}"


def _edge_text(at: Instant, zone: ZoneInfo, now: Instant) -> str:
    return "now" if at == now else plot_text(at, zone, now)


def zone_of(standing: ScheduleRoster) -> ZoneInfo:
    return ZoneInfo(standing.schedule.timezone or "UTC")


async def drawn(standing: ScheduleRoster, now: Instant, weeks_on: int) -> OnCallPlot:
    """Returns the plot from the Monday of the week that is `weeks_on` weeks from now."""
    zone = zone_of(standing)
    today = to_datetime(now).astimezone(zone)
    monday = today.date() - timedelta(days=today.weekday()) + timedelta(weeks=weeks_on)
    edges = [_midnight(monday + timedelta(days=n), zone) for n in range(7 * WEEKS + 1)]
    held = await paced(_walk(standing, edges[0], edges[-1], overridden=True))
    turns = held
    if standing.overrides:
        turns = await paced(_walk(standing, edges[0], edges[-1], overridden=False))
    people = list(dict.fromkeys(person.name for person in standing.participants))
    weeks = []
    for number in range(WEEKS):
        days = edges[7 * number : 7 * number + 8]
        weeks.append(await _week(standing, days, turns, held, people, zone, now))
    said = _shift_text(standing, held, monday)
    dense = len(turns) > DENSE
    # The tints need a legend where a span has no room for its name.
    is_unnamed = dense or any(_is_short(duty) for duty in turns)
    key = [(tint(person), name) for person, name in enumerate(people)] if is_unnamed else []
    table = _table(standing, held, zone)
    return OnCallPlot(calendar(weeks, said, dense=dense), table, key, not dense)


def _is_short(duty: Duty) -> bool:
    return not duty.is_gap and duty.until - duty.from_at < NAMED_SHARE * 7 * DAY


def plot_text(at: Instant, zone: ZoneInfo, now: Instant) -> str:
    """Returns weekday and time within the next 6 days, else the date too."""
    local = to_datetime(at).astimezone(zone)
    if timedelta(0) <= local - to_datetime(now).astimezone(zone) < timedelta(days=6):
        return f"{local:%A} {time_of_day(local, seconds=False)}"
    year = "" if local.year == to_datetime(now).astimezone(zone).year else f" {local.year}"
    clock = time_of_day(local, seconds=False)
    return f"{local:%A} {local.day} {local:%B}{year}, {clock}"


def _midnight(day: date, zone: ZoneInfo) -> Instant:
    """Returns midnight, or the end of the gap if the clock change skips midnight."""
    return from_datetime(datetime.combine(day, time(), tzinfo=zone).astimezone(UTC))


def _walk(
    standing: ScheduleRoster, from_at: Instant, until: Instant, *, overridden: bool
) -> Iterator[Duty]:
    roster, overrides = standing.roster, standing.overrides if overridden else []
    at = from_at
    while at < until:
        duty = stretch(roster, overrides, at)
        yield duty
        at = duty.until


async def _week(
    standing: ScheduleRoster,
    days: list[Instant],
    turns: list[Duty],
    held: list[Duty],
    people: list[str],
    zone: ZoneInfo,
    now: Instant,
) -> OnCallWeek:
    start, end = days[0], days[-1]

    def share(at: Instant) -> float:
        return (min(max(at, start), end) - start) / (end - start)

    # Without overrides, `held` and `turns` are equal. Short shifts make hundreds of them.
    @cache
    def span(duty: Duty) -> OnCallSpan:
        name = standing.name_of(duty.channel)
        person = people.index(name) if name in people else len(people)
        how = "Override: " if duty.override else ""
        from_at, until = duty.from_at, duty.until
        if duty.is_gap:
            # A gap can have no start or no end.
            from_at, until = max(from_at, start), min(until, end)
        said = f"{how}{name}, {_exact(from_at, zone)} to {_exact(until, zone)}"
        from_, to = share(duty.from_at), share(duty.until)
        return OnCallSpan(from_=from_, to=to, name=name, person=person, said=said)

    def here(duties: list[Duty]) -> list[Duty]:
        return [duty for duty in duties if duty.from_at < end and duty.until > start]

    return OnCallWeek(
        days=[(share(day), _day(day, zone, first=day == start)) for day in days[:-1]],
        turns=await paced(span(duty) for duty in here(turns) if not duty.is_gap),
        seen=[span(duty) for duty in here(held) if not duty.override and not duty.is_gap],
        overrides=[span(duty) for duty in here(held) if duty.override],
        gaps=[span(duty) for duty in here(held) if duty.is_gap],
        hand_offs=[share(duty.from_at) for duty in here(turns) if duty.from_at >= start],
        now=share(now) if start <= now < end else None,
    )


def _day(at: Instant, zone: ZoneInfo, *, first: bool) -> str:
    local = to_datetime(at).astimezone(zone)
    return f"{local.day} {local:%B}" if first or local.day == 1 else str(local.day)


def _exact(at: Instant, zone: ZoneInfo) -> str:
    local = to_datetime(at).astimezone(zone)
    return f"{local:%a} {local.day} {local:%B} {time_of_day(local, seconds=False)}"


def _edges(duty: Duty, zone: ZoneInfo) -> tuple[str, str]:
    """Returns start and end. A gap can have no start or no end."""
    return (
        NOTHING if duty.from_at == EARLIEST else _exact(duty.from_at, zone),
        NOTHING if duty.until == LATEST else _exact(duty.until, zone),
    )


def _shift_text(standing: ScheduleRoster, held: list[Duty], monday: object) -> str:
    names = list(dict.fromkeys(standing.name_of(duty.channel) for duty in held if not duty.is_gap))
    many = sum(duty.override is not None for duty in held)
    empty = sum(duty.is_gap for duty in held)
    by = f"; {many} by an override" if many else ""
    by += f"; {empty} without a person" if empty else ""
    return f"Four weeks from {monday}: {', '.join(names)}; {len(held)} duties{by}"


def _table(standing: ScheduleRoster, held: list[Duty], zone: ZoneInfo) -> OnCallTable:
    rows = [
        [
            *_edges(duty, zone),
            standing.name_of(duty.channel),
            "override" if duty.override else "gap" if duty.is_gap else "rotation",
        ]
        for duty in held[:TABLE_MOST]
    ]
    heads = [f"From, {zone.key}", "To", "Who", "How"]
    return OnCallTable("Who is on call, four weeks", heads, rows, max(len(held) - TABLE_MOST, 0))
