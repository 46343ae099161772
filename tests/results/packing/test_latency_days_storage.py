"""Latencies of packed days are counted, and answers of long ranges come from the counts."""

import json
import random
from typing import Any

import pytest

from leadline.storage.core.instant import DAY, HOUR, SECOND, Instant
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.engine.migrate import FOLDER
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.results.queries import console_results, latency
from leadline.storage.results.queries.console_results import (
    LatencyBin,
    select_latency_bins,
    select_latency_plot,
)
from leadline.storage.results.queries.latency import LatencyFigures, LatencyRow, spans_between
from leadline.storage.results.rules.incoming_result import StoreOutcome
from leadline.storage.results.rules.latency_sketch import (
    BUCKET_SQL,
    RELATIVE_ERROR,
    SHIFT_SQL,
    bucket_of,
)
from leadline.storage.results.rules.packed_days import week_of
from leadline.storage.results.tables import latency_days
from leadline.storage.results.tables.latency_days import COUNTED_LEAST, delete_old_days
from leadline.storage.results.transactions import merge_week
from leadline.storage.retirement.transactions.delete_monitor import delete_monitor
from tests.results.packing.test_packing_storage import merge, merge_all, pack_all, record, seal
from tests.support.worlds.world import START, World

_FILL = """
insert into heartbeats (org, monitor, ts, latency_ms, up)
select %(org)s, %(monitor)s, at(ts), latency_ms, up
from json_to_recordset(%(items)s::json) as i(ts bigint, latency_ms int, up boolean)
"""


async def test_the_database_has_the_same_buckets(world: World) -> None:
    edges = {(1 << bits) + n for bits in range(31) for n in (-1, 0, 1)}
    rng = random.Random(1)
    values = sorted({*edges, *(rng.randrange(2**31) for _ in range(500)), *range(-2, 300)})
    found = await world.rows(
        f"select {BUCKET_SQL} from unnest(%(values)s::int[]) with ordinality as v(latency_ms, n)"
        f" cross join lateral (select {SHIFT_SQL} as shift) s order by n",
        values=values,
    )
    assert [bucket for (bucket,) in found] == [bucket_of(value) for value in values]


def test_spans_between_days() -> None:
    span = TimeSpan(Instant(HOUR), Instant(5 * DAY))
    assert spans_between(span, []) == [span]
    assert spans_between(span, [Instant(DAY), Instant(2 * DAY), Instant(4 * DAY)]) == [
        TimeSpan(Instant(HOUR), Instant(DAY)),
        TimeSpan(Instant(3 * DAY), Instant(4 * DAY)),
    ]


async def read(world: World, key: Any, span: TimeSpan) -> LatencyFigures:
    async with world.pool.transaction("latency", read_only=True) as tx:
        found = await latency.select_latency(tx, key, span, DAY)
    assert found is not None
    return found


def close(found: LatencyRow | None, exact: LatencyRow | None) -> bool:
    if found is None or exact is None:
        return found is exact
    pairs = [
        (found.p50_ms, exact.p50_ms),
        (found.p95_ms, exact.p95_ms),
        (found.p99_ms, exact.p99_ms),
    ]
    return (found.start, found.count) == (exact.start, exact.count) and all(
        abs(one - other) <= RELATIVE_ERROR * other for one, other in pairs
    )


async def compare_bins(world: World, key: Any, begin: Instant) -> None:
    """Steps of a day, which are counted, equal those that are not aligned to days and decoded."""
    end = Instant(begin + 14 * DAY)
    async with world.pool.transaction("bins", read_only=True) as tx:
        found = await select_latency_plot(tx, key, begin, end, DAY)
        exact: list[LatencyBin] = []
        for day in range(begin, end, DAY):
            exact += await select_latency_bins(tx, key, Instant(day), Instant(day + DAY), 2 * DAY)
    # A step of two days begins at the day that it is asked from.
    assert found == exact
    assert sum(one.bad for one in exact) > 0


@pytest.mark.parametrize("seed", range(2))
async def test_long_ranges_have_the_stated_error(
    world: World, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    row = await world.monitor()
    await seal(world, START)
    items = []
    for day in range(12):
        # A day without a result, one without a good result, and one with too few to be counted.
        count = {3: 0, 8: COUNTED_LEAST - 1}.get(day, rng.randrange(COUNTED_LEAST, 90))
        for at in rng.sample(range(DAY), count):
            value = int(rng.lognormvariate(6, 2))
            items.append(
                {
                    "ts": START + day * DAY + at,
                    "latency_ms": value,
                    "up": day != 5 and rng.random() < 0.8,
                }
            )
    async with world.pool.transaction("fill") as tx:
        await tx.execute(_FILL, org=row.org, monitor=row.id, items=json.dumps(items))
    await seal(world, Instant(START + 12 * DAY))
    await pack_all(world)
    # Those of an earlier version are counted by the merger, or decoded.
    async with world.pool.transaction("forget") as tx:
        await tx.execute("delete from latency_days where extract(day from day)::int %% 2 = 0")
        await tx.execute("update latency_days set bad = null where good %% 2 = 0")
    spans = [
        TimeSpan(START, Instant(START + 12 * DAY)),
        TimeSpan(Instant(START + 7 * HOUR), Instant(START + 11 * DAY + HOUR)),
        TimeSpan(Instant(START + DAY + HOUR), Instant(START + DAY + 2 * HOUR)),
        TimeSpan(Instant(START + 3 * DAY), Instant(START + 4 * DAY)),
    ]

    async def compare() -> None:
        await compare_bins(world, row.key, Instant(START - START % DAY))
        for span in spans:
            exact = await read(world, row.key, span)
            assert exact.relative_error == 0
            with monkeypatch.context() as patched:
                patched.setattr(latency, "EXACT_MOST", -1)
                counted = await read(world, row.key, span)
            assert counted.relative_error == RELATIVE_ERROR
            assert counted.points == exact.points
            assert close(counted.total, exact.total)

    await compare()
    # A step counts one day, so that the cursor waits for the rest of the monitor.
    monkeypatch.setattr(merge_week, "COUNTED_MOST", 1)
    await merge_all(world)
    days = await world.rows("select day from latency_days order by day")
    counted = {(day - START) // DAY for (day,) in days}
    assert {0, 1, 2, 4, 5, 6} <= counted
    assert not {3, 8} & counted
    await compare()
    late = Instant(START + 4 * DAY + HOUR)
    assert await record(world, row, late, latency_ms=77_000) == [StoreOutcome.HISTORY]
    await compare()
    assert (await read(world, row.key, TimeSpan(late, Instant(late + 2 * SECOND)))).points
    async with world.pool.transaction("delete") as tx:
        assert [await delete_old_days(tx, Instant(START + 2 * DAY), 1) for _ in range(3)] == [
            1,
            1,
            0,
        ]
        await delete_monitor(tx, world.editor, row.uid)
    assert await world.rows("select 1 from latency_days") == []


_OF_DAYS = "select bad from latency_days order by day"
# As an earlier version, which knows no `bad`, counts a day again after a late failed result.
_BY_EARLIER = """
update latency_days set good = good, p50_ms = p50_ms, p95_ms = p95_ms, p99_ms = p99_ms,
  buckets = buckets, counts = counts
where (org, monitor) = (select unnest(%(orgs)s::int[]), unnest(%(monitors)s::int[]))
  and day = at(%(from_at)s) and at(%(until)s) > day
"""


async def fill_week(world: World, row: MonitorRow, begin: Instant) -> None:
    """Packs 7 days of 60 results, 7 of which failed."""
    await seal(world, begin)
    items = [
        {"ts": begin + day * DAY + n * 600 * SECOND, "latency_ms": n, "up": n % 9 != 5}
        for day in range(7)
        for n in range(60)
    ]
    async with world.pool.transaction("fill") as tx:
        await tx.execute(_FILL, org=row.org, monitor=row.id, items=json.dumps(items))
    await seal(world, Instant(begin + 9 * DAY))
    await pack_all(world)


async def test_a_plot_that_decodes_too_many_results_is_withheld(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = await world.monitor()
    begin = Instant(START - START % DAY)
    await fill_week(world, row, begin)
    span = (begin, Instant(begin + 7 * DAY))
    key = row.key

    async def is_withheld(most: int, step_us: int) -> bool:
        monkeypatch.setattr(console_results, "DECODED_MOST", most)
        async with world.pool.transaction("plot", read_only=True) as tx:
            found = await select_latency_plot(tx, key, *span, step_us)
        return found is None

    async def change(statement: str) -> None:
        async with world.pool.transaction("change") as tx:
            await tx.execute(statement)

    assert not await is_withheld(0, DAY), "the days are counted"
    assert await is_withheld(419, HOUR)
    assert not await is_withheld(420, HOUR)
    # Days of an earlier version: only pieces with a failure are decoded, each for its own day.
    await change("update latency_days set bad = null")
    assert await is_withheld(419, DAY)
    assert not await is_withheld(420, DAY)
    await compare_bins(world, key, begin)
    await change(
        "update packed_heartbeats set state_up = array[true]"
        " where extract(day from from_at)::int %% 2 = 0"
    )
    [(failed,)] = await world.rows(
        "select sum(results) from packed_heartbeats where state_up && array[false]"
    )
    assert 60 < failed < 420
    assert not await is_withheld(failed, DAY)
    assert await is_withheld(failed - 1, DAY)
    # Days that are not counted are decoded as a whole.
    await change("delete from latency_days")
    assert await is_withheld(419, DAY)
    assert not await is_withheld(420, DAY)


async def test_an_earlier_version_makes_the_failures_of_a_day_unknown(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = await world.monitor()
    begin = Instant(START - START % DAY)
    await fill_week(world, row, begin)
    counted = [(7,)] * 7
    assert await world.rows(_OF_DAYS) == counted
    with monkeypatch.context() as patched:
        patched.setattr(latency_days, "_DELETE_DAY", "select %(orgs)s, %(monitors)s, %(from_at)s")
        patched.setattr(latency_days, "_PUT_PACKED", _BY_EARLIER)
        late = Instant(begin + DAY + 15 * HOUR)
        assert await record(world, row, late, up=False) == [StoreOutcome.HISTORY]
    assert await world.rows(_OF_DAYS) == [(7,), (None,), *counted[2:]]
    await compare_bins(world, row.key, begin)
    await merge_all(world)
    assert await world.rows(_OF_DAYS) == [(7,), (8,), *counted[2:]]
    await compare_bins(world, row.key, begin)


async def test_failures_in_weeks_that_an_earlier_version_merged_are_counted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = await world.monitor()
    begin = week_of(START).from_
    await fill_week(world, row, begin)
    await merge_all(world)
    pieces = "select * from packed_heartbeats order by monitor, from_at"
    merged = await world.rows(pieces)
    assert [piece[4] for piece in merged] == [420], "one piece of the week"
    days = await world.rows("select * from latency_days order by day")
    migration = (FOLDER / "0065_uncounted_failures.sql").read_text()

    async def change(statement: str) -> None:
        async with world.pool.transaction("change") as tx:
            await tx.execute(statement)

    through = "select merged_through from packing"
    before = await world.rows(through)
    await change(migration)
    assert await world.rows(through) == before, "all failures are counted"
    await change("update latency_days set bad = null")
    assert await merge_all(world) == 0, "the week is passed"
    await change(migration)
    # A step counts one day. One that is interrupted leaves the next ones.
    monkeypatch.setattr(merge_week, "COUNTED_MOST", 1)
    for count in range(1, 8):
        await merge(world)
        found = await world.rows("select count(bad) from latency_days")
        assert found == [(count,)]
        await compare_bins(world, row.key, begin)
    await merge_all(world)
    assert await world.rows(through) == before
    assert await world.rows("select * from latency_days order by day") == days
    assert await world.rows(pieces) == merged
