"""A probe is given the values that its monitor's settings refer to, and learns when they change."""

from typing import Any

from leadline.daemon.loops.catalogue import OVERLAP_US, Catalogue
from leadline.storage.keyring import Keyring
from leadline.storage.rules.instant import SECOND, Instant
from leadline.storage.tables.monitors import MonitorRow
from leadline.storage.transactions.secrets.edit_secrets import create_secret, edit_secret
from tests.world import World


async def redis_with(world: World, name: str, value: str) -> MonitorRow:
    async with world.pool.transaction("create_secret") as tx:
        await create_secret(tx, world.editor, world.project_uid, name, value, world.keyring)
    return await world.monitor(
        type="redis", target="127.0.0.1:1", config={"password_ref": name, "key": "k"}
    )


def catalogue_of(world: World, keyring: Keyring | None = None) -> Catalogue:
    return Catalogue(world.pool, keyring or world.keyring, lambda: world.now)


async def secrets_in(catalogue: Catalogue, row: MonitorRow) -> Any:
    check = (await catalogue.find([(row.org, row.id)]))[row.org, row.id].check
    return None if check is None else dict(check.secrets)


async def replace(world: World, name: str, value: str) -> None:
    async with world.pool.transaction("edit_secret") as tx:
        await edit_secret(tx, world.editor, world.project_uid, name, None, value, world.keyring)


async def test_a_check_holds_the_value_under_the_name_of_its_setting(world: World) -> None:
    row = await redis_with(world, "cache", "hunter2")
    assert await secrets_in(catalogue_of(world), row) == {"password": "hunter2"}


async def test_a_replaced_value_reaches_those_who_refer_to_it_and_nobody_else(world: World) -> None:
    row = await redis_with(world, "cache", "hunter2")
    other = await redis_with(world, "other", "same")
    plain = await world.monitor()
    catalogue = catalogue_of(world)
    for known in (row, other, plain):
        await secrets_in(catalogue, known)
    world.now = Instant(world.now + 2 * OVERLAP_US)
    await catalogue.refresh([row.shard])
    world.now = Instant(world.now + 2 * OVERLAP_US)
    await replace(world, "cache", "rotated")
    assert await secrets_in(catalogue, row) == {"password": "hunter2"}
    assert await catalogue.refresh([row.shard]) == 1
    assert await secrets_in(catalogue, row) == {"password": "rotated"}
    assert await secrets_in(catalogue, other) == {"password": "same"}


async def test_a_value_is_not_put_back_by_an_older_reading(world: World) -> None:
    row = await redis_with(world, "cache", "hunter2")
    catalogue = catalogue_of(world)
    await secrets_in(catalogue, row)
    world.now = Instant(world.now + SECOND)
    await replace(world, "cache", "rotated")
    await catalogue.refresh([row.shard])
    for _ in range(2):
        await catalogue.refresh([row.shard])
        assert await secrets_in(catalogue, row) == {"password": "rotated"}


async def test_a_secret_that_is_gone_leaves_the_check_to_miss_it(world: World) -> None:
    row = await redis_with(world, "cache", "hunter2")
    async with world.pool.transaction("lose") as tx:
        await tx.execute("delete from project_secrets")
    assert await secrets_in(catalogue_of(world), row) == {}


async def test_one_that_no_key_opens_makes_no_check(world: World) -> None:
    row = await redis_with(world, "cache", "hunter2")
    assert await secrets_in(catalogue_of(world, Keyring(b"x" * 32)), row) is None
