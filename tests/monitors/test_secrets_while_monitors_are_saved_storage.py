"""A secret is deleted or renamed while a monitor is saved with a reference to it: one transaction
waits, and no monitor refers to a missing secret."""

from collections.abc import Awaitable, Callable

import pytest
import trio

from leadline.storage.core.refusal import Refused
from leadline.storage.engine.pools import Tx
from leadline.storage.monitors.rules.monitor import MonitorDraft
from leadline.storage.monitors.transactions.create_monitor import create_monitor
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.monitors.transactions.edit_secrets import (
    create_secret,
    delete_secret,
    edit_secret,
)
from tests.support.worlds.blocked import until_blocked
from tests.support.worlds.world import REGIONS, World

WRITE_SECONDS = 60
REFERRING = {"password_ref": "cache", "key": "k"}

Write = Callable[[World, Tx], Awaitable[object]]


async def delete(world: World, tx: Tx) -> None:
    await delete_secret(tx, world.editor, world.project_uid, "cache")


async def rename(world: World, tx: Tx) -> None:
    await edit_secret(
        tx, world.editor, world.project_uid, "cache", "elsewhere", None, world.keyring
    )


async def create(world: World, tx: Tx) -> None:
    draft = MonitorDraft(name="m", type="redis", target="127.0.0.1:1", config=REFERRING)
    await create_monitor(tx, world.editor, world.project_uid, draft, world.keyring, REGIONS)


async def edit(world: World, tx: Tx) -> None:
    given = {"config": REFERRING}
    await edit_monitor(tx, world.editor, world.made[0].uid, given, world.keyring, REGIONS)


async def both(world: World, first: Write, second: Write) -> list[str]:
    """The outcomes of both writes. The second begins before the first ends, and waits for it."""
    told = {first: "done", second: "done"}
    wrote, blocked = trio.Event(), trio.Event()

    async def write_first() -> None:
        async with world.pool.transaction("first") as tx:
            await first(world, tx)
            wrote.set()
            await blocked.wait()

    async def write(tx: Tx) -> None:
        await second(world, tx)

    async def write_second() -> None:
        await wrote.wait()
        try:
            await world.pool.transact("second", write)
        except Refused as refused:
            told[second] = refused.code

    with trio.fail_after(WRITE_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(write_first)
            nursery.start_soon(write_second)
            await wrote.wait()
            await until_blocked(world.pool)
            blocked.set()
    return list(told.values())


@pytest.mark.parametrize("change", [delete, rename])
@pytest.mark.parametrize("save", [create, edit])
@pytest.mark.parametrize("saved_first", [True, False])
async def test_no_monitor_is_left_that_names_what_is_gone(
    world: World, change: Write, save: Write, saved_first: bool
) -> None:
    async with world.pool.transaction("create_secret") as tx:
        await create_secret(tx, world.editor, world.project_uid, "cache", "word", world.keyring)
    await world.monitor(type="redis", target="127.0.0.1:1", config={"key": "k"})
    if saved_first:
        said = "done" if change is rename else "secret_in_use"
        assert await both(world, save, change) == ["done", said]
    else:
        assert await both(world, change, save) == ["done", "invalid"]
    dangling = await world.rows(
        "select m.id from monitors m where m.config->>'password_ref' is not null and not exists "
        "(select from project_secrets s where s.name = m.config->>'password_ref')"
    )
    assert dangling == []
