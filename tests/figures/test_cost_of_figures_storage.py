"""The number of statements for the figures of many monitors does not depend on the number of
monitors."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from leadline.storage.core.instant import HOUR, SECOND, Instant
from leadline.storage.core.key import MonitorKey
from leadline.storage.engine.pools import Tx
from leadline.storage.figures.queries.availability import select_days, select_windows
from leadline.storage.maintenance.transactions.plan_maintenance import Plan, preview_announcement
from tests.results.test_composites_storage import Watch
from tests.support.worlds.world import START, World


@contextmanager
def counting() -> Iterator[list[str]]:
    """The statements that are sent to the database in the context."""
    asked: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        rows = Tx.rows

        async def counted(tx: Tx, query: str, **given: Any) -> list[tuple[Any, ...]]:
            asked.append(query)
            return await rows(tx, query, **given)

        patch.setattr(Tx, "rows", counted)
        yield asked


async def statements(world: World, types: dict[MonitorKey, str]) -> int:
    """The number of statements that read today and the last hour of these monitors."""
    with counting() as asked:
        async with world.pool.transaction("figures", read_only=True) as tx:
            await select_days(tx, types, tx.now, 1)
            await select_windows(tx, types, [HOUR], 30)
    return len(asked)


async def test_composites_that_were_made_one_after_the_other_are_not_measured_one_by_one(
    world: World,
) -> None:
    watch = Watch(world)
    member = await world.monitor(interval_seconds=60)
    old = await watch.composite([member])
    await watch.go(START + HOUR, HOUR // 4)
    await watch.sealer.pass_once()
    types = {MonitorKey((row.org, row.id)): row.type for row in (member, old)}
    few = await statements(world, types)
    for _ in range(12):
        world.now = Instant(world.now + SECOND)
        row = await watch.composite([member])
        types[row.key] = row.type
    await watch.sealer.pass_once()
    assert 0 < await statements(world, types) <= few


async def test_a_maintenance_of_a_project_is_previewed_without_asking_of_each_monitor(
    world: World,
) -> None:
    asked = []
    for _ in range(2):
        for _ in range(10):
            await world.monitor()
        plan = Plan(starts_at=Instant(world.now - HOUR), ends_at=world.now)
        with counting() as queries:
            async with world.pool.transaction("preview") as tx:
                await preview_announcement(tx, world.editor, world.project_uid, plan, 30)
        asked.append(len(queries))
    assert asked[0] == asked[1] > 0
