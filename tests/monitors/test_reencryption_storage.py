"""Re-encryption with the current key. A value that no key decrypts is left unchanged and
reported."""

import pytest

from leadline.storage.core.refusal import Refused
from leadline.storage.engine.keyring import CannotOpen, CipherContext, Keyring
from leadline.storage.monitors.tables.encrypted_columns import SEALED_COLUMNS
from leadline.storage.monitors.transactions import rotate_encryption as module
from leadline.storage.monitors.transactions.edit_secrets import create_secret
from leadline.storage.monitors.transactions.rotate_encryption import Position, reencrypt_all
from tests.support.worlds.world import World

NEW = b"n" * 32
OLD = b"k" * 32


async def fill(world: World, keyring: Keyring, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        async with world.pool.transaction("create_secret") as tx:
            await create_secret(
                tx, world.editor, world.project_uid, f"s{number}", f"value {number}", keyring
            )


async def walk(world: World, keyring: Keyring) -> tuple[int, list[CipherContext]]:
    resealed, unopened = 0, list[CipherContext]()
    position: Position | None = Position()
    while position is not None:
        async with world.pool.transaction("reencrypt_all") as tx:
            done = await reencrypt_all(tx, keyring, position)
        resealed += done.resealed
        unopened += done.unopened
        position = done.goes_on
    return resealed, unopened


async def sealed(world: World) -> list[tuple[CipherContext, bytes]]:
    found = []
    for table, name in SEALED_COLUMNS:
        rows = await world.rows(f"select uid, {name} from {table} where {name} is not null")
        found += [(CipherContext(table, name, uid), bytes(value)) for uid, value in rows]
    return found


async def test_every_encrypted_column_is_re_encrypted_with_the_same_values(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 3)
    await world.monitor(type="push")
    await world.monitor(type="redis", target="h:1", config={"password": "hunter2"})
    await fill(world, world.keyring, 7)
    before = {place: world.keyring.open(value, place) for place, value in await sealed(world)}
    assert len(before) == 9
    ring = Keyring(NEW, (OLD,))
    assert await walk(world, ring) == (9, [])
    alone = Keyring(NEW)
    assert {place: alone.open(value, place) for place, value in await sealed(world)} == before
    assert await walk(world, ring) == (0, [])


async def test_a_value_that_no_key_decrypts_is_kept_and_reported(world: World) -> None:
    await fill(world, Keyring(b"l" * 32), 2)
    await fill(world, world.keyring, 1, first=2)
    lost = [v for _, v in await sealed(world)][:2]
    resealed, unopened = await walk(world, Keyring(NEW, (OLD,)))
    assert (resealed, len(unopened)) == (1, 2)
    kept = [value for place, value in await sealed(world) if place in unopened]
    assert sorted(kept) == sorted(lost)
    with pytest.raises(CannotOpen):
        Keyring(NEW).open(kept[0], unopened[0])


async def test_no_value_changes_without_a_current_key(world: World) -> None:
    await fill(world, world.keyring, 1)
    before = await sealed(world)
    with pytest.raises(Refused, match="encryption_key_missing"):
        await walk_columns(world, Keyring(None, (OLD,)))
    assert await sealed(world) == before


async def walk_columns(world: World, keyring: Keyring) -> None:
    secrets = next(
        n for n, column in enumerate(SEALED_COLUMNS) if column.table == "project_secrets"
    )
    async with world.pool.transaction("reencrypt_all") as tx:
        await reencrypt_all(tx, keyring, Position(column=secrets))


async def test_every_ciphertext_column_of_the_tables_is_known(world: World) -> None:
    rows = await world.rows(
        "select table_name::text, column_name::text from information_schema.columns"
        " where table_schema = 'public' and column_name like '%%ciphertext' order by 1, 2"
    )
    assert rows == sorted((column.table, column.name) for column in SEALED_COLUMNS)
