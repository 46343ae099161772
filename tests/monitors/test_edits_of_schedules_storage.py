"""The latest edit of a schedule takes effect, after a move to another region and after quick
edits."""

import random
from typing import Any

import pytest

from leadline.daemon.loops.schedule_ticker import Ticker
from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.scheduling.queries import shards
from leadline.storage.scheduling.rules.run_schedule import ScheduleTerm, windows
from leadline.storage.scheduling.tables import shards as schedules
from tests.support.worlds.world import REGIONS, START, World


async def edit(world: World, row: MonitorRow, **given: Any) -> None:
    async with world.pool.transaction("edit") as tx:
        await edit_monitor(tx, world.editor, row.uid, given, world.keyring, REGIONS)


async def terms_of(world: World, row: MonitorRow) -> list[ScheduleTerm]:
    async with world.pool.transaction("terms", read_only=True) as tx:
        return (await schedules.select_terms_of(tx, [row.key]))[row.key]


async def test_a_pause_immediately_after_a_move_to_another_region_takes_effect(
    world: World,
) -> None:
    row = await world.monitor()
    world.now = Instant(START + MINUTE)
    await Ticker(world.pool, lambda: world.now).pass_once()
    await edit(world, row, region="eu")
    world.now = Instant(world.now + 200_000)
    await edit(world, row, enabled=False)
    newest = (await terms_of(world, row))[-1]
    assert not newest.enabled


async def test_an_edit_by_a_clock_that_is_behind_follows_the_one_before(world: World) -> None:
    row = await world.monitor()
    world.now = Instant(START + MINUTE)
    await edit(world, row, enabled=False)
    world.now = Instant(world.now - 3_000)
    await edit(world, row, enabled=True)
    assert (await terms_of(world, row))[-1].enabled


@pytest.mark.parametrize("seed", range(4))
async def test_moved_paused_and_edited_at_any_moment_each_window_is_reserved_once(
    world: World, seed: int
) -> None:
    chance = random.Random(seed)
    row = await world.monitor(interval_seconds=10, timeout_seconds=5)
    await world.monitor(region="eu", type="push")
    tickers = [Ticker(world.pool, lambda: world.now) for _ in range(2)]
    changes: list[dict[str, Any]]
    for _ in range(40):
        world.now = Instant(world.now + chance.randrange(5 * SECOND))
        async with world.pool.transaction("shards", read_only=True) as tx:
            shard = chance.choice(await shards.select_shards(tx))
        # One region at a time, so that the cursors of the shards differ.
        await chance.choice(tickers)._follow(shard.id)
        if chance.random() < 0.4:
            changes = [{"region": "core"}, {"region": "eu"}, {"enabled": True}, {"enabled": False}]
            changes += [{"interval_seconds": seconds} for seconds in (5, 10, 15)]
            await edit(world, row, **chance.choice(changes))
    world.now = Instant(world.now + MINUTE)
    await tickers[0].pass_once()
    terms = await terms_of(world, row)
    through = Instant(world.now + 1_500_000)
    expected = [(w.due, w.term.shard) for w in windows(terms, terms[0].from_, through)]
    found = await world.rows(
        "select due, shard from run_batches, unnest(monitors, due_ats) as w(monitor, due)"
        " where monitor = %(m)s",
        m=row.id,
    )
    withheld = {due for due, verdict, _ in await world.ledger(row) if verdict == "withheld"}
    assert sorted(found) == [item for item in expected if item[0] not in withheld]
    assert withheld == {w.due for w in windows(terms, START, through) if not w.term.enabled}
