"""Availability of monitors by day and by window, up to the watermark.

The sources are days, then hours, then the edge: time that is sealed but not rolled up yet. No
figure contains unsealed time.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...core.instant import DAY, HOUR, LATEST, SECOND, Instant
from ...core.key import MonitorKey, key_arrays
from ...core.sli import Split
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ...monitors.rules.composite import Composition, MemberWatermarks
from ...monitors.rules.monitor import CANARY_TIMEOUT, MonitorType, manner_of
from ...monitors.tables import compositions
from ...results.queries.longest_freshness import select_longest_hold_of
from ...results.rules.repair_range import earliest_repairable
from ...scheduling.queries import shards
from ...scheduling.rules.expected_run import watermark
from ...scheduling.rules.run_schedule import LATE_ARRIVAL_US
from ...scheduling.tables import shards as schedules
from .monitor_time import MonitorTime, measure

_DAYS = """
select org, monitor, day, good_us, bad_us, unknown_us, excluded_us, up, total from monitor_days
where (org, monitor) in (select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
  and day >= at(%(from_at)s) and day < at(%(to_at)s)
"""
_HOURS = """
select org, monitor, hour, good_us, bad_us, unknown_us, excluded_us, up, total from monitor_hours
where (org, monitor) in (select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
  and hour >= at(%(from_at)s) and hour < at(%(to_at)s)
"""

_SUMS = """
select org, monitor, sum(good_us)::bigint, sum(bad_us)::bigint, sum(unknown_us)::bigint,
  sum(excluded_us)::bigint, sum(up)::bigint, sum(total)::bigint
from monitor_days
where (org, monitor) in (select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
  and day >= at(%(from_at)s) and day < at(%(to_at)s)
group by org, monitor
"""

NOTHING = MonitorTime(Split(), 0, 0)
# The edge of more monitors is not measured on a read: it would occupy the event loop for seconds.
# Their figures end where the hours are rolled up.
EDGE_MONITORS_MOST = 2_000
_LONGEST_LAG_US = CANARY_TIMEOUT.most * SECOND + LATE_ARRIVAL_US

_FIGURED = """
select distinct s.id, s.rolled_up_through from (
  select t.shard, lead(t.from_at, 1, 'infinity') over (
      partition by t.org, t.monitor order by t.from_at) as until_at
    from monitor_terms t
      join unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
        on k.org = t.org and k.monitor = t.monitor) terms
  join shards s on s.id = terms.shard
where terms.until_at > s.rolled_up_through
"""


@dataclass(frozen=True, slots=True)
class Days:
    """Days of one monitor, oldest first. `begun` is the start of its first term."""

    days: Sequence[tuple[Instant, MonitorTime]]
    begun: Instant | None
    watermark: Instant | None


@dataclass(frozen=True, slots=True)
class DaySum:
    """Sum of the last days of one monitor, today included, up to its watermark."""

    measured: MonitorTime
    # Whether any of its time is sealed.
    is_sealed: bool


@dataclass(frozen=True, slots=True)
class WindowTime:
    """Measure of a window. `from_` is its start, None without a watermark."""

    measured: MonitorTime
    from_: Instant | None


def add(one: MonitorTime, other: MonitorTime) -> MonitorTime:
    return MonitorTime(one.split + other.split, one.up + other.up, one.total + other.total)


async def select_days(
    tx: Tx, types: Mapping[MonitorKey, str], now: Instant, days: int
) -> dict[MonitorKey, Days]:
    """Returns the last `days` days in UTC, today included."""
    today = Instant(now - now % DAY)
    first = Instant(today - (days - 1) * DAY)
    marks = await _watermarks(tx, types)
    figured = await _figured(tx, types)
    missing_from = _first_missing_day(figured, first, today)
    whole = await _stored(tx, _DAYS, list(types), first, missing_from)
    edges = await _edges(tx, types, marks, figured)
    rest = await _recent_days(tx, list(types), missing_from, Instant(today + DAY), edges)
    found = {}
    for key in types:
        by_day = whole.get(key, {}) | rest.get(key, {})
        begun, mark = marks.get(key, (None, None))
        order = [Instant(first + n * DAY) for n in range(days)]
        found[key] = Days([(day, by_day.get(day, NOTHING)) for day in order], begun, mark)
    return found


async def select_sums(
    tx: Tx, types: Mapping[MonitorKey, str], now: Instant, days: int
) -> dict[MonitorKey, DaySum]:
    """Returns the sum of the days that `select_days` returns, without reading each of them."""
    marks = await _watermarks(tx, types)
    figured = await _figured(tx, types)
    edges = await _edges(tx, types, marks, figured)
    sums = await _sums(tx, list(types), now, days, figured, edges)
    found = {}
    for key in types:
        begun, mark = marks.get(key, (None, None))
        is_sealed = begun is not None and mark is not None and mark > begun
        found[key] = DaySum(sums.get(key, NOTHING), is_sealed)
    return found


async def select_stored_sums(
    tx: Tx, keys: Sequence[MonitorKey], now: Instant, days: int
) -> tuple[dict[MonitorKey, MonitorTime], Instant | None]:
    """Returns the sums of the last days up to the rolled-up hour, for the order of a long list.

    The time after that hour would be measured from the results of every monitor. The second value
    is the hour, None before the first roll-up.
    """
    figured = await _figured(tx, keys)
    sums = await _sums(tx, keys, now, days, figured, {})
    return sums, min(figured.values(), default=None)


async def _sums(
    tx: Tx,
    keys: Sequence[MonitorKey],
    now: Instant,
    days: int,
    figured: Mapping[int, Instant],
    edges: Mapping[MonitorKey, Mapping[Instant, MonitorTime]],
) -> dict[MonitorKey, MonitorTime]:
    today = Instant(now - now % DAY)
    first = Instant(today - (days - 1) * DAY)
    missing_from = _first_missing_day(figured, first, today)
    rows = await tx.rows(_SUMS, **key_arrays(keys, "monitors"), from_at=first, to_at=missing_from)
    found = {
        MonitorKey((org, monitor)): MonitorTime(Split(*us), up, total)
        for org, monitor, *us, up, total in rows
    }
    rest = await _recent_days(tx, keys, missing_from, Instant(today + DAY), edges)
    for key, by_day in rest.items():
        for measured in by_day.values():
            found[key] = add(found.get(key, NOTHING), measured)
    return found


async def _recent_days(
    tx: Tx,
    keys: Sequence[MonitorKey],
    from_at: Instant,
    to_at: Instant,
    edges: Mapping[MonitorKey, Mapping[Instant, MonitorTime]],
) -> dict[MonitorKey, dict[Instant, MonitorTime]]:
    """Returns the days that are not rolled up in every region, from days, hours and edges."""
    stored = await _stored(tx, _DAYS, keys, from_at, to_at)
    hours = await _stored(tx, _HOURS, keys, from_at, to_at)
    found = {}
    for key in keys:
        by_day = dict(whole := stored.get(key, {}))
        # If another region lags, an hour can be both rolled up and measured. It counts once.
        for start, measured in {**hours.get(key, {}), **edges.get(key, {})}.items():
            day = Instant(start - start % DAY)
            if day >= from_at and day not in whole:
                by_day[day] = add(by_day.get(day, NOTHING), measured)
        found[key] = by_day
    return found


async def select_windows(
    tx: Tx, types: Mapping[MonitorKey, str], windows_us: Sequence[int], raw_days: int
) -> dict[MonitorKey, list[WindowTime]]:
    """Returns for each monitor one measure per window, which ends at its watermark.

    A window begins exactly its length before, or with the whole hour if the results of that time,
    or earlier ones that were still fresh, may be deleted.

    Args:
        raw_days: days for which results are stored.
    """
    marks = await _watermarks(tx, types)
    known = [mark for _, mark in marks.values() if mark is not None]
    if not known:
        return {key: [WindowTime(NOTHING, None)] * len(windows_us) for key in types}
    figured = await _figured(tx, types)
    end = max(known)
    start = Instant(min(known) - max(windows_us))
    hours = await _stored(tx, _HOURS, list(types), Instant(start - start % HOUR), end)
    edges = await _edges(tx, types, marks, figured)
    hold_us = await select_longest_hold_of(tx, types)
    earliest = earliest_repairable(tx.now, raw_days, hold_us)
    firsts = await _first_hours(tx, types, marks, windows_us, earliest)
    found = {}
    for key in types:
        parts = {**hours.get(key, {}), **edges.get(key, {})}
        begun, mark = marks.get(key, (None, None))
        found[key] = [
            _within(parts, begun, mark, window_us, firsts.get((key, window_us)))
            for window_us in windows_us
        ]
    return found


async def _first_hours(
    tx: Tx,
    types: Mapping[MonitorKey, str],
    marks: Mapping[MonitorKey, tuple[Instant, Instant | None]],
    windows_us: Sequence[int],
    earliest: Instant,
) -> dict[tuple[MonitorKey, int], MonitorTime]:
    """Returns the part of its first hour that is in each window, measured from results.

    Windows that begin before `earliest` are left out.
    """
    by_start: dict[Instant, list[tuple[MonitorKey, int]]] = {}
    for key, (begun, mark) in marks.items():
        for window_us in windows_us:
            # A window that begins before the monitor contains all of its hours.
            if mark is not None and mark - window_us >= max(earliest, begun):
                by_start.setdefault(Instant(mark - window_us), []).append((key, window_us))
    found = {}
    # Monitors with one watermark share a query. There are few watermarks.
    for since, wanted in by_start.items():
        end = Instant(since + (-since) % HOUR)
        if end == since:
            measured = {}
        else:
            part = {key: types[key] for key, _ in wanted}
            until = min(end, *(marks[key][1] or end for key, _ in wanted))
            measured = await measure(tx, part, [since, until])
        for key, window_us in wanted:
            found[key, window_us] = measured[key][0] if key in measured else NOTHING
    return found


def _within(
    parts: Mapping[Instant, MonitorTime],
    begun: Instant | None,
    mark: Instant | None,
    window_us: int,
    first: MonitorTime | None,
) -> WindowTime:
    """`first` is the measured part of the first hour, None if that hour counts as a whole."""
    if mark is None or begun is None:
        return WindowTime(NOTHING, None)
    since = Instant(mark - window_us)
    from_ = since if first is not None or since <= begun else Instant(since - since % HOUR)
    total = NOTHING if first is None else first
    whole_from = since - since % HOUR if first is None else since + (-since) % HOUR
    for start, measured in parts.items():
        if start >= whole_from:
            total = add(total, measured)
    return WindowTime(total, from_)


@dataclass(frozen=True, slots=True)
class SealedEdges:
    """Sealed time of monitors that is not rolled up in every region.

    `rolled_up` is where it begins, None before the first roll-up. `begun` is the start of the first
    term of a monitor, and `until` the highest watermark.
    """

    rolled_up: Instant | None
    begun: Instant | None
    until: Instant | None
    hours: Mapping[MonitorKey, Mapping[Instant, MonitorTime]]


async def select_edges(tx: Tx, types: Mapping[MonitorKey, str]) -> SealedEdges:
    """Returns the edges of monitors together. The hours before `rolled_up` are stored.

    There are no edges, and `until` is `rolled_up`, for more than EDGE_MONITORS_MOST monitors.
    """
    marks = await _watermarks(tx, types)
    figured = await _figured(tx, types)
    rolled_up = min(figured.values(), default=None)
    begun = min((begun for begun, _ in marks.values()), default=None)
    if len(types) > EDGE_MONITORS_MOST:
        return SealedEdges(rolled_up, begun, rolled_up, {})
    return SealedEdges(
        rolled_up,
        begun,
        max((mark for _, mark in marks.values() if mark is not None), default=None),
        await _edges(tx, types, marks, figured),
    )


async def select_watermarks(
    tx: Tx, types: Mapping[MonitorKey, str]
) -> dict[MonitorKey, Instant | None]:
    """Returns the watermark of each monitor."""
    return {key: mark for key, (_, mark) in (await _watermarks(tx, types)).items()}


async def _watermarks(
    tx: Tx, types: Mapping[MonitorKey, str]
) -> dict[MonitorKey, tuple[Instant, Instant | None]]:
    """Returns when each monitor began, and its watermark."""
    terms = await schedules.select_terms_of(tx, list(types))
    fences = {shard.id: shard.settled_through for shard in await shards.select_shards(tx)}
    found = {
        key: (history[0].from_, watermark(history, fences, manner_of(MonitorType(types[key]))))
        for key, history in terms.items()
    }
    composites = [key for key in found if types[key] == MonitorType.COMPOSITE]
    if composites and fences:
        marks = await _composite_watermarks(tx, composites, fences)
        found.update({key: (found[key][0], marks[key]) for key in composites})
    return found


async def _composite_watermarks(
    tx: Tx, composites: Sequence[MonitorKey], fences: Mapping[int, Instant]
) -> dict[MonitorKey, Instant | None]:
    """Returns the lowest watermark of the children, from the instant they became children."""
    # Time before this limit is sealed for every monitor.
    within = TimeSpan(Instant(min(fences.values()) - _LONGEST_LAG_US), LATEST)
    marks, made = await watermarks_of(tx, composites, fences, within)
    seals = MemberWatermarks(made, marks)
    return {key: seals.of(key, within) if key in made else None for key in composites}


async def watermarks_of(
    tx: Tx, keys: Iterable[MonitorKey], fences: Mapping[int, Instant], within: TimeSpan
) -> tuple[dict[MonitorKey, Instant | None], dict[MonitorKey, list[Composition]]]:
    """Returns the watermarks of the monitors that are not composites, and the compositions.

    Both cover `keys` and all their descendants. The compositions are those in `within`.
    """
    wanted = set(keys)
    made = await compositions.select_beneath(tx, wanted, within)
    beneath = {child for found in made.values() for c in found for child in c.children}
    kinds = await compositions.select_types(tx, (wanted | beneath) - made.keys())
    terms = await schedules.select_terms_of(tx, list(kinds))
    marks = {
        key: watermark(history, fences, manner_of(MonitorType(kinds[key])))
        for key, history in terms.items()
    }
    return marks, made


async def _figured(tx: Tx, keys: Iterable[MonitorKey]) -> dict[int, Instant]:
    """Returns the rolled-up instants of the regions in which these monitors have such time.

    A region that a monitor left counts until it has rolled up the time of the monitor. Other
    regions do not delay the figures.
    """
    return dict(await tx.rows(_FIGURED, **key_arrays(list(keys), "monitors")))


async def _edges(
    tx: Tx,
    types: Mapping[MonitorKey, str],
    marks: Mapping[MonitorKey, tuple[Instant, Instant | None]],
    figured: Mapping[int, Instant],
) -> dict[MonitorKey, dict[Instant, MonitorTime]]:
    """Returns the edge by hour: sealed time without a stored hour, measured from results."""
    if not figured or not marks:
        return {}
    start = min(figured.values())
    by_end: dict[Instant, dict[MonitorKey, str]] = {}
    for key, (begun, mark) in marks.items():
        # A new monitor has no sealed time: its watermark equals its beginning. Without this test,
        # many new monitors would each need a query of their own.
        if mark is not None and mark > max(start, begun):
            by_end.setdefault(mark, {})[key] = types[key]
    found: dict[MonitorKey, dict[Instant, MonitorTime]] = {}
    for end, part in by_end.items():
        starts = [Instant(at) for at in range(start, end, HOUR)]
        measured = await measure(tx, part, [*starts, end])
        for key, buckets in measured.items():
            found[key] = dict(zip(starts, buckets, strict=True))
    return found


async def _stored(
    tx: Tx, query: str, keys: Sequence[MonitorKey], from_at: Instant, to_at: Instant
) -> dict[MonitorKey, dict[Instant, MonitorTime]]:
    rows = await tx.rows(
        query,
        **key_arrays(keys, "monitors"),
        from_at=from_at,
        to_at=to_at,
    )
    found: dict[MonitorKey, dict[Instant, MonitorTime]] = {}
    for org, monitor, start, good, bad, unknown, excluded, up, total in rows:
        split = Split(good, bad, unknown, excluded)
        found.setdefault(MonitorKey((org, monitor)), {})[start] = MonitorTime(split, up, total)
    return found


def _first_missing_day(
    figured: Mapping[int, Instant],
    first: Instant,
    today: Instant,
) -> Instant:
    """Returns the first day that is not rolled up in every region. Hours are read from there."""
    if not figured:
        return today
    through = min(figured.values())
    return max(first, min(today, Instant(through - through % DAY)))
