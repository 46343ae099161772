"""Stored results: heartbeats, latency by step, and the ledger in pages."""

from collections.abc import Mapping, Sequence

import msgspec

from ....probes.check.result import FailedCondition
from ...core.instant import LATEST, Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx

# The text of the failed condition is looked up for failures only.
_COLUMNS = """
select ts, up, latency_ms, code, coalesce(msg, ''), dns_us, connect_us, tls_us, first_byte_us,
  (select c.text from monitor_conditions c
    where c.org = h.org and c.monitor = h.monitor and c.id = h.failed_condition), measured
from heartbeats h"""

_HEARTBEATS = f"""
{_COLUMNS} where h.org = %(org)s and h.monitor = %(monitor)s and h.ts < at(%(before)s)
order by ts desc limit %(most)s
"""


_FAILURES = f"""
{_COLUMNS} where h.org = %(org)s and h.monitor = %(monitor)s and not up
order by ts desc limit %(most)s
"""

_LAST_GOOD = f"""
{_COLUMNS} where h.org = %(org)s and h.monitor = %(monitor)s and up
order by ts desc limit 1
"""

_FAILED_CONDITIONS = """
select h.org, h.monitor, c.text, h.measured
from unnest(%(orgs)s::int[], %(monitors)s::int[], %(ats)s::bigint[]) as k(org, monitor, at_us)
  join heartbeats h on h.org = k.org and h.monitor = k.monitor and h.ts = at(k.at_us)
  join monitor_conditions c on c.org = h.org and c.monitor = h.monitor and c.id = h.failed_condition
"""

_LATENCY = """
select date_bin(%(step_us)s * interval '1 microsecond', ts, timestamptz 'epoch'), count(*),
  percentile_disc(0.5) within group (order by latency_ms)::float8,
  percentile_disc(0.95) within group (order by latency_ms)::float8
from heartbeats
where org = %(org)s and monitor = %(monitor)s and up
  and ts >= at(%(from_at)s) and ts < at(%(to_at)s)
group by 1 order by 1
"""

# A window is reserved if it is in a run batch and has no row yet. One query covers both.
_LEDGER = """
select due_at, verdict, reason, settled_at from (
  select due_at, verdict::text, reason, settled_at from expected_runs
  where org = %(org)s and monitor = %(monitor)s
    and due_at >= at(%(from_at)s) and due_at < at(%(to_at)s)
    and (%(all)s or verdict::text = any(%(verdicts)s::text[]))
  union all
  select w.due, 'reserved', null, null
  from run_batches s cross join unnest(s.orgs, s.monitors, s.due_ats) as w(org, monitor, due)
  where s.monitors @> array[%(monitor)s]::int[] and w.monitor = %(monitor)s and w.org = %(org)s
    and (%(all)s or 'reserved' = any(%(verdicts)s::text[]))
    and w.due >= at(%(from_at)s) and w.due < at(%(to_at)s)
    and not exists (select from expected_runs r
      where r.org = w.org and r.monitor = w.monitor and r.due_at = w.due)) runs
order by due_at desc limit %(most)s
"""


class HeartbeatRow(msgspec.Struct, frozen=True):
    ts: Instant
    up: bool
    latency_ms: int
    code: int | None
    msg: str
    dns_us: int | None
    connect_us: int | None
    tls_us: int | None
    first_byte_us: int | None
    # The condition that was false, and its measured value if it is shown.
    condition: str | None = None
    measured: str | None = None

    @property
    def failed(self) -> FailedCondition | None:
        return None if self.condition is None else FailedCondition(self.condition, self.measured)


class LatencyRow(msgspec.Struct, frozen=True):
    start: Instant
    count: int
    p50_ms: float
    p95_ms: float


class RunRow(msgspec.Struct, frozen=True):
    due_at: Instant
    verdict: str
    reason: str | None
    settled_at: Instant | None


async def select_heartbeats(
    tx: Tx, key: MonitorKey, most: int, before: Instant = LATEST
) -> list[HeartbeatRow]:
    """Returns the newest heartbeats before an instant, newest first."""
    return await tx.structs(
        HeartbeatRow, _HEARTBEATS, org=key[0], monitor=key[1], before=before, most=most
    )


async def select_failures(tx: Tx, key: MonitorKey, most: int) -> list[HeartbeatRow]:
    return await tx.structs(HeartbeatRow, _FAILURES, org=key[0], monitor=key[1], most=most)


async def select_last_good(tx: Tx, key: MonitorKey) -> HeartbeatRow | None:
    return await tx.one(HeartbeatRow, _LAST_GOOD, org=key[0], monitor=key[1])


async def select_latency(
    tx: Tx, key: MonitorKey, from_at: Instant, to_at: Instant, step_us: int
) -> list[LatencyRow]:
    """Returns the latency of good results by step. A step without them has no row."""
    return await tx.structs(
        LatencyRow,
        _LATENCY,
        org=key[0],
        monitor=key[1],
        from_at=from_at,
        to_at=to_at,
        step_us=step_us,
    )


async def select_ledger(
    tx: Tx,
    key: MonitorKey,
    from_at: Instant,
    to_at: Instant,
    verdicts: Sequence[str] | None,
    most: int,
) -> list[RunRow]:
    """Returns windows due in [from, to), newest first."""
    return await tx.structs(
        RunRow,
        _LEDGER,
        org=key[0],
        monitor=key[1],
        from_at=from_at,
        to_at=to_at,
        all=verdicts is None,
        verdicts=list(verdicts or ()),
        most=most,
    )


async def select_failed_conditions(
    tx: Tx, results: Mapping[MonitorKey, Instant]
) -> dict[MonitorKey, str]:
    """Returns the failed condition with its value of each given result that has one."""
    rows = await tx.rows(
        _FAILED_CONDITIONS,
        orgs=[org for org, _ in results],
        monitors=[monitor for _, monitor in results],
        ats=list(results.values()),
    )
    return {
        MonitorKey((org, monitor)): FailedCondition(text, measured).text
        for org, monitor, text, measured in rows
    }
