"""Deletion of a project in the background: several runners, interruptions, alerts."""

from uuid import UUID

import pytest
import trio

from leadline.daemon.loops.alert_processor import AlertProcessor
from leadline.daemon.loops.operation_runner import FAILURES_MOST, OperationRunner
from leadline.storage.accounts.rows import DeletionCounts, OperationRow
from leadline.storage.accounts.rules.access import CredentialKind, Membership, Principal, Role
from leadline.storage.core.instant import MINUTE, Instant
from leadline.storage.core.refusal import Unavailable
from leadline.storage.engine.pools import Rejected, Tx
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.notifications.tables.channels import attach_channel
from leadline.storage.notifications.transactions.edit_channels import create_channel
from leadline.storage.results.transactions.record_results import record_results
from leadline.storage.retirement.transactions import delete_tenant
from leadline.storage.retirement.transactions.delete_tenant import begin_project_deletion
from tests.support.worlds.background import operation_runner
from tests.support.worlds.world import World


async def begun(world: World, total: int) -> UUID:
    admin = Principal(CredentialKind.SESSION, (Membership(world.org, None, Role.ORG_ADMIN),))
    counts = DeletionCounts(1, total - 1, 0, 0, 0, 0)
    async with world.pool.transaction("begin") as tx:
        return await begin_project_deletion(tx, admin, world.project_uid, counts)


def runner(world: World) -> OperationRunner:
    return operation_runner(world.pool, world.keyring, lambda: Instant(world.now + MINUTE))


async def state(world: World) -> tuple[str, int]:
    (row,) = await world.rows("select state, done from operations")
    return row[0], row[1]


async def test_several_processes_delete_each_object_once(world: World) -> None:
    for number in range(12):
        await world.monitor(slug=f"m{number}", name=f"m{number}")
    await begun(world, 13)
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(runner(world).pass_once)
    assert await state(world) == ("succeeded", 13)
    assert await world.rows("select from monitors") == []
    logged = await world.rows("select unnest(monitors) from schedule_edits where project is null")
    assert len(logged) == 2 * len(set(logged)) == 24, "one creation and one deletion each"


async def test_a_failed_step_changes_no_row_and_is_repeated(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        await world.monitor(slug=f"m{number}", name=f"m{number}")
    await begun(world, 4)
    original = delete_tenant.delete_next
    steps = 0

    async def failing(tx: Tx, operation: OperationRow) -> bool:
        nonlocal steps
        worked = await original(tx, operation)
        steps += 1
        if steps == 2:
            raise Rejected("no", "23000", "")
        return worked

    monkeypatch.setattr(delete_tenant, "delete_next", failing)
    await runner(world).pass_once()
    assert await state(world) == ("running", 1)
    assert len(await world.rows("select from monitors")) == 2
    await runner(world).pass_once()
    assert await state(world) == ("succeeded", 4)


async def test_a_deletion_that_always_fails_ends_and_can_be_repeated(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        await world.monitor(slug=f"m{number}", name=f"m{number}")
    await begun(world, 4)
    original = delete_tenant.delete_next

    async def failing(tx: Tx, operation: OperationRow) -> bool:
        if operation.done == 1:
            raise Rejected("no", "23000", "")
        return await original(tx, operation)

    monkeypatch.setattr(delete_tenant, "delete_next", failing)
    instants = [world.now]
    running = operation_runner(world.pool, world.keyring, lambda: instants[-1])
    for number in range(FAILURES_MOST):
        assert await state(world) == ("running", min(number, 1))
        instants.append(Instant(instants[-1] + MINUTE))
        await running.pass_once()
    ((ended, error),) = await world.rows("select state, error from operations")
    assert (ended, error) == (
        "failed",
        "internal error; see the log of the server. The rest was not deleted",
    )
    # What is left is visible again, and a second deletion deletes it.
    assert await world.rows("select from projects where deleting_since is null") == [()]
    assert len(await world.rows("select from monitors")) == 2
    monkeypatch.setattr(delete_tenant, "delete_next", original)
    await begun(world, 3)
    await running.pass_once()
    assert await world.rows("select from projects") == []


async def test_a_database_that_is_away_does_not_count_as_a_failure_of_a_deletion(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.monitor()
    await begun(world, 2)
    error: Exception = Unavailable("away")

    async def failing(*_: object) -> bool:
        raise error

    monkeypatch.setattr(delete_tenant, "delete_next", failing)
    instants = [world.now]
    running = operation_runner(world.pool, world.keyring, lambda: instants[-1])
    for number in range(FAILURES_MOST + 1):
        if number == FAILURES_MOST:
            error = Rejected("no", "23000", "")
        instants.append(Instant(instants[-1] + MINUTE))
        await running.pass_once()
    assert await state(world) == ("running", 0)


async def test_no_notification_is_sent_about_an_object_that_is_being_deleted(world: World) -> None:
    """A monitor goes down after the deletion began."""
    row = await world.monitor()
    await on_channel(world, row)
    watcher = AlertProcessor(world.pool, lambda: world.now, lambda: None, lambda: None)
    await fails(world, row)
    async with world.pool.transaction("begin") as tx:
        await tx.execute("update projects set deleting_since = now()")
    await watcher.pass_once()
    assert await world.rows("select from outages") == []
    assert await world.rows("select from outbox") == []
    async with world.pool.transaction("end") as tx:
        await tx.execute("update projects set deleting_since = null")
    await watcher.pass_once()
    assert len(await world.rows("select from outbox")) == 1


async def on_channel(world: World, row: MonitorRow) -> None:
    async with world.pool.transaction("channel") as tx:
        channel = await create_channel(
            tx,
            world.editor,
            world.project_uid,
            "webhook",
            "chat",
            {"url": "https://chat.example/hook"},
            world.keyring,
            enabled=True,
        )
        await attach_channel(tx, row.org, row.id, channel.id)


async def fails(world: World, row: MonitorRow) -> None:
    async with world.pool.transaction("record") as tx:
        await record_results(tx, [world.result(row, world.now, up=False)])
