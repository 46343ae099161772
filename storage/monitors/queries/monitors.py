"""Reads of monitors for the console and API: configuration, status and newest result."""

from collections.abc import Collection, Sequence
from typing import Final
from uuid import UUID

import msgspec

from ...core.instant import SECOND, Instant
from ...core.key import MonitorKey, key_arrays
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ...scheduling.rules.run_schedule import (
    ScheduleTerm,
    deadline_after_missed,
    deadline_of,
    next_due,
    promised,
)
from ..rows import MonitorRow, ProbeErrorRow
from ..rules.monitor import MonitorType
from ..rules.monitor_state import (
    ACTIVE_FLOOR_US,
    ACTIVE_MULTIPLIER,
    MonitorStatus,
    freshness_us,
    status_at,
)
from ..tables.monitors import COLUMNS, FROM

# A push deadline is judged when all listening processes have passed it. This is the longest wait
# for a process that died.
PUSH_FOLDED_WITHIN_US: Final = 20 * SECOND
# A lookup is faster than a call of the enum, for thousands of monitors.
_STATUSES: Final = {status.value: status for status in MonitorStatus}
USUAL_HOLD: Final = (ACTIVE_MULTIPLIER, ACTIVE_FLOOR_US)

_STANDING = """
select k.org, k.monitor, s.status, s.failures, s.successes, s.since, h.ts, h.up, h.latency_ms,
  h.code, h.msg,
  coalesce(g.interval_seconds, t.interval_seconds), coalesce(g.grace_seconds, t.grace_seconds),
  coalesce(g.schedule, t.schedule), coalesce(g.timezone, t.timezone),
  t.enabled, t.from_at, t.interval_seconds, t.grace_seconds, t.schedule, t.timezone, t.anchor,
  coalesce(t.from_at > h.ts and exists (select from monitor_terms p
    where p.org = k.org and p.monitor = k.monitor and p.from_at > h.ts and not p.enabled), false),
  coalesce(f.failures, 0), f.first_at
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  join monitor_states s on s.org = k.org and s.monitor = k.monitor
  join lateral (select * from monitor_terms
    where org = k.org and monitor = k.monitor order by from_at desc limit 1) t on true
  -- Partitions created ahead are empty. Without this bound each is scanned for each monitor.
  left join lateral newest_heartbeat(k.org, k.monitor, at(%(now)s) + interval '1 day') h on true
  left join lateral (select interval_seconds, grace_seconds, schedule, timezone
    from monitor_terms
    where org = k.org and monitor = k.monitor and from_at < h.ts
    order by from_at desc limit 1) g on true
  -- The limit keeps the function from being called for monitors whose newest result is up.
  left join lateral (select * from failure_run(k.org, k.monitor)
    where {counted} and h.up is false limit 1) f on true
"""
_COUNTED = _STANDING.replace("{counted}", "true")
_UNCOUNTED = _STANDING.replace("{counted}", "false")

_OF_PROJECT = f"""
select {COLUMNS} {FROM} where m.org = %(org)s and m.project = %(project)s order by m.slug
"""
_DEPENDENCY_UIDS = """
select id, uid from monitors where org = %(org)s and id = any(%(ids)s)
"""


class MonitorStatusRow(msgspec.Struct, frozen=True):
    """Status of a monitor, and its newest result with the interval and grace in force then.

    `paused_since` states that a pause began after the result. `failures_in_row` is at most 1 000,
    and 0 unless counting was requested. `failing_since` is the instant of the first of them.
    """

    org: int
    monitor: int
    status: str
    failures: int
    successes: int
    since: Instant
    last_at: Instant | None
    last_up: bool | None
    latency_ms: int | None
    code: int | None
    msg: str | None
    interval_seconds: int
    grace_seconds: int
    schedule: str
    timezone: str
    enabled: bool
    term_from: Instant
    term_interval_seconds: int
    term_grace_seconds: int
    term_schedule: str
    term_timezone: str
    term_anchor: Instant
    paused_since: bool
    failures_in_row: int
    failing_since: Instant | None = None

    @property
    def came_under(self) -> ScheduleTerm:
        """Promise in force when the newest result came."""
        return ScheduleTerm(
            from_=self.term_from,
            anchor=self.term_anchor,
            interval_us=self.interval_seconds * SECOND,
            timeout_us=0,
            grace_us=self.grace_seconds * SECOND,
            schedule=self.schedule,
            timezone=self.timezone,
        )

    @property
    def newest_term(self) -> ScheduleTerm:
        """Newest term, without its timeout and shard."""
        return ScheduleTerm(
            from_=self.term_from,
            anchor=self.term_anchor,
            interval_us=self.term_interval_seconds * SECOND,
            timeout_us=0,
            grace_us=self.term_grace_seconds * SECOND,
            enabled=self.enabled,
            schedule=self.term_schedule,
            timezone=self.term_timezone,
        )


async def select_standings(
    tx: Tx, keys: Sequence[MonitorKey], *, counted: bool = True
) -> dict[MonitorKey, MonitorStatusRow]:
    rows = await tx.structs(
        MonitorStatusRow,
        _COUNTED if counted else _UNCOUNTED,
        **key_arrays(keys, "monitors"),
        now=tx.now,
    )
    return {MonitorKey((row.org, row.monitor)): row for row in rows}


def still_troubled(
    trouble: ProbeErrorRow | None, standing: MonitorStatusRow | None
) -> ProbeErrorRow | None:
    """Returns the probe error unless a newer result exists."""
    last_at = standing.last_at if standing is not None else None
    return trouble if trouble is not None and (last_at is None or trouble.at > last_at) else None


def status_of(
    standing: MonitorStatusRow | None,
    kind: str,
    now: Instant,
    maintenance: Sequence[TimeSpan] = (),
    hold: tuple[int, int] = USUAL_HOLD,
) -> MonitorStatus:
    """Returns the folded status while the newest result is fresh, otherwise pending.

    `hold` is the freshness of a probe result: a multiple of the interval and a minimum in µs.
    """
    if standing is None:
        return MonitorStatus.PENDING
    until = held_until(standing, kind, now, maintenance, hold)
    return status_at(_STATUSES[standing.status], until, now)


def held_until(
    standing: MonitorStatusRow,
    kind: str,
    now: Instant,
    maintenance: Sequence[TimeSpan] = (),
    hold: tuple[int, int] = USUAL_HOLD,
) -> Instant | None:
    """Returns the end of freshness of the newest result.

    Returns None without a result, while the monitor is paused, and if the result is older than one
    of the given maintenances or than a pause.
    """
    if standing.last_at is None or not standing.enabled or standing.paused_since:
        return None
    if any(standing.last_at < span.from_ <= now for span in maintenance):
        return None
    if kind == MonitorType.PUSH:
        return _push_held_until(standing, standing.last_at)
    if not standing.schedule:
        return Instant(standing.last_at + freshness_us(standing.interval_seconds * SECOND, *hold))
    return Instant(standing.last_at + freshness_us(standing.came_under.longest_us, *hold))


def next_due_of(standing: MonitorStatusRow | None, now: Instant) -> Instant | None:
    """Returns the next due instant of the newest term, None while the monitor is paused."""
    if standing is None or not standing.enabled:
        return None
    return next_due(standing.newest_term, now)


def _push_held_until(standing: MonitorStatusRow, last_at: Instant) -> Instant:
    """Returns the deadline plus PUSH_FOLDED_WITHIN_US, in which the next failure is folded."""
    came_under, newest = standing.came_under, standing.newest_term
    if standing.msg == "push_missed":
        until = deadline_after_missed(last_at, came_under)
    elif standing.term_from > last_at and promised(newest) != promised(came_under):
        # An edit restarted the expectation.
        until = deadline_of(standing.term_from, newest)
    else:
        until = deadline_of(last_at, came_under)
    return Instant(until + PUSH_FOLDED_WITHIN_US)


async def select_monitors_of_project(tx: Tx, org: int, project: int) -> list[MonitorRow]:
    return await tx.structs(MonitorRow, _OF_PROJECT, org=org, project=project)


async def select_uids(tx: Tx, org: int, ids: Sequence[int]) -> dict[int, UUID]:
    return dict(await tx.rows(_DEPENDENCY_UIDS, org=org, ids=list(ids)))


_BY_UID = f"select {COLUMNS} {FROM} where m.uid = %(uid)s"

_SUPERSEDED = f"""
select {COLUMNS} {FROM} where m.org = %(org)s and m.superseded_by = %(service)s order by m.slug
"""

_UIDS = "select id, uid from monitors where org = %(org)s and id = any(%(ids)s::int[])"


async def select_monitor(tx: Tx, uid: UUID) -> MonitorRow | None:
    return await tx.one(MonitorRow, _BY_UID, uid=uid)


async def select_superseded(tx: Tx, org: int, service: int) -> list[MonitorRow]:
    """Returns the monitors that the service has superseded, by slug."""
    return await tx.structs(MonitorRow, _SUPERSEDED, org=org, service=service)


async def select_monitor_uids(tx: Tx, org: int, keys: Collection[int]) -> dict[int, UUID]:
    return dict(await tx.rows(_UIDS, org=org, ids=sorted(keys)))
