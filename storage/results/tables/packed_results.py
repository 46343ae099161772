"""Packed results: heartbeats and ledger rows of one monitor, stored as arrays by column.

A piece is one row of `packed_heartbeats` or `packed_runs`. It has up to PIECE_ROWS rows of one
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

from ...core.key import MonitorKey, key_arrays
from ...core.time_span import TimeSpan
from ...engine.pools import Rejected, Tx
from ...engine.transaction import json_of
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
    """Returns the SQL of the arrays of a number, aggregated over the rows `u` of a piece `a`.

    The filters save the work for arrays that the piece does not have.
    """
    distance, most = f"(u.{number} - a.base_{number})", f"a.max_{number}"
    shift = f"(case when {most} > 127 then 16 else 0 end)"
    return f"""
    array_agg((({distance} & 65535) - 32768)::smallint) filter (where {most} > 127)
      as {number}_low,
    array_agg((({distance} >> {shift}) & 127)::integer::"char")
      filter (where {most} >= 65536 or {most} between 1 and 127
        or {most} = 0 and a.count_{number} < a.results) as {number}_mid,
    array_agg(({distance} >> ({shift} + 7))::integer) filter (where {most} >= 1 << 23)
      as {number}_top"""


def _read(packed: str, raw: str, time: str, numbers: dict[str, str], states: str) -> str:
    """Returns the CTE of the rows to pack, with the number of their piece."""
    values = ", ".join(f"{expression} as {name}" for name, expression in numbers.items())
    return f"""
r as (
  select key.g << 32 | (row_number() over w - 1) / %(piece_rows)s::int as piece,
    t.org, t.monitor, t.{time} as t, {states}, {values},
    {_CHECKSUMS[packed]} as checksum, t.{time} - lag(t.{time}) over w as gap
  from unnest(%(orgs)s::int[], %(monitors)s::int[]) with ordinality as key(org, monitor, g)
    -- One index scan for each monitor: OFFSET keeps the planner from joining the tables.
    cross join lateral (select * from {raw} t where t.org = key.org and t.monitor = key.monitor
      and t.{time} >= at(%(from_at)s) and t.{time} < at(%(until_at)s) offset 0) t
  window w as (partition by key.g order by t.{time}))"""


def _states(state: Sequence[str]) -> str:
    """Returns the SQL of the dictionary of a piece `a`, and of the index of each row.

    The entries are in the order of their first rows. Most pieces have one entry: the values of
    their first row.
    """
    entries = ", ".join(
        f"array_agg({x} order by i) filter (where i = first) as state_{x}" for x in state
    )
    columns = ", ".join(f"case when a.is_uniform then a.{x}[1:1] else a.{x} end" for x in state)
    return f"""
  select case when max(k) > 1 then array_agg(k::smallint order by i) end as state, {entries}
  from (
    select x.*, dense_rank() over (order by first) as k
    from (
      select u.*, min(i) over (partition by {", ".join(state)}) as first
      from unnest({columns}) with ordinality as u({", ".join(state)}, i)) x) y"""


def _pack(
    packed: str,
    raw: str,
    time: str,
    numbers: dict[str, str],
    state: Sequence[str],
    before: str = "",
) -> str:
    """Returns the statement that inserts the pieces of some monitors in a range of time.

    The rows of a piece are collected in arrays, because a second pass needs the smallest numbers of
    the first. The aggregates rely on the order of `ordered`, and those of arrays on the order of
    their elements: an ORDER BY in each would sort each alone. `before` are CTEs that `raw` refers
    to. `piece_rows` is a parameter of the statement.
    """
    every = ("away", *numbers)
    states = ", ".join(state)
    collected = ", ".join(
        f"array_agg({n}) as {n}, count({n}) as count_{n}, min({n}) as base_{n},"
        f" max({n}) - min({n}) as max_{n}"
        for n in numbers
    )
    # Whether all rows have the same values. There is no least boolean.
    uniform = " and ".join(
        f"(count({x}) = 0 or count({x}) = count(*) and {least}({x}) = {most}({x}))"
        for x in state
        for least, most in [("bool_and", "bool_or") if x == "up" else ("min", "max")]
    )
    columns = ", ".join(f"{name}_{part}" for name in every for part in _PARTS)
    values = ", ".join(f"a.base_{n}, c.{n}_low, c.{n}_mid, c.{n}_top" for n in every)
    return f"""
with {before} {_read(packed, raw, time, numbers, states)},
ordered as (select * from r order by piece, t),
collected as materialized (
  select piece, min(org) as org, min(monitor) as monitor, min(t) as from_at, max(t) as until_at,
    count(*) as results, bit_xor(checksum) as checksum, array_agg(t) as instants,
    array_agg(gap) as gaps, {collected},
    {", ".join(f"array_agg({x}) as {x}" for x in state)}, {uniform} as is_uniform
  from ordered group by piece),
stepped as (
  select collected.*, s.step, from_at - s.step / 2 * interval '1 microsecond' as origin
  from collected cross join lateral (
    select greatest(1, coalesce(round(date_part('epoch',
      percentile_disc(0.5) within group (order by gap)))::bigint, 1)) * 1000000 as step
    from unnest(gaps) as u(gap)) s),
a as (
  select stepped.*, away.*
  from stepped cross join lateral (
    select array_agg(skip) as skips, bool_or(skip <> 0) as is_skipping, array_agg(away) as away,
      count(*) as count_away, min(away) as base_away, max(away) - min(away) as max_away
    -- Without OFFSET the planner would compute the distance for each use.
    from (select (us / step - i + 1)::int as skip, us %% step as away
      from (select round(date_part('epoch', u.t - origin) * 1000000)::bigint as us, i
        from unnest(instants) with ordinality as u(t, i) offset 0) d offset 0) d) away)
insert into {packed} (org, monitor, from_at, until_at, results, checksum, origin, step_us, skipped,
  state, {", ".join(f"state_{name}" for name in state)}, {columns})
select a.org, a.monitor, a.from_at, a.until_at, a.results, a.checksum, a.origin, a.step,
  case when a.is_skipping then a.skips end, s.state, {", ".join(f"s.state_{x}" for x in state)},
  {values}
from a
  cross join lateral ({_states(state)}) s
  cross join lateral (
    select {", ".join(_arrays(name) for name in every)}
    from unnest({", ".join(f"a.{name}" for name in every)}) as u({", ".join(every)})) c
order by a.org, a.monitor, a.from_at
returning results
"""


_PACK_HEARTBEATS: Final = _pack(
    "packed_heartbeats", "heartbeats", "ts", _HEARTBEAT_NUMBERS, _HEARTBEAT_STATE
)
_PACK_RUNS: Final = _pack(
    "packed_runs",
    "ledger_in(key.org, key.monitor, at(%(from_at)s), at(%(until_at)s))",
    "due_at",
    _RUN_NUMBERS,
    _RUN_STATE,
)

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
# The checksum of a piece is the XOR of the checksums of its rows.
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
# Rows of a step are sorted in memory. A trigger refuses pieces of the ledger of a process that does
# not set the mark: one of an earlier version would leave out the verdicts in rows of results.
_BEFORE_PACKING: Final = """
select set_config('work_mem', '32MB', true), set_config('leadline.packs_verdicts', 'yes', true)
"""
_AFTER_PACKING: Final = "set local work_mem to default"


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
    await tx.execute(_BEFORE_PACKING)
    packed = await tx.rows(_PACK_HEARTBEATS, **those) + await tx.rows(_PACK_RUNS, **those)
    await tx.execute(_AFTER_PACKING)
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
    await tx.execute(_BEFORE_PACKING)
    await tx.rows(_MERGE[packed], piece_rows=PIECE_ROWS, **those)
    await tx.execute(_AFTER_PACKING)
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
    await tx.execute(_BEFORE_PACKING)
    for query, rows in ((_REPACK_HEARTBEATS, heartbeats), (_REPACK_RUNS, windows)):
        await tx.execute(query, rows=json_of(list(rows)), **those)
    await tx.execute(_AFTER_PACKING)
    await verify_pieces(tx, [key], span)
