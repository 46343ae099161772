"""`leadline keys`: a change of keys as an operator makes it, on a real database."""

from pathlib import Path

import psycopg
import pytest
import trio
from click.testing import CliRunner, Result

from leadline.daemon.cli import main
from leadline.storage.engine.keyring import Keyring, key_from_text, new_key_text
from leadline.storage.monitors.transactions.edit_secrets import create_secret
from tests.support.worlds.world import World, small_world

OLD, NEW = new_key_text(), new_key_text()


def rotate(tmp_path: Path, dsn: str, current: str, *previous: str) -> Result:
    file = tmp_path / "leadline.toml"
    key = f'encryption_key = "{current}"\n' if current else ""
    file.write_text(
        f'[database]\ndsn = "{dsn}"\n[security]\n{key}previous_keys = {list(previous)!r}\n'
    )
    return CliRunner().invoke(main, ["keys", "rotate", "--config", str(file)])


@pytest.fixture
def sealed_by_old(dsn: str) -> str:
    trio.run(_found, dsn)
    return dsn


async def _found(dsn: str) -> None:
    async with small_world(dsn) as world:
        await _fill(world)


async def _fill(world: World) -> None:
    for number in range(3):
        async with world.pool.transaction("create_secret") as tx:
            await create_secret(
                tx,
                world.editor,
                world.project_uid,
                f"s{number}",
                "hunter2",
                Keyring(key_from_text(OLD)),
            )


def is_current(dsn: str, key: str) -> bool:
    ring = Keyring(key_from_text(key))
    with psycopg.connect(dsn) as connection:
        rows = connection.execute("select value_ciphertext from project_secrets").fetchall()
    return all(ring.is_current(bytes(value)) for (value,) in rows)


def test_a_new_key_has_32_bytes() -> None:
    text = CliRunner().invoke(main, ["keys", "new"]).output.strip()
    assert len(key_from_text(text)) == 32


def test_values_of_the_old_key_are_encrypted_with_the_new_one(
    tmp_path: Path, sealed_by_old: str
) -> None:
    done = rotate(tmp_path, sealed_by_old, NEW, OLD)
    assert (done.exit_code, done.output) == (0, "3 of 3 values re-encrypted\n")
    assert is_current(sealed_by_old, NEW)
    assert "0 of 3" in rotate(tmp_path, sealed_by_old, NEW).output


def test_values_that_no_key_opens_are_named_and_fail_the_command(
    tmp_path: Path, sealed_by_old: str
) -> None:
    done = rotate(tmp_path, sealed_by_old, NEW)
    assert done.exit_code == 1
    assert done.output.count("no configured key decrypts project_secrets.value_ciphertext of ") == 3
    assert "previous_keys" in done.output
    assert is_current(sealed_by_old, OLD)


def test_a_missing_current_key_is_named(tmp_path: Path, sealed_by_old: str) -> None:
    done = rotate(tmp_path, sealed_by_old, "", OLD)
    assert done.exit_code == 1
    assert "security.encryption_key" in done.output
