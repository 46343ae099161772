"""Stored results: heartbeats, and the ledger in pages."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from ....probes.check.result import FailedCondition
from ...core.instant import LATEST, Instant
from ...core.key import MonitorKey
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ..rules.packed_days import WEEK_DAYS, days_to_pack

# The text of the failed condition is looked up for failures only.
_COLUMNS = """
select ts, up, latency_ms, code, coalesce(msg, ''), dns_us, connect_us, tls_us, first_byte_us,
  (select c.text from monitor_conditions c
    where c.org = h.org and c.monitor = h.monitor and c.id = h.failed_condition), measured
"""
_NEWEST = f"""
{_COLUMNS} from heartbeats h
where h.org = %(org)s and h.monitor = %(monitor)s
  and h.ts >= at(%(since)s) and h.ts < at(%(before)s)
  and h.ts >= (select packed_through from packing) and up = any(%(ups)s::boolean[])
order by ts desc limit %(most)s
"""
# Pieces are decoded from the newest one on, and only those with a wanted result.
_NEWEST_PACKED = f"""
{_COLUMNS} from restored_heartbeats h
where h.org = %(org)s and h.monitor = %(monitor)s
  and h.piece_from < least(at(%(before)s), (select packed_through from packing))
  and h.piece_from > at(%(since)s) - interval '{WEEK_DAYS} days'
  and h.ts >= at(%(since)s) and h.ts < at(%(before)s)
  and h.piece_up && %(ups)s::boolean[] and up = any(%(ups)s::boolean[])
order by piece_from desc, ts desc limit %(most)s
"""

_FAILED_CONDITIONS = """
select k.org, k.monitor, c.text, h.measured
from unnest(%(orgs)s::int[], %(monitors)s::int[], %(ats)s::bigint[]) as k(org, monitor, at_us)
  cross join lateral heartbeats_in(
    k.org, k.monitor, at(k.at_us), at(k.at_us) + interval '1 microsecond') h
  join monitor_conditions c on c.org = k.org and c.monitor = k.monitor and c.id = h.failed_condition
"""

# A window is reserved if it is in a run batch and has no row yet. One query covers both.
_LEDGER = """
select due_at, verdict, reason, settled_at from (
  select due_at, verdict::text, reason, settled_at
  from ledger_in(%(org)s::int, %(monitor)s::int, at(%(from_at)s), at(%(to_at)s))
  where due_at >= (select packed_through from packing)
    and at >= (select packed_through from packing)
    and (%(all)s or verdict::text = any(%(verdicts)s::text[]))
  union all
  select w.due, 'reserved', null, null
  from run_batches s cross join unnest(s.orgs, s.monitors, s.due_ats) as w(org, monitor, due)
  where s.monitors @> array[%(monitor)s]::int[] and w.monitor = %(monitor)s and w.org = %(org)s
    and (%(all)s or 'reserved' = any(%(verdicts)s::text[]))
    and w.due >= at(%(from_at)s) and w.due < at(%(to_at)s)
    and not exists (select from verdict_of(w.org, w.monitor, w.due))) runs
order by due_at desc limit %(most)s
"""
# No packed window is in a run batch: a day with an open window is not packed.
_LEDGER_PACKED = """
select due_at, verdict::text, reason, settled_at from restored_runs
where org = %(org)s and monitor = %(monitor)s
  and piece_from < least(at(%(to_at)s), (select packed_through from packing))
  and piece_until >= at(%(from_at)s) and due_at >= at(%(from_at)s) and due_at < at(%(to_at)s)
  and (%(all)s or piece_verdicts::text[] && %(verdicts)s::text[])
  and (%(all)s or verdict::text = any(%(verdicts)s::text[]))
order by piece_from desc, due_at desc limit %(most)s
"""


# PostgreSQL subtracts a week from the bound.
FIRST: Final = Instant(0)
_ALWAYS: Final = TimeSpan(FIRST, LATEST)

_PACKING_PROGRESS = """
select packed_through, (select count(*) from packing_failures) from packing
"""
_PACKED_FROM = "select kept_from from packing"


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


class PackingProgress(msgspec.Struct, frozen=True):
    """`days_left` days wait for packing. `failures` days of monitors were not packed as usual."""

    packed_through: Instant
    days_left: int
    failures: int


class RunRow(msgspec.Struct, frozen=True):
    due_at: Instant
    verdict: str
    reason: str | None
    settled_at: Instant | None


async def select_heartbeats(
    tx: Tx, key: MonitorKey, most: int, before: Instant = LATEST, since: Instant = FIRST
) -> list[HeartbeatRow]:
    """Returns the newest heartbeats before an instant and from another on, newest first."""
    return await _select_newest(tx, key, most, TimeSpan(since, before), [True, False])


async def select_failures(tx: Tx, key: MonitorKey, most: int) -> list[HeartbeatRow]:
    return await _select_newest(tx, key, most, _ALWAYS, [False])


async def select_last_good(tx: Tx, key: MonitorKey) -> HeartbeatRow | None:
    return next(iter(await _select_newest(tx, key, 1, _ALWAYS, [True])), None)


async def _select_newest(
    tx: Tx, key: MonitorKey, most: int, span: TimeSpan, ups: list[bool]
) -> list[HeartbeatRow]:
    those = {"org": key[0], "monitor": key[1], "since": span.from_, "ups": ups}
    found = await tx.structs(HeartbeatRow, _NEWEST, before=span.until, most=most, **those)
    if len(found) < most:
        # A day can be packed between the two statements. Its rows are not before the last one.
        rest = {"before": found[-1].ts if found else span.until, "most": most - len(found)}
        found += await tx.structs(HeartbeatRow, _NEWEST_PACKED, **rest, **those)
    return found


async def select_packed_from(tx: Tx) -> Instant | None:
    """Returns the instant since which no result was deleted, None if no day was packed."""
    found: Instant | None = await tx.value(_PACKED_FROM)
    return found


async def select_packing_progress(tx: Tx) -> PackingProgress | None:
    """Returns None if no day is packed."""
    row = await tx.row(_PACKING_PROGRESS)
    if row is None or row[0] == FIRST:
        return None
    packed_through, failures = row
    return PackingProgress(packed_through, days_to_pack(packed_through, tx.now), failures)


async def select_ledger(
    tx: Tx,
    key: MonitorKey,
    from_at: Instant,
    to_at: Instant,
    verdicts: Sequence[str] | None,
    most: int,
) -> list[RunRow]:
    """Returns windows due in [from, to), newest first."""
    those = {
        "org": key[0],
        "monitor": key[1],
        "from_at": from_at,
        "all": verdicts is None,
        "verdicts": list(verdicts or ()),
    }
    found = await tx.structs(RunRow, _LEDGER, to_at=to_at, most=most, **those)
    if len(found) < most:
        # A day can be packed between the two statements. Its rows are not before the last one.
        rest = {"to_at": found[-1].due_at if found else to_at, "most": most - len(found)}
        found += await tx.structs(RunRow, _LEDGER_PACKED, **rest, **those)
    return found


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
