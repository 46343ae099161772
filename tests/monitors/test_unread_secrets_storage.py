"""Secrets that no configured key decrypts survive every edit, or the edit is refused."""

import json
from typing import Any

import pytest

from leadline.storage.core.refusal import Refused
from leadline.storage.engine.keyring import Keyring
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.transactions.config_secrets import decrypt
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from tests.support.worlds.world import REGIONS, World

BASIC = {"auth_mode": "basic", "username": "ada", "password": "horse", "headers": {"Cookie": "a"}}
SCENARIO = {
    "steps": [{"name": "one", "method": "GET", "url": "https://a.example/"}],
}
OTHER = Keyring(b"x" * 32)


async def edit(world: World, row: MonitorRow, keyring: Keyring, **given: Any) -> MonitorRow:
    async with world.pool.transaction("edit") as tx:
        return await edit_monitor(tx, world.editor, row.uid, given, keyring, REGIONS)


@pytest.mark.parametrize(
    "given",
    [
        {"enabled": False},
        {"name": "renamed", "tags": ["a"]},
        {"failure_threshold": 3},
        {"config": {**BASIC, "password": "", "headers": {"Cookie": ""}}},
    ],
)
async def test_an_edit_beside_the_definition_keeps_them(
    world: World, given: dict[str, Any]
) -> None:
    row = await world.monitor(config=BASIC)
    edited = await edit(world, row, OTHER, **given)
    assert edited.config_ciphertext == row.config_ciphertext
    assert edited.config == row.config
    assert decrypt(world.keyring, edited.config_ciphertext, row.uid) == {
        "password": "horse",
        "headers": {"Cookie": "a"},
    }
    # With the key again, the monitor is complete.
    again = await edit(world, edited, world.keyring, timeout_seconds=7)
    assert decrypt(world.keyring, again.config_ciphertext, row.uid)["password"] == "horse"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"target": "http://127.0.0.1/other"}, "config.headers.Cookie"),
        ({"timeout_seconds": 3}, "config.headers.Cookie"),
        (
            {"config": {**BASIC, "password": "new", "headers": {"Cookie": ""}}},
            "config.headers.Cookie",
        ),
        ({"config": {**BASIC, "password": "", "headers": {"Cookie": "b"}}}, "config.password"),
    ],
)
async def test_an_edit_that_would_lose_one_is_refused(
    world: World, given: dict[str, Any], field: str
) -> None:
    row = await world.monitor(config=BASIC)
    with pytest.raises(Refused) as caught:
        await edit(world, row, OTHER, **given)
    assert (caught.value.code, caught.value.field) == ("invalid", field)
    assert caught.value.message == "must be given again, as no configured key opens it"
    kept = await world.rows("select config_ciphertext from monitors where id = %(id)s", id=row.id)
    assert kept == [(row.config_ciphertext,)]


async def test_they_can_be_replaced_or_removed(world: World) -> None:
    row = await world.monitor(config=BASIC)
    new = {**BASIC, "password": "new", "headers": {"Cookie": "b"}}
    edited = await edit(world, row, OTHER, config=new)
    assert decrypt(OTHER, edited.config_ciphertext, row.uid) == {
        "password": "new",
        "headers": {"Cookie": "b"},
    }
    other = await world.monitor(config=BASIC)
    assert (await edit(world, other, OTHER, config={})).config_ciphertext is None


async def test_a_document_that_cannot_be_read_does_not_prevent_a_pause(world: World) -> None:
    row = await world.monitor(type="synthetic", target="", config={"scenario": SCENARIO})
    paused = await edit(world, row, OTHER, enabled=False)
    assert paused.enabled is False
    document = decrypt(world.keyring, paused.config_ciphertext, row.uid)["scenario"]
    assert json.loads(document)["steps"][0]["name"] == "one"
