"""What cannot be stored of one monitor keeps nothing from any other."""

from collections.abc import Sequence
from typing import Any

import pytest

from leadline.daemon.loops import listener as listener_module
from leadline.daemon.loops import repairer as repairer_module
from leadline.daemon.loops.listener import Listener
from leadline.daemon.loops.repairer import Repairer
from leadline.storage.bus import Bus
from leadline.storage.pools import Rejected, Tx
from leadline.storage.rules.instant import HOUR, MINUTE, Instant
from leadline.storage.rules.refusal import Unavailable
from leadline.storage.tables import results
from leadline.storage.tables.results import Restatement
from leadline.storage.transactions.results.judge_silence import judge_silence
from leadline.storage.transactions.results.record_results import record_results
from leadline.storage.transactions.sealing.roll_up import restate
from tests.world import START, World


async def test_silence_that_cannot_be_stored_hides_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [await world.monitor(type="push", interval_seconds=60) for _ in range(5)]
    async with world.pool.transaction("beats") as tx:
        await record_results(tx, [world.result(row, START, True) for row in rows])

    async def refusing(tx: Tx, keys: Sequence[tuple[int, int]], shards: list[int]) -> Any:
        if (rows[2].org, rows[2].id) in keys:
            raise Rejected("no partition of relation", "23514")
        return await judge_silence(tx, keys, shards)

    monkeypatch.setattr(listener_module, "judge_silence", refusing)
    world.now = Instant(START + 3 * MINUTE)
    await world.listen(START, world.now)
    await Listener(world.pool, Bus(), lambda: world.now, lambda: None).pass_once()
    assert [(await world.state(row))[0] for row in rows] == ["down", "down", "up", "down", "down"]


@pytest.mark.parametrize("error", [Rejected("too large", "22003"), Unavailable("57014")])
async def test_figures_that_cannot_be_made_again_delay_no_others(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    rows = [await world.monitor() for _ in range(2)]
    async with world.pool.transaction("ask") as tx:
        until = Instant(START + HOUR)
        await results.insert_restatements(
            tx, [Restatement(row.org, row.shard, row.id, START, until) for row in rows]
        )

    async def refusing(tx: Tx, item: Any, *given: Any) -> None:
        if item.monitor == rows[0].id:
            raise error
        await restate(tx, item, *given)

    monkeypatch.setattr(repairer_module, "restate", refusing)
    repairer = Repairer(world.pool)
    for _ in range(2):
        try:
            await repairer.pass_once()
        except Unavailable:
            continue
    left = await world.rows("select monitor, attempts from restatements")
    assert left == [(rows[0].id, 1)]
