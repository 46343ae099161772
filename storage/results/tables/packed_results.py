"""Packed results: heartbeats and ledger rows of one monitor, stored as arrays by column.

A piece is one row of `packed_heartbeats` or `packed_runs`. It holds up to PIECE_ROWS rows of one
monitor in the order of time. The views `restored_heartbeats` and `restored_runs` return the rows.
The functions `heartbeats_in` and `runs_in` return the rows of a range, packed or not.

Each number is stored as its distance from the smallest one of the piece, in up to three arrays:

- `_low` has the lowest 16 bits, minus 32768. It is null if every distance is below 128.
- `_mid` has the next 7 bits, so that each byte is a character of ASCII.
- `_top` has the other bits.

An array that would contain only zeros is null. A column without values has no base. Instants are
distances from `origin + step_us * (position + skipped)`. Values that repeat (`state_…`) are a
dictionary with one index for each row; the index is null if the dictionary has one entry.

Invariants:
- Restored rows equal the packed rows in every field. `pack_results` verifies this by a checksum.
- A statement of this module changes and locks no row of `heartbeats` and `expected_runs`.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from ...core.key import MonitorKey, key_arrays
from ...core.time_span import TimeSpan
from ...engine.pools import Rejected, Tx
from ..rules.late_result import SettledWindow, StoredHeartbeat

# 960 values of 2 bytes fit into one row of TOAST, which has 1 996 bytes.
PIECE_ROWS: Final = 960

_PARTS: Final = ("base", "low", "mid", "top")

_PHASES: Final = ("dns_us", "connect_us", "tls_us", "first_byte_us")
# The latency is close to the sum of the phases, so the difference needs fewer bits.
_HEARTBEAT_NUMBERS: Final = {
    "latency": "t.latency_ms::bigint - ("
    + " + ".join(f"coalesce(t.{phase}, 0)::bigint" for phase in _PHASES)
    + ") / 1000",
    **{phase.removesuffix("_us"): f"t.{phase}::bigint" for phase in _PHASES},
}
_HEARTBEAT_STATE: Final = ("up", "code", "msg", "failed_condition", "measured")
_RUN_NUMBERS: Final = {
    "settled": "round(date_part('epoch', t.settled_at - t.due_at) * 1000000)::bigint"
}
_RUN_STATE: Final = ("verdict", "reason")
# The hash of a row. It is the same on every server: an enum is hashed as its label.
_CHECKSUMS: Final = {
    "packed_heartbeats": "hash_record_extended(row(t.org, t.monitor, t.ts, t.latency_ms, t.code,"
    " t.dns_us, t.connect_us, t.tls_us, t.first_byte_us, t.up, t.msg, t.failed_condition,"
    " t.measured), 0)",
    "packed_runs": "hash_record_extended(row(t.org, t.monitor, t.due_at, t.settled_at,"
    " t.verdict::text, t.reason), 0)",
}


def _arrays(number: str) -> str:
    """Returns the SQL of base and arrays of a number.

    The filters save the work for arrays that the piece does not have.
    """
    distance, most = f"d.d_{number}", f"d.max_{number}"
    wide = f"min({most}) > 127"
    shift = f"(case when {most} > 127 then 16 else 0 end)"
    return f"""
    min(d.base_{number}) as {number}_base,
    array_agg((({distance} & 65535) - 32768)::smallint) filter (where {most} > 127)
      as {number}_low,
    case
      when min(d.base_{number}) is null then null
      when not {wide} and min({most}) = 0 and not bool_or({distance} is null) then null
      else array_agg((({distance} >> {shift}) & 127)::integer::"char")
        filter (where {most} <= 127 or {most} >= 65536) end as {number}_mid,
    array_agg(({distance} >> ({shift} + 7))::integer) filter (where {most} >= 1 << 23)
      as {number}_top"""


def _read(packed: str, raw: str, time: str, numbers: dict[str, str], states: str) -> str:
    """Returns the CTE of the rows to pack, numbered by monitor."""
    values = ", ".join(f"{expression} as v_{name}" for name, expression in numbers.items())
    return f"""
r as (
  select key.g, t.org, t.monitor, t.{time} as t, {states}, {values},
    {_CHECKSUMS[packed]} as checksum, hash_record_extended(row({states}), 0) as state_hash,
    row_number() over w - 1 as n, t.{time} - lag(t.{time}) over w as gap
  from unnest(%(orgs)s::int[], %(monitors)s::int[]) with ordinality as key(org, monitor, g)
    -- One index scan for each monitor: OFFSET keeps the planner from joining the tables.
    cross join lateral (select * from {raw} t where t.org = key.org and t.monitor = key.monitor
      and t.{time} >= at(%(from_at)s) and t.{time} < at(%(until_at)s) offset 0) t
  window w as (partition by key.g order by t.{time}))"""


def _pack(
    packed: str,
    raw: str,
    time: str,
    numbers: dict[str, str],
    state: Sequence[str],
    before: str = "",
) -> str:
    """Returns the statement that inserts the pieces of some monitors in a range of time.

    The aggregates rely on the order of the subquery `d`: an ORDER BY in each would sort each alone.
    `before` are CTEs that `raw` refers to. `piece_rows` is a parameter of the statement.
    """
    every = ("away", *numbers)
    states = ", ".join(state)
    bases = ", ".join(
        f"min(v_{name}) as base_{name}, max(v_{name}) - min(v_{name}) as max_{name}"
        for name in every
    )
    distances = ", ".join(
        f"v_{name} - base_{name} as d_{name}, base_{name}, max_{name}" for name in every
    )
    columns = ", ".join(f"{name}_{part}" for name in every for part in _PARTS)
    return f"""
with {before} {_read(packed, raw, time, numbers, states)},
-- A piece has one number, because the planner misjudges a join by several columns.
p as materialized (
  select r.*, r.g << 32 | n / %(piece_rows)s::int as piece, (n %% %(piece_rows)s::int)::int as i
  from r),
o as materialized (
  select q.*, from_at - step / 2 * interval '1 microsecond' as origin
  from (
    select piece, min(org) as org, min(monitor) as monitor, min(t) as from_at, max(t) as until_at,
      count(*) as results, bit_xor(checksum) as checksum,
      greatest(1, coalesce(round(date_part('epoch',
        percentile_disc(0.5) within group (order by gap)))::bigint, 1)) * 1000000 as step
    from p group by piece) q),
f as materialized (
  select a.*, (away / step - i)::int as skipped, away %% step as v_away
  from (
    select p.*, o.step, round(date_part('epoch', p.t - o.origin) * 1000000)::bigint as away
    from p join o using (piece)) a),
b as (select piece, {bases} from f group by piece),
k as materialized (
  select piece, state_hash, {states},
    row_number() over (partition by piece order by min(i)) as k
  from p group by piece, state_hash, {states}),
s as (
  select piece, {", ".join(f"array_agg({name} order by k) as state_{name}" for name in state)}
  from k group by piece),
d as (
  select f.piece, f.skipped, k.k, {distances}
  from f join b using (piece)
    join k on k.piece = f.piece and k.state_hash = f.state_hash
      and {" and ".join(f"k.{name} is not distinct from f.{name}" for name in state)}
  order by f.piece, f.i),
c as (
  select d.piece,
    case when bool_or(d.skipped <> 0) then array_agg(d.skipped) end as skipped,
    case when max(d.k) > 1 then array_agg(d.k::smallint) end as state,
    {", ".join(_arrays(name) for name in every)}
  from d group by d.piece)
insert into {packed} (org, monitor, from_at, until_at, results, checksum, origin, step_us, skipped,
  state, {", ".join(f"state_{name}" for name in state)}, {columns})
select org, monitor, from_at, until_at, results, checksum, origin, step, skipped,
  state, {", ".join(f"state_{name}" for name in state)}, {columns}
from c join o using (piece) join s using (piece)
order by org, monitor, from_at
returning results
"""


_PACK_HEARTBEATS: Final = _pack(
    "packed_heartbeats", "heartbeats", "ts", _HEARTBEAT_NUMBERS, _HEARTBEAT_STATE
)
_PACK_RUNS: Final = _pack("packed_runs", "expected_runs", "due_at", _RUN_NUMBERS, _RUN_STATE)

# Rows of one monitor that were taken from their pieces and changed.
_KEY: Final = "(%(orgs)s::int[])[1] as org, (%(monitors)s::int[])[1] as monitor"
_CHANGED_HEARTBEATS: Final = f"""(
  select {_KEY}, at(i.at_us) as ts, i.* from (select ts as at_us, latency_ms, code, dns_us,
    connect_us, tls_us, first_byte_us, up, msg, failed_condition, measured
    from json_to_recordset(%(rows)s::json) as j(ts bigint, latency_ms int, code int, dns_us int,
      connect_us int, tls_us int, first_byte_us int, up boolean, msg text, failed_condition int,
      measured text)) i)"""
_CHANGED_RUNS: Final = f"""(
  select {_KEY}, at(i.due_at) as due_at, at(i.settled_at) as settled_at, i.verdict, i.reason
  from json_to_recordset(%(rows)s::json)
    as i(due_at bigint, settled_at bigint, verdict verdict, reason text))"""
_REPACK_HEARTBEATS: Final = _pack(
    "packed_heartbeats", _CHANGED_HEARTBEATS, "ts", _HEARTBEAT_NUMBERS, _HEARTBEAT_STATE
)
_REPACK_RUNS: Final = _pack("packed_runs", _CHANGED_RUNS, "due_at", _RUN_NUMBERS, _RUN_STATE)

# Pieces of a week are deleted and packed again. The deletion and the read have one snapshot, so
# the read still sees the deleted pieces. It needs their number, so all are deleted before a new one
# is inserted.
_MERGED: Final = """
gone as (
  delete from {0} p using unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  where p.org = k.org and p.monitor = k.monitor
    and p.from_at >= at(%(from_at)s) and p.from_at < at(%(until_at)s)
  returning 1),
"""
_MERGED_ROWS: Final = """(
  select * from {0} where (select count(*) from gone) >= 0
    and piece_from >= at(%(from_at)s) and piece_from < at(%(until_at)s))"""
_MERGE: Final = {
    "packed_heartbeats": _pack(
        "packed_heartbeats",
        _MERGED_ROWS.format("restored_heartbeats"),
        "ts",
        _HEARTBEAT_NUMBERS,
        _HEARTBEAT_STATE,
        _MERGED.format("packed_heartbeats"),
    ),
    "packed_runs": _pack(
        "packed_runs",
        _MERGED_ROWS.format("restored_runs"),
        "due_at",
        _RUN_NUMBERS,
        _RUN_STATE,
        _MERGED.format("packed_runs"),
    ),
}
# The checksum of a piece is the sum (by XOR) of those of its rows.
_SUMS: Final = """
select p.org, p.monitor, sum(p.results), bit_xor(p.checksum)
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  join {0} p on p.org = k.org and p.monitor = k.monitor
    and p.from_at >= at(%(from_at)s) and p.from_at < at(%(until_at)s)
group by 1, 2 order by 1, 2
"""

# The deletion and the read have one snapshot, so the read still sees the deleted pieces.
_TAKE: Final = """
with gone as (
  delete from {packed} where org = %(org)s and monitor = %(monitor)s
    and from_at >= at(%(from_at)s) and from_at < at(%(until_at)s))
select {columns} from {restored} where org = %(org)s and monitor = %(monitor)s
  and piece_from >= at(%(from_at)s) and piece_from < at(%(until_at)s)
order by 1
"""
_TAKE_HEARTBEATS: Final = _TAKE.format(
    packed="packed_heartbeats",
    restored="restored_heartbeats",
    columns="ts, latency_ms, code, dns_us, connect_us, tls_us, first_byte_us, up, msg,"
    " failed_condition, measured",
)
_TAKE_RUNS: Final = _TAKE.format(
    packed="packed_runs",
    restored="restored_runs",
    columns="due_at, settled_at, verdict::text, reason",
)


def _damaged(packed: str, restored: str) -> str:
    """Returns the statement that selects pieces whose restored rows are not the packed ones."""
    return f"""
select p.org, p.monitor, p.from_at
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  join {packed} p on p.org = k.org and p.monitor = k.monitor
    and p.from_at >= at(%(from_at)s) and p.from_at < at(%(until_at)s)
  cross join lateral (
    select count(*) as results, bit_xor({_CHECKSUMS[packed]}) as checksum from {restored} t
    where t.org = p.org and t.monitor = p.monitor and t.piece_from = p.from_at) r
where p.results <> r.results or p.checksum is distinct from r.checksum
order by p.org, p.monitor, p.from_at
"""


_DAMAGED: Final = {
    "packed_heartbeats": _damaged("packed_heartbeats", "restored_heartbeats"),
    "packed_runs": _damaged("packed_runs", "restored_runs"),
}
# The planner takes the rows of a CTE for few, and would compare every row with every piece.
_BEFORE_PACKING: Final = (
    "set local enable_nestloop = off",
    # A merge join would sort all rows by their states.
    "set local enable_mergejoin = off",
    # Rows of a step are sorted in memory.
    "set local work_mem = '32MB'",
)
_AFTER_PACKING: Final = (
    "set local enable_nestloop to default",
    "set local enable_mergejoin to default",
    "set local work_mem to default",
)


class DamagedPiece(Rejected):
    """The rows of a piece do not have its number or its checksum."""


async def pack_results(
    tx: Tx, keys: Sequence[MonitorKey], span: TimeSpan, piece_rows: int = PIECE_ROWS
) -> int:
    """Inserts the pieces of all heartbeats and ledger rows in the span, and returns their number.

    The span is a day or a part of one. The caller deletes the raw rows. Raises DamagedPiece if the
    restored rows differ, and Rejected (a unique violation) if the range is packed already.
    """
    those = {**_parameters(keys, span), "piece_rows": piece_rows}
    for setting in _BEFORE_PACKING:
        await tx.execute(setting)
    packed = await tx.rows(_PACK_HEARTBEATS, **those) + await tx.rows(_PACK_RUNS, **those)
    for setting in _AFTER_PACKING:
        await tx.execute(setting)
    await verify_pieces(tx, keys, span)
    return sum(count for (count,) in packed)


def _parameters(keys: Sequence[MonitorKey], span: TimeSpan) -> dict[str, Any]:
    return {**key_arrays(keys, "monitors"), "from_at": span.from_, "until_at": span.until}


async def merge_pieces(tx: Tx, packed: str, keys: Sequence[MonitorKey], week: TimeSpan) -> int:
    """Packs the pieces of a week together, and returns the number of their rows.

    `packed` is their table. The caller has locked the pieces. Raises DamagedPiece if a piece was
    damaged, or if the rows differ afterwards.
    """
    those = _parameters(keys, week)
    before = await tx.rows(_SUMS.format(packed), **those)
    for setting in _BEFORE_PACKING:
        await tx.execute(setting)
    await tx.rows(_MERGE[packed], piece_rows=PIECE_ROWS, **those)
    for setting in _AFTER_PACKING:
        await tx.execute(setting)
    after = await tx.rows(_SUMS.format(packed), **those)
    if after != before:
        raise DamagedPiece(f"the merged pieces of {len(keys)} monitors from {week.from_} on differ")
    await verify_pieces(tx, keys, week, [packed])
    return sum(int(results) for _, _, results, _ in after)


async def verify_pieces(
    tx: Tx, keys: Sequence[MonitorKey], span: TimeSpan, tables: Iterable[str] = tuple(_DAMAGED)
) -> None:
    """Raises DamagedPiece if a piece that begins in the span is damaged."""
    those = _parameters(keys, span)
    for table in tables:
        if found := await tx.rows(_DAMAGED[table], **those):
            org, monitor, at = found[0]
            raise DamagedPiece(f"{len(found)} pieces; the first: monitor {(org, monitor)} at {at}")


async def take_pieces(
    tx: Tx, key: MonitorKey, span: TimeSpan
) -> tuple[list[StoredHeartbeat], list[SettledWindow]]:
    """Deletes the pieces of a packed range and returns their rows in the order of time.

    The caller has locked the state of the monitor, verified the pieces, and puts the rows back in
    the same transaction.
    """
    those = {"org": key[0], "monitor": key[1], "from_at": span.from_, "until_at": span.until}
    return (
        await tx.structs(StoredHeartbeat, _TAKE_HEARTBEATS, **those),
        await tx.structs(SettledWindow, _TAKE_RUNS, **those),
    )


async def put_pieces(
    tx: Tx,
    key: MonitorKey,
    span: TimeSpan,
    heartbeats: Sequence[StoredHeartbeat],
    windows: Sequence[SettledWindow],
    piece_rows: int = PIECE_ROWS,
) -> None:
    """Packs the rows of a range that has no pieces. Raises as `pack_results`."""
    those = {**_parameters([key], span), "piece_rows": piece_rows}
    for setting in _BEFORE_PACKING:
        await tx.execute(setting)
    for query, rows in ((_REPACK_HEARTBEATS, heartbeats), (_REPACK_RUNS, windows)):
        await tx.execute(query, rows=msgspec.json.encode(list(rows)).decode(), **those)
    for setting in _AFTER_PACKING:
        await tx.execute(setting)
    await verify_pieces(tx, [key], span)
