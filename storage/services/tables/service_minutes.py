"""Sealed time of services: minutes as runs, and their sums by hour and day.

The caller has locked the service, except for the deletion by retention. Minutes of a range are
replaced and the sums recomputed from them, so that an interrupted pass can be repeated.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from ...core.instant import DAY, HOUR, Instant
from ...core.key import ServiceKey
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ..rules.service_health import Durations
from ..rules.service_minute import MinuteSpan, replaced

_US = (
    "good_us, bad_us, unknown_us, excluded_us, healthy_us, degraded_us, down_us, health_unknown_us"
)
_NAMES = _US.split(", ")

# A lateral join with one index lookup per range. A run is at most a day long.
_RUNS = f"""
select i.org, i.service, m.*
from json_to_recordset(%(items)s::json)
    as i(org int, service int, from_at bigint, until_at bigint)
  cross join lateral (
    select from_at, until_at, epoch, {_US} from service_minutes r
    where r.org = i.org and r.service = i.service
      and r.from_at > at(i.from_at) - interval '1 day' and r.from_at < at(i.until_at)
      and r.until_at > at(i.from_at)
    order by r.from_at offset 0) m
"""
_DELETE_RUNS = """
delete from service_minutes m using json_to_recordset(%(items)s::json)
    as i(org int, service int, from_at bigint)
where m.org = i.org and m.service = i.service and m.from_at = at(i.from_at)
"""
_PUT_RUNS = f"""
insert into service_minutes (org, service, from_at, until_at, epoch, {_US})
select org, service, at(from_at), at(until_at), epoch, {_US}
from json_to_recordset(%(items)s::json) as i(org int, service int, from_at bigint,
  until_at bigint, epoch int, {", ".join(f"{name} int" for name in _NAMES)})
on conflict (org, service, from_at) do update set until_at = excluded.until_at,
  epoch = excluded.epoch, {", ".join(f"{name} = excluded.{name}" for name in _NAMES)}
"""

_CLEAR_HOURS = """
delete from service_hours h using json_to_recordset(%(items)s::json)
    as i(org int, service int, from_at bigint, until_at bigint)
where h.org = i.org and h.service = i.service
  and h.start >= at(i.from_at) and h.start < at(i.until_at)
"""
_PUT_HOURS = f"""
insert into service_hours (org, service, start, epoch, minutes, {_US})
select i.org, i.service, h.start, m.epoch, sum(n.count),
  {", ".join(f"sum(n.count * m.{name})" for name in _NAMES)}
from json_to_recordset(%(items)s::json)
    as i(org int, service int, from_at bigint, until_at bigint)
  cross join lateral generate_series(at(i.from_at), at(i.until_at) - interval '1 hour',
    interval '1 hour') as h(start)
  join service_minutes m on m.org = i.org and m.service = i.service
    and m.from_at > h.start - interval '1 day' and m.from_at < h.start + interval '1 hour'
    and m.until_at > h.start
  cross join lateral (select (extract(epoch from least(m.until_at, h.start + interval '1 hour')
    - greatest(m.from_at, h.start)) / 60)::bigint) as n(count)
group by i.org, i.service, h.start, m.epoch
"""
_CLEAR_DAYS = _CLEAR_HOURS.replace("service_hours", "service_days")
_PUT_DAYS = f"""
insert into service_days (org, service, start, epoch, minutes, {_US})
select i.org, i.service, d.start, h.epoch, sum(h.minutes),
  {", ".join(f"sum(h.{name})" for name in _NAMES)}
from json_to_recordset(%(items)s::json)
    as i(org int, service int, from_at bigint, until_at bigint)
  cross join lateral generate_series(at(i.from_at), at(i.until_at) - interval '24 hours',
    interval '24 hours') as d(start)
  join service_hours h on h.org = i.org and h.service = i.service
    and h.start >= d.start and h.start < d.start + interval '24 hours'
group by i.org, i.service, d.start, h.epoch
"""
_FORGET = """
delete from service_minutes m using services s
where s.org = m.org and s.id = m.service and m.until_at <= s.sealed_through
  - make_interval(days => %(kept)s::int)
"""


async def select_runs(
    tx: Tx, ranges: dict[ServiceKey, TimeSpan]
) -> dict[ServiceKey, list[MinuteSpan]]:
    """Returns the whole runs that overlap the range of each service."""
    found: dict[ServiceKey, list[MinuteSpan]] = {key: [] for key in ranges}
    for org, service, from_, until, epoch, *us in await tx.rows(_RUNS, items=_ranges(ranges)):
        found[ServiceKey((org, service))].append(MinuteSpan(from_, until, epoch, Durations(*us)))
    return found


async def replace_minutes(
    tx: Tx, ranges: dict[ServiceKey, TimeSpan], runs: dict[ServiceKey, list[MinuteSpan]]
) -> None:
    """Replaces the minutes in the range of each service."""
    # Widened by 1 µs, so that adjacent runs are merged.
    around = {
        key: TimeSpan(Instant(r.from_ - 1), Instant(r.until + 1)) for key, r in ranges.items()
    }
    before = await select_runs(tx, around)
    gone: list[dict[str, Any]] = []
    new: list[dict[str, Any]] = []
    for key, within in ranges.items():
        after = replaced(before[key], within, runs.get(key, ()))
        starts = {run.from_ for run in after}
        known = set(before[key])
        gone += [_place(key, run) for run in before[key] if run.from_ not in starts]
        new += [_item(key, run) for run in after if run not in known]
    if gone:
        await tx.execute(_DELETE_RUNS, items=msgspec.json.encode(gone).decode())
    if new:
        await tx.execute(_PUT_RUNS, items=msgspec.json.encode(new).decode())


async def put_sums(
    tx: Tx, ranges: dict[ServiceKey, TimeSpan], through: dict[ServiceKey, Instant]
) -> None:
    """Recomputes the hours and days that overlap each range and end by `through`."""
    hours = _whole(ranges, through, HOUR)
    if hours:
        await tx.execute(_CLEAR_HOURS, items=_ranges(hours))
        await tx.execute(_PUT_HOURS, items=_ranges(hours))
    days = _whole(ranges, through, DAY)
    if days:
        await tx.execute(_CLEAR_DAYS, items=_ranges(days))
        await tx.execute(_PUT_DAYS, items=_ranges(days))


async def delete_minutes(tx: Tx, kept_days: int) -> int:
    """Deletes minutes older than `kept_days` before the seal. Hours and days remain."""
    return await tx.execute(_FORGET, kept=kept_days)


def _whole(
    ranges: dict[ServiceKey, TimeSpan], through: dict[ServiceKey, Instant], unit: int
) -> dict[ServiceKey, TimeSpan]:
    found = {}
    for key, span in ranges.items():
        start = Instant(span.from_ - span.from_ % unit)
        end = Instant(min(span.until + (-span.until) % unit, through[key]))
        end = Instant(end - end % unit)
        if start < end:
            found[key] = TimeSpan(start, end)
    return found


def _ranges(ranges: dict[ServiceKey, TimeSpan]) -> str:
    items = [
        {"org": key[0], "service": key[1], "from_at": span.from_, "until_at": span.until}
        for key, span in sorted(ranges.items())
    ]
    return msgspec.json.encode(items).decode()


def _place(key: ServiceKey, run: MinuteSpan) -> dict[str, Any]:
    return {"org": key[0], "service": key[1], "from_at": run.from_}


def _item(key: ServiceKey, run: MinuteSpan) -> dict[str, Any]:
    us = zip(_NAMES, _us(run.each), strict=True)
    return {**_place(key, run), "until_at": run.until, "epoch": run.epoch, **dict(us)}


def _us(each: Durations) -> Sequence[int]:
    return [getattr(each, name) for name in _NAMES]
