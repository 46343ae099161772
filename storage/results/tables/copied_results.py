"""Rows of steady results, written by COPY.

COPY writes the rows of a page as one record of WAL, where INSERT writes a record for each row. It
cannot test the version of a state or a window, so a statement of its own locks the states before,
and another one reads the windows with a newer snapshot.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import Final

from ...core.instant import Instant
from ...core.key import key_arrays
from ...engine.pools import LockRank, Rejected, Tx
from ..rules.incoming_result import IncomingResult
from ..rules.packed_days import LATE_US

# As in the statement of `results.py`: the fences, then the states whose version is the remembered
# one. READ COMMITTED reads a state again if another transaction changed it during the wait.
_HOLD: Final = f"""
with item as materialized (
  select * from unnest(%(orgs)s::int[], %(monitors)s::int[], %(of_shards)s::int[],
    %(versions)s::bigint[], %(instants)s::bigint[], %(dues)s::bigint[], %(reaches)s::bigint[])
    with ordinality as i(org, monitor, shard, version, ts, due, reach_us, n)),
fence as materialized (
  select id, sealed_through from shards where id = any(%(shards)s) order by id for key share)
select i.n - 1 from monitor_states s
  join item i on i.org = s.org and i.monitor = s.monitor and i.version = s.version
  join fence f on f.id = i.shard
where at(i.ts) >= f.sealed_through - i.reach_us * interval '1 microsecond'
  -- An older row can belong to a packed day.
  and at(least(i.ts, i.due)) >= f.sealed_through - {LATE_US} * interval '1 microsecond'
order by i.org, i.monitor, i.ts
for no key update of s
"""
# With OFFSET the planner computes the instant once, and not for each partition.
_TAKEN: Final = """
select i.n - 1
from (select org, monitor, at(due) as due, at(ts) as ts, up, n
  from unnest(%(orgs)s::int[], %(monitors)s::int[], %(dues)s::bigint[], %(instants)s::bigint[],
    %(ups)s::bool[]) with ordinality as i(org, monitor, due, ts, up, n) offset 0) i
where exists (select from verdict_of(i.org, i.monitor, i.due))
  or (not i.up and exists (select from heartbeats h
    where h.org = i.org and h.monitor = i.monitor and h.ts > i.ts))
"""
_HEARTBEATS: Final = """
copy heartbeats (org, monitor, ts, latency_ms, up, code, dns_us, connect_us, tls_us, first_byte_us,
  msg, failed_condition, measured, after_due_us, settled_after_us) from stdin (format binary)
"""
_RUNS: Final = """
copy expected_runs (org, monitor, due_at, settled_at, verdict) from stdin (format binary)
"""

# The binary format of COPY: a header, the rows, an end. A row begins with the number of its fields,
# a field with its length in bytes, which is -1 for null. Instants count from the year 2000.
_HEADER: Final = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)
_END: Final = struct.pack("!h", -1)
_NULL: Final = struct.pack("!i", -1)
_NULLS: Final = 2 * _NULL
_YEAR_2000_US: Final = 946_684_800_000_000
_HEARTBEAT: Final = struct.Struct("!hiiiiiqiiib").pack
_RUN: Final = struct.Struct("!hiiiiiqiqi").pack
_INTEGER: Final = struct.Struct("!ii").pack
_INTEGERS: Final = struct.Struct("!iiii").pack
_LENGTH: Final = struct.Struct("!i").pack


async def hold_steady(tx: Tx, arrivals: Sequence[IncomingResult], shards: list[int]) -> list[int]:
    """Locks the states that are unchanged, and returns the places of their results in order.

    The other results found a newer state, or the fence of their shard past them. The fences stay
    locked FOR KEY SHARE too: a sealer waits for the commit.
    """
    tx.lock_rank(LockRank.STATE, "states")
    rows = await tx.rows(
        _HOLD,
        **key_arrays([a.key for a in arrivals], "monitors"),
        of_shards=[a.shard for a in arrivals],
        versions=[a.version for a in arrivals],
        instants=[a.ts for a in arrivals],
        dues=[a.dues[0] for a in arrivals],
        reaches=[a.reach_us for a in arrivals],
        shards=shards,
    )
    return [place for (place,) in rows]


async def find_taken(tx: Tx, arrivals: Sequence[IncomingResult]) -> set[int]:
    """Returns the places of results whose windows have a verdict, and of late failures.

    Call it after `hold_steady`, as a separate statement, so that its snapshot includes the commit
    of the previous lock owner.
    """
    rows = await tx.rows(
        _TAKEN,
        **key_arrays([a.key for a in arrivals], "monitors"),
        dues=[a.dues[0] for a in arrivals],
        instants=[a.ts for a in arrivals],
        ups=[a.up for a in arrivals],
    )
    return {place for (place,) in rows}


async def copy_results(
    tx: Tx, arrivals: Sequence[IncomingResult], conditions: Sequence[int | None]
) -> None:
    """Copies each result and the verdict of its window. `conditions` are the failed ones.

    Raises Rejected if an instant is taken (a unique violation), or if a value does not fit into its
    column.
    """
    now = tx.now
    pairs = zip(arrivals, conditions, strict=True)
    try:
        heartbeats = _copied(_heartbeat(a, condition, now) for a, condition in pairs)
        runs = [_run(a, now - _YEAR_2000_US) for a in arrivals if not a.shares_row]
    except (struct.error, UnicodeEncodeError) as error:
        raise Rejected(f"a value of a result cannot be stored: {error}") from error
    await tx.copy_bytes(_HEARTBEATS, heartbeats)
    if runs:
        await tx.copy_bytes(_RUNS, _copied(runs))


def _copied(rows: Iterable[bytes]) -> bytes:
    return b"".join([_HEADER, *rows, _END])


def _heartbeat(a: IncomingResult, condition: int | None, now: Instant) -> bytes:
    at = a.ts - _YEAR_2000_US
    head = _HEARTBEAT(15, 4, a.org, 4, a.monitor, 8, at, 4, a.latency_ms, 1, a.up)
    numbers = (a.code, a.dns_us, a.connect_us, a.tls_us, a.first_byte_us)
    measured = a.measured if condition is not None else None
    return b"".join(
        [
            head,
            *[_NULL if n is None else _INTEGER(4, n) for n in numbers],
            _text(a.msg or None),
            _NULL if condition is None else _INTEGER(4, condition),
            _text(measured),
            _INTEGERS(4, a.ts - a.dues[0], 4, now - a.ts) if a.shares_row else _NULLS,
        ]
    )


def _run(a: IncomingResult, settled_at: int) -> bytes:
    verdict = b"covered_late" if a.late else b"covered"
    due = a.dues[0] - _YEAR_2000_US
    return _RUN(5, 4, a.org, 4, a.monitor, 8, due, 8, settled_at, len(verdict)) + verdict


def _text(value: str | None) -> bytes:
    if value is None:
        return _NULL
    encoded = value.encode()
    return _LENGTH(len(encoded)) + encoded
