"""Packed results are restored bit for bit, and a damaged piece is found."""

import json
import random
from typing import Any, Final

import msgspec
import pytest
import trio
import trio.lowlevel

from leadline.storage.core.instant import DAY, HOUR, SECOND, Instant
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.engine.pools import Rejected, Tx
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.results.rules.late_result import SettledWindow, StoredHeartbeat
from leadline.storage.results.rules.packed_days import WEEK_US, week_of
from leadline.storage.results.tables import packed_results
from leadline.storage.results.tables.packed_results import (
    _RUN_NUMBERS,
    _RUN_STATE,
    PIECE_ROWS,
    DamagedPiece,
    _pack,
    merge_pieces,
    pack_results,
    verify_pieces,
)
from leadline.storage.results.tables.packing import PACKED
from leadline.storage.results.tables.results import settle_windows
from leadline.storage.results.transactions.store_late_results import store_late_results
from leadline.storage.retirement.transactions.delete_monitor import delete_monitor
from tests.support.worlds.world import START, World

_INT: Final = 2**31 - 1
_INSERT_HEARTBEATS = """
insert into heartbeats (org, monitor, ts, latency_ms, code, dns_us, connect_us, tls_us,
  first_byte_us, up, msg, failed_condition, measured)
select %(org)s, %(monitor)s, at(ts), latency_ms, code, dns_us, connect_us, tls_us, first_byte_us,
  up, msg, failed_condition, measured
from json_to_recordset(%(items)s::json) as i(ts bigint, latency_ms int, code int, dns_us int,
  connect_us int, tls_us int, first_byte_us int, up boolean, msg text, failed_condition int,
  measured text)
"""
_INSERT_RUNS = """
insert into expected_runs (org, monitor, due_at, settled_at, verdict, reason)
select %(org)s, %(monitor)s, at(due_at), at(settled_at), verdict, reason
from json_to_recordset(%(items)s::json) as i(due_at bigint, settled_at bigint, verdict verdict,
  reason text)
"""
_HEARTBEATS = """org, monitor, ts, latency_ms, code, dns_us, connect_us, tls_us, first_byte_us, up,
  msg, failed_condition, measured"""
_RUNS = "org, monitor, due_at, settled_at, verdict, reason"
# Rows that only one of the two relations has, with their numbers of occurrences.
_DIFFERENCE = """
select count(*) from (
  (select {columns} from {raw} except all select {columns} from {restored})
  union all
  (select {columns} from {restored} except all select {columns} from {raw})) q
"""
Rows = list[dict[str, Any]]


def instants(rng: random.Random, start: Instant, count: int) -> list[int]:
    """Returns instants of one day: of a schedule with jitter, gaps and changes, or arbitrary."""
    if rng.random() < 0.2:
        return sorted(start + offset for offset in rng.sample(range(DAY), count))
    step = rng.choice([5, 10, 30, 60, 90, 600, 3_600]) * SECOND
    jitter = rng.choice([0, 1, 2_000, 90_000, step - 1])
    skipped = rng.choice([0, 0, 0.1, 0.6])
    found, cursor = set[int](), start + rng.randrange(step)
    while cursor < start + DAY - step and len(found) < count:
        if rng.random() >= skipped:
            found.add(cursor + rng.randint(0, jitter))
        if rng.random() < 0.002:
            step = rng.choice([5, 10, 60, 600, 3_600]) * SECOND
        cursor += step
    return sorted(found)


def number(rng: random.Random) -> Any:
    """Returns a function that draws values of one column of a day."""
    low = rng.choice([-_INT - 1, -5, 0, 3, 70_000, 5_000_000])
    width = rng.choice([0, 1, 127, 128, 65_535, 65_536, 1 << 23, (1 << 23) - 1, _INT])
    absent = rng.choice([0, 0, 0.3, 1])
    far = rng.choice([0, 0.01])

    def drawn() -> int | None:
        if rng.random() < absent:
            return None
        if rng.random() < far:
            return rng.choice([-_INT - 1, _INT])
        offset = rng.choice([0, width]) if rng.random() < 0.1 else rng.randint(0, width)
        return min(low + offset, _INT)

    return drawn


def heartbeats(rng: random.Random, start: Instant, count: int) -> Rows:
    """Returns heartbeats with arbitrary values in every field."""
    phases = {name: number(rng) for name in ("dns_us", "connect_us", "tls_us", "first_byte_us")}
    latency, code, condition = number(rng), number(rng), number(rng)
    sets: list[list[str | None]] = [[None], [None, "", "timeout"]]
    sets.append(["ä" * 300, "é", 'a"b\\,{}', "NULL"])
    messages = rng.choice(sets)
    distinct = rng.random() < 0.2
    return [
        {
            "ts": ts,
            "latency_ms": latency() or 0,
            "code": code() if distinct else rng.choice([None, 200, 503]),
            "up": rng.random() < 0.7,
            "msg": f"message {ts}" if distinct else rng.choice(messages),
            "failed_condition": condition() if distinct else None,
            "measured": rng.choice([None, "", str(ts)]),
            **{name: phase() for name, phase in phases.items()},
        }
        for ts in instants(rng, start, count)
    ]


def runs(rng: random.Random, start: Instant, count: int) -> Rows:
    """Returns settled windows: early, late by up to a month, missed and withheld ones."""
    lag = rng.choice([0, 900_000, 20 * SECOND, 30 * DAY])
    reasons: list[tuple[str, str | None]] = [
        ("covered", None),
        ("covered_late", None),
        ("missed", None),
    ]
    reasons += [("withheld", "maintenance"), ("withheld", "paused"), ("missed", "overload")]
    verdicts = rng.choice([reasons[:1], reasons[3:4], reasons])
    rows = []
    for due in instants(rng, start, count):
        verdict, reason = rng.choice(verdicts)
        settled = due + rng.randint(-min(lag, SECOND), lag)
        rows.append({"due_at": due, "settled_at": settled, "verdict": verdict, "reason": reason})
    return rows


async def insert(tx: Tx, row: MonitorRow, beats: Rows, settled: Rows) -> None:
    key = {"org": row.org, "monitor": row.id}
    await tx.execute(_INSERT_HEARTBEATS, items=json.dumps(beats), **key)
    await tx.execute(_INSERT_RUNS, items=json.dumps(settled), **key)


async def differences(tx: Tx, but: str = "") -> list[int]:
    """Returns the numbers of heartbeats and ledger rows that were lost, made or changed.

    The leading columns `but` are not compared.
    """
    relations = {
        "heartbeats": ("restored_heartbeats", _HEARTBEATS),
        "expected_runs": ("restored_runs", _RUNS),
    }
    return [
        await tx.value(
            _DIFFERENCE.format(columns=columns.removeprefix(but), raw=raw, restored=restored)
        )
        for raw, (restored, columns) in relations.items()
    ]


@pytest.mark.parametrize("seed", range(3))
async def test_random_histories_are_restored_bit_for_bit(world: World, seed: int) -> None:
    rng = random.Random(seed)
    rows = [await world.monitor(), await world.monitor()]
    keys = [row.key for row in rows]
    for day in range(12):
        start = Instant(START + day * DAY)
        async with world.pool.transaction("pack") as tx:
            for row in rows:
                sizes = [rng.choice([0, 1, 2, 40, PIECE_ROWS + 1]) for _ in range(2)]
                beats, settled = heartbeats(rng, start, sizes[0]), runs(rng, start, sizes[1])
                await insert(tx, row, beats, settled)
            await pack_results(tx, keys, TimeSpan(start, Instant(start + DAY)))
    async with world.pool.transaction("compare", read_only=True) as tx:
        assert await differences(tx) == [0, 0]
        assert await tx.value("select sum(results) from packed_heartbeats") > 0
        most = await tx.value("select max(results) from packed_heartbeats")
        assert most <= PIECE_ROWS
    async with world.pool.transaction("merge") as tx:
        rows_of = "select count(*), sum(results) from {}"
        for table in PACKED:
            pieces, count = await tx.row(rows_of.format(table)) or (0, 0)
            for week in (START, Instant(START + WEEK_US)):
                await merge_pieces(tx, table, keys, week_of(week))
            merged, same = await tx.row(rows_of.format(table)) or (0, 0)
            assert (same, merged < pieces) == (count, True)
        assert await differences(tx) == [0, 0]


async def test_a_range_is_restored_from_its_pieces_alone(world: World) -> None:
    """Rows of other ranges and monitors are neither packed nor restored."""
    row, other = await world.monitor(), await world.monitor()
    rng = random.Random(5)
    beats, settled = heartbeats(rng, START, 900), runs(rng, START, 900)
    from_at, until_at = Instant(START + 6 * HOUR), Instant(START + 12 * HOUR)
    async with world.pool.transaction("pack") as tx:
        await insert(tx, row, beats, settled)
        await insert(tx, other, beats, settled)
        await pack_results(tx, [row.key], TimeSpan(from_at, until_at))
        packed = await tx.rows(
            "select monitor, (extract(epoch from ts) * 1000000)::bigint from restored_heartbeats"
            " where org = %(org)s and piece_from < at(%(until_at)s)"
            " and piece_until >= at(%(from_at)s) order by ts",
            org=row.org,
            from_at=from_at,
            until_at=until_at,
        )
    expected = [(row.id, b["ts"]) for b in beats if from_at <= b["ts"] < until_at]
    assert packed == expected
    assert 0 < len(expected) < len(beats)


@pytest.mark.parametrize(
    "change",
    [
        "update packed_heartbeats set first_byte_base = first_byte_base + 1",
        "update packed_heartbeats set state_up[1] = not state_up[1]",
        "update packed_heartbeats set results = results - 1",
        "update packed_runs set origin = origin + interval '1 microsecond'",
        "update packed_runs set state_verdict[1] = 'missed'",
    ],
)
async def test_a_damaged_piece_is_found(world: World, change: str) -> None:
    row = await world.monitor()
    span = TimeSpan(START, Instant(START + DAY))
    beats: Rows = [
        {"ts": START + n * SECOND, "latency_ms": n, "first_byte_us": 1_000 * n, "up": True}
        for n in range(50)
    ]
    settled: Rows = [
        {"due_at": START + n * SECOND, "settled_at": START + 2 * n * SECOND, "verdict": "covered"}
        for n in range(50)
    ]
    async with world.pool.transaction("pack") as tx:
        await insert(tx, row, beats, settled)
        await pack_results(tx, [row.key], span)
        await verify_pieces(tx, [row.key], span)
        assert await tx.execute(change) == 1
        with pytest.raises(DamagedPiece, match="1 pieces"):
            await verify_pieces(tx, [row.key], span)


async def test_a_damaged_piece_is_not_merged(world: World) -> None:
    row = await world.monitor()
    week = week_of(START)
    async with world.pool.transaction("pack") as tx:
        for day in range(2):
            start = Instant(START + day * DAY)
            beats: Rows = [{"ts": start, "latency_ms": 1, "up": True}]
            await insert(tx, row, beats, [])
            await pack_results(tx, [row.key], TimeSpan(start, Instant(start + DAY)))
        await tx.execute("update packed_heartbeats set latency_base = 2 where results = 1")
    with pytest.raises(DamagedPiece):
        async with world.pool.transaction("merge") as tx:
            await merge_pieces(tx, "packed_heartbeats", [row.key], week)


async def test_a_range_is_packed_once(world: World) -> None:
    row = await world.monitor()
    beats: Rows = [{"ts": START, "latency_ms": 1, "up": True}]
    async with world.pool.transaction("pack") as tx:
        await insert(tx, row, beats, [])
        await pack_results(tx, [row.key], TimeSpan(START, Instant(START + DAY)))
    with pytest.raises(Rejected):
        async with world.pool.transaction("pack") as tx:
            await pack_results(tx, [row.key], TimeSpan(START, Instant(START + DAY)))
    async with world.pool.transaction("compare", read_only=True) as tx:
        assert await differences(tx) == [0, 0]


async def test_every_character_of_a_mid_array_survives_text(world: World) -> None:
    """Backups copy the arrays as text."""
    async with world.pool.transaction("copy", read_only=True) as tx:
        assert await tx.value(
            'select a = a::text::"char"[] and cardinality(a) = 128'
            ' from (select array_agg(n::"char" order by n) as a from generate_series(0, 127) n) q'
        )


@pytest.mark.parametrize("seed", range(3))
async def test_late_results_change_packed_rows_as_unpacked_ones(world: World, seed: int) -> None:
    """One monitor is packed between batches of late results; its twin is never packed."""
    rng = random.Random(seed)
    row, twin = await world.monitor(), await world.monitor()
    span = TimeSpan(START, Instant(START + DAY))
    beats, settled = heartbeats(rng, START, 600), runs(rng, START, 600)
    rng.shuffle(beats)
    rng.shuffle(settled)
    async with world.pool.transaction("early") as tx:
        for each in (row, twin):
            await insert(tx, each, beats[:300], settled[:400])
        await pack_results(tx, [row.key], span)
        await tx.execute("delete from heartbeats where monitor = %(m)s", m=row.id)
        await tx.execute("delete from expected_runs where monitor = %(m)s", m=row.id)
    for first in range(200, 600, 100):
        # Every batch repeats rows of the earlier ones with other values.
        late = [{**b, "latency_ms": first} for b in beats[first : first + 150]]
        verdict = rng.choice(["covered", "covered_late", "withheld"])
        dues = [r["due_at"] for r in settled[first : first + 150]]
        world.now = Instant(START + 3 * DAY + first)
        async with world.pool.transaction("late") as tx:
            written = await settle_windows(
                tx, [(twin.org, twin.id, Instant(due), verdict, None) for due in dues]
            )
            await tx.execute(
                _INSERT_HEARTBEATS.rstrip() + " on conflict do nothing",
                items=json.dumps(late),
                org=twin.org,
                monitor=twin.id,
            )
            _, changed = await store_late_results(
                tx,
                row.key,
                span,
                msgspec.convert(late, list[StoredHeartbeat]),
                [SettledWindow(Instant(due), tx.now, verdict, None) for due in dues],
            )
            assert changed == {due for _, _, due in written}
            assert await differences(tx, but="org, monitor,") == [0, 0]
    async with world.pool.transaction("count", read_only=True) as tx:
        assert await tx.value("select sum(results) from packed_heartbeats") == len(beats)


async def test_a_cancelled_change_leaves_the_pieces(world: World) -> None:
    row = await world.monitor()
    rng = random.Random(3)
    span = TimeSpan(START, Instant(START + DAY))
    async with world.pool.transaction("pack") as tx:
        await insert(tx, row, heartbeats(rng, START, 300), runs(rng, START, 300))
        await pack_results(tx, [row.key], span)
    late = SettledWindow(Instant(START + 1), Instant(START + 2), "covered_late", None)
    with trio.CancelScope() as scope:
        async with world.pool.transaction("late") as tx:
            assert await store_late_results(tx, row.key, span, [], [late]) == (set(), {START + 1})
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    async with world.pool.transaction("compare", read_only=True) as tx:
        assert await differences(tx) == [0, 0]


async def test_a_damaged_piece_is_not_packed_again(world: World) -> None:
    row = await world.monitor()
    span = TimeSpan(START, Instant(START + DAY))
    beats: Rows = [{"ts": START, "latency_ms": 1, "up": True}]
    async with world.pool.transaction("pack") as tx:
        await insert(tx, row, beats, [])
        await pack_results(tx, [row.key], span)
        await tx.execute("update packed_heartbeats set latency_base = 2")
    with pytest.raises(DamagedPiece):
        async with world.pool.transaction("late") as tx:
            await store_late_results(tx, row.key, span, [], [])


async def test_the_pieces_of_a_deleted_monitor_without_an_archive_are_deleted(world: World) -> None:
    row, other = await world.monitor(), await world.monitor()
    span = TimeSpan(START, Instant(START + DAY))
    rng = random.Random(7)
    beats, settled = heartbeats(rng, START, 40), runs(rng, START, 40)
    async with world.pool.transaction("pack") as tx:
        for each in (row, other):
            await insert(tx, each, beats, settled)
        await pack_results(tx, [row.key, other.key], span)
    async with world.pool.transaction("delete") as tx:
        await delete_monitor(tx, world.editor, row.uid)
    async with world.pool.transaction("count", read_only=True) as tx:
        for packed in ("packed_heartbeats", "packed_runs"):
            assert await tx.rows(f"select monitor from {packed}") == [(other.id,)]


_EARLIER_PACK = _pack("packed_runs", "expected_runs", "due_at", _RUN_NUMBERS, _RUN_STATE)


async def test_a_process_of_an_earlier_version_packs_no_verdicts(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its statement reads `expected_runs` alone, and its transaction has no mark."""
    row = await world.monitor()
    day = TimeSpan(START, Instant(START + DAY))
    async with world.pool.transaction("store") as tx:
        await tx.execute(
            "insert into heartbeats (org, monitor, ts, latency_ms, up, after_due_us,"
            " settled_after_us) select %(org)s, %(m)s, at(%(s)s) + n * interval '1 minute', 1,"
            " true, 0, 0 from generate_series(1, 9) n",
            org=row.org,
            m=row.id,
            s=START,
        )
    with monkeypatch.context() as earlier:
        earlier.setattr(packed_results, "_PACK_RUNS", _EARLIER_PACK)
        earlier.setattr(packed_results, "_BEFORE_PACKING", "set local work_mem = '32MB'")
        with pytest.raises(Rejected, match="of an earlier version"):
            async with world.pool.transaction("earlier") as tx:
                await pack_results(tx, [row.key], day)
    for table in PACKED:
        assert await world.rows(f"select from {table}") == []
    async with world.pool.transaction("pack") as tx:
        await pack_results(tx, [row.key], day)
    assert await world.rows("select results from packed_runs") == [(9,)]
