"""A monitor or service whose data cannot be stored does not delay the others."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from leadline.daemon.loops import figure_repairer as repairer_module
from leadline.daemon.loops import push_deadline_checker as listener_module
from leadline.daemon.loops import service_sealer as service_sealer_module
from leadline.daemon.loops.figure_repairer import Repairer
from leadline.daemon.loops.push_deadline_checker import PushDeadlineChecker
from leadline.daemon.loops.service_sealer import ServiceSealer
from leadline.storage.core.instant import HOUR, MINUTE, Instant
from leadline.storage.core.key import MonitorKey, ServiceKey
from leadline.storage.core.refusal import Unavailable
from leadline.storage.engine.pools import Rejected, Tx
from leadline.storage.results.event_bus import Bus
from leadline.storage.results.rows import RepairRequest
from leadline.storage.results.tables import repair_requests
from leadline.storage.results.transactions.record_missed_pushes import record_missed_pushes
from leadline.storage.results.transactions.record_results import record_results
from leadline.storage.services.transactions.create_service import ServiceDraft, create_service
from leadline.storage.services.transactions.declare_service import DeclarationDraft, declare
from leadline.storage.services.transactions.repair_figures import restate
from leadline.storage.services.transactions.seal_services import reconstruct, seal_services
from tests.support.worlds.world import START, World


async def test_silence_that_cannot_be_stored_hides_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [await world.monitor(type="push", interval_seconds=60) for _ in range(5)]
    async with world.pool.transaction("beats") as tx:
        await record_results(tx, [world.result(row, START, True) for row in rows])

    async def refusing(tx: Tx, keys: Sequence[MonitorKey], shards: list[int]) -> Any:
        if (rows[2].org, rows[2].id) in keys:
            raise Rejected("no partition of relation", "23514")
        return await record_missed_pushes(tx, keys, shards)

    monkeypatch.setattr(listener_module, "record_missed_pushes", refusing)
    world.now = Instant(START + 3 * MINUTE)
    await world.listen(START, world.now)
    await PushDeadlineChecker(world.pool, Bus(), lambda: world.now, lambda: None).pass_once()
    assert [(await world.state(row))[0] for row in rows] == ["down", "down", "up", "down", "down"]


@pytest.mark.parametrize("error", [Rejected("too large", "22003"), Unavailable("57014")])
async def test_figures_that_cannot_be_made_again_delay_no_others(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    rows = [await world.monitor() for _ in range(2)]
    async with world.pool.transaction("ask") as tx:
        until = Instant(START + HOUR)
        await repair_requests.insert_repairs(
            tx, [RepairRequest(row.org, row.shard, row.id, START, until) for row in rows]
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
    left = await world.rows("select monitor, attempts from repairs")
    assert left == [(rows[0].id, 1)]


@pytest.mark.parametrize("error", [Rejected("too large", "22003"), Unavailable("57014")])
async def test_a_service_that_cannot_be_sealed_delays_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    keys = [await _declared(world, f"s{n}") for n in range(5)]

    async def refusing(tx: Tx, part: Sequence[ServiceKey]) -> Any:
        if keys[2] in part:
            raise error
        return await seal_services(tx, part)

    monkeypatch.setattr(service_sealer_module, "seal_services", refusing)
    sealer = ServiceSealer(world.pool)
    await _pass_on(world)
    await _pass(sealer, 2)
    told = "select sealed_through > materialization_start from services order by id"
    assert [moved for (moved,) in await world.rows(told)] == [True, True, False, True, True]


@pytest.mark.parametrize("error", [Rejected("too large", "22003"), Unavailable("57014")])
async def test_a_history_that_cannot_be_reconstructed_delays_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    world.now = Instant(START + HOUR)
    keys = [await _declared(world, f"s{n}", Instant(START + n * MINUTE)) for n in range(3)]

    async def refusing(tx: Tx, key: ServiceKey) -> bool:
        # The history with the shortest span, which is reconstructed first.
        if key == keys[2]:
            raise error
        return await reconstruct(tx, key)

    monkeypatch.setattr(service_sealer_module, "reconstruct", refusing)
    sealer = ServiceSealer(world.pool)
    await _pass_on(world)
    await _pass(sealer, 3)
    told = "select backfill_from is null from services order by id"
    assert [whole for (whole,) in await world.rows(told)] == [True, True, False]


async def _pass(sealer: ServiceSealer, times: int) -> None:
    for _ in range(times):
        with suppress(Unavailable):
            await sealer.pass_once()


async def _pass_on(world: World) -> None:
    world.now = Instant(world.now + 10 * MINUTE)
    async with world.pool.transaction("sealed") as tx:
        await tx.execute("update shards set settled_through = at(%(at)s)", at=world.now)


async def _declared(world: World, slug: str, backfill_from: Instant | None = None) -> ServiceKey:
    monitor = await world.monitor()
    async with world.pool.transaction("declare") as tx:
        draft = ServiceDraft(name=slug, slug=slug)
        service = await create_service(tx, world.editor, world.project_uid, draft)
        declared = DeclarationDraft(
            expected_revision=0,
            monitors=[monitor.uid],
            sli=[monitor.uid],
            backfill_from=backfill_from,
        )
        await declare(tx, world.editor, world.project_uid, service.uid, declared, 30)
    return service.key
