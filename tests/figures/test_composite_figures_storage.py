"""The figures of composites against a day that is painted half second by half second."""

import pytest

from leadline.daemon.loops.monitor_sealer import MonitorSealer
from leadline.daemon.loops.schedule_ticker import Ticker
from leadline.storage.core.instant import HOUR, MINUTE, SECOND, Instant
from leadline.storage.core.key import MonitorKey
from leadline.storage.core.sli import Split
from leadline.storage.figures.queries import availability
from leadline.storage.figures.queries.availability import (
    select_days,
    select_watermarks,
    select_windows,
)
from leadline.storage.figures.queries.project_availability import (
    ProjectTime,
    select_project_windows,
)
from leadline.storage.monitors.tables import compositions
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.results.rules.incoming_result import StoreOutcome
from leadline.storage.results.transactions.record_results import record_results
from leadline.storage.retirement.transactions.delete_monitor import delete_monitor
from leadline.storage.scheduling.queries import shards
from tests.support.run.effort import IS_SOAK, varied
from tests.support.worlds.random_histories import TICK, Life, Painter
from tests.support.worlds.world import REGIONS, START, World

HOURS = 3 if IS_SOAK else 1


@pytest.mark.parametrize("seed", varied([0], range(60)))
async def test_every_figure_equals_the_computation_from_the_whole_history(
    world: World, seed: int
) -> None:
    life = Life(world, seed)
    await life.begin()
    await life.live(START + HOURS * HOUR + 40 * MINUTE)
    await life.end()
    painter = Painter(life.known, world.now)
    rows = await world.rows(
        "select m.uid, h.hour, h.good_us, h.bad_us, h.unknown_us, h.excluded_us"
        " from monitor_hours h join monitors m on m.id = h.monitor order by h.hour, m.id"
    )
    hours = {(uid, hour): tuple(parts) for uid, hour, *parts in rows}
    for uid in (*life.composites, *(u for u in life.leaves if u not in life.gone)):
        for hour in range(START, START + HOURS * HOUR, HOUR):
            painted = painter.split(uid, hour, hour + HOUR)
            assert hours[uid, hour] == painted, (life.known[uid].row.name, (hour - START) // HOUR)
    async with world.pool.transaction("days", read_only=True) as tx:
        keys = {MonitorKey((world.org, life.known[c].row.id)): "composite" for c in life.composites}
        found = await select_days(tx, keys, tx.now, 1)
    for uid in life.composites:
        days = found[MonitorKey((world.org, life.known[uid].row.id))]
        assert days.watermark is not None
        assert world.now - 3 * MINUTE < days.watermark <= world.now - 2 * MINUTE
        split = days.days[0][1].split
        told = (split.good_us, split.bad_us, split.unknown_us, split.excluded_us)
        assert told == painter.split(uid, START, days.watermark)
    await expect_windows(life, painter)
    await expect_project(life, painter)


WINDOWS = [53 * MINUTE, HOUR, HOUR + 17 * MINUTE + 30 * SECOND]


async def expect_windows(life: Life, painter: Painter) -> None:
    """A window begins exactly its length before the watermark, or with the hour without results."""
    here = [*life.composites, *(u for u in life.leaves if u not in life.gone)]
    rows = {uid: life.known[uid].row for uid in here}
    types = {MonitorKey((row.org, row.id)): row.type for row in rows.values()}
    for raw_days, step in ((30, TICK), (0, HOUR)):
        async with life.world.pool.transaction("windows", read_only=True) as tx:
            marks = await select_watermarks(tx, types)
            found = await select_windows(tx, types, WINDOWS, raw_days)
        for uid, row in rows.items():
            mark = marks[row.key]
            assert mark is not None
            for length, window in zip(WINDOWS, found[row.key], strict=True):
                from_ = mark - length
                assert window.from_ == from_ - from_ % step
                # The painter knows half seconds; a watermark can be between them.
                if mark % TICK:
                    continue
                painted = painter.split(uid, window.from_, mark)
                assert parts(window.measured.split) == painted, row.name


async def test_a_project_of_many_monitors_ends_where_hours_are_rolled_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sealed time after that is not measured on a read. A region without its monitors, which
    is rolled up less far, does not delay it.
    """
    life = Life(world, 0)
    await life.begin()
    await life.live(START + HOUR + 10 * MINUTE)
    await life.end()
    monkeypatch.setattr(availability, "EDGE_MONITORS_MOST", 0)

    async def read() -> ProjectTime:
        async with world.pool.transaction("project", read_only=True) as tx:
            return await select_project_windows(tx, world.org, world.project, [HOUR])

    found = await read()
    assert found.until is not None
    assert found.until % HOUR == 0
    async with world.pool.transaction("region") as tx:
        stored = await tx.row(
            "select sum(h.good_us)::bigint from monitor_hours h join monitors m on m.id = h.monitor"
            " where m.type <> 'composite'"
        )
        await tx.execute(
            "insert into shards (region, reserved_through, sealed_through, settled_through,"
            " rolled_up_through) select 'moon', at(%(at)s), at(%(at)s), at(%(at)s), at(%(at)s)",
            at=START - HOUR,
        )
    assert stored == (found.windows[0].measured.split.good_us,)
    assert await read() == found


async def expect_project(life: Life, painter: Painter) -> None:
    """The sum of its monitors, each up to its own watermark, also before the first whole hour."""
    leaves = {uid: life.known[uid].row for uid in life.leaves if uid not in life.gone}
    types = {row.key: row.type for row in leaves.values()}
    async with life.world.pool.transaction("project", read_only=True) as tx:
        marks = await select_watermarks(tx, types)
        found = await select_project_windows(tx, life.world.org, life.world.project, WINDOWS)
    if any(mark is None or mark % TICK for mark in marks.values()):
        return
    until = max(mark for mark in marks.values() if mark is not None)
    assert found.until == until
    for length, window in zip(WINDOWS, found.windows, strict=True):
        from_ = until - length
        from_ -= from_ % HOUR
        assert window.from_ == from_
        painted = [painter.split(u, from_, marks[row.key] or 0) for u, row in leaves.items()]
        assert parts(window.measured.split) == tuple(map(sum, zip(*painted, strict=True)))


def parts(split: Split) -> tuple[int, int, int, int]:
    return split.good_us, split.bad_us, split.unknown_us, split.excluded_us


async def test_hours_of_a_composite_wait_until_every_region_is_sealed(
    world: World,
) -> None:
    """A late result of a child counts when the region of the child is sealed."""
    far = await world.monitor(region="eu", interval_seconds=60)
    row = await world.monitor(
        type="composite",
        target="",
        config={"children": [str(far.uid)]},
        name="all of eu",
        interval_seconds=60,
    )
    sealer = MonitorSealer(world.pool, lambda: world.now)
    ticker = Ticker(world.pool, lambda: world.now)
    while world.now < START + HOUR + 10 * MINUTE:
        world.now = Instant(world.now + MINUTE)
        await ticker.pass_once()
        async with world.pool.transaction("shards", read_only=True) as tx:
            (core,) = [s for s in await shards.select_shards(tx) if s.region == "core"]
        await sealer.seal(core)
        await sealer.roll_up(core.id)
    mine = "select hour, good_us, total from monitor_hours where monitor = %(m)s"
    assert await world.rows(mine, m=row.id) == []
    async with world.pool.transaction("record") as tx:
        arrival = world.result(far, Instant(START + 50 * MINUTE), True)
        (answer,), _ = await record_results(tx, [arrival])
    assert answer.fate is StoreOutcome.LIVE
    await sealer.pass_once()
    await sealer.pass_once()
    assert await world.rows(mine, m=row.id) == [(START, 3 * MINUTE, 0)]
    assert await world.rows("select 1 from repairs") == []


async def test_composite_terms_are_deleted_only_when_they_are_not_needed(world: World) -> None:
    leaves = [await world.monitor() for _ in range(2)]
    configs = [{"children": [str(leaf.uid)]} for leaf in leaves]
    row = await world.monitor(type="composite", target="", config=configs[0])
    world.now = Instant(START + HOUR)
    async with world.pool.transaction("edit") as tx:
        given = {"config": configs[1]}
        await edit_monitor(tx, world.editor, row.uid, given, world.keyring, REGIONS)
    world.now = Instant(START + 2 * HOUR)
    async with world.pool.transaction("delete") as tx:
        await delete_monitor(tx, world.editor, leaves[0].uid)
    kept = (
        "select (select count(*) from composite_terms),"
        " (select count(*) from deleted_monitor_terms)"
    )
    for before, left in (
        (START + HOUR, (2, 1)),
        (START + HOUR + 1, (1, 1)),
        (world.now + 1, (1, 0)),
    ):
        async with world.pool.transaction("forget") as tx:
            await compositions.forget(tx, Instant(before), 10)
        assert await world.rows(kept) == [left]
