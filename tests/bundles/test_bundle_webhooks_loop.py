"""Webhooks of bundles are delivered: signed with the named secret, and not after their removal."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import standardwebhooks
import trio

from leadline.probes.senders.webhook import secret_from
from leadline.storage.bundles.rules.bundle import Bundle, read_bundle
from leadline.storage.bundles.transactions.apply_bundle import apply_bundle
from leadline.storage.engine.pools import Tx
from leadline.storage.monitors.transactions.edit_secrets import create_secret, edit_secret
from leadline.storage.monitors.transactions.write_batch import MonitorWriteBatch
from leadline.storage.notifications.tables import webhooks
from tests.bundles.test_bundle_locks_storage import context, write
from tests.bundles.test_file_provider_syncer_loop import file, provider
from tests.support.worlds.blocked import until_blocked
from tests.support.worlds.leasing import Receiver, leasing, receiving, until_settled
from tests.support.worlds.outbox_world import OutboxWorld
from tests.support.worlds.world import World

FIRST, SECOND = secret_from(b"f" * 32), secret_from(b"s" * 32)


def bundle(**entries: Any) -> Bundle:
    head = {"format": 3, "organization": "acme", "project": "shop"}
    return read_bundle({**head, "webhooks": entries})


async def prepare(world: World) -> OutboxWorld:
    async with world.pool.transaction("make") as tx:
        for name, value in (("first", FIRST), ("second", SECOND)):
            who, project = world.editor, world.project_uid
            await create_secret(tx, who, project, name, value, world.keyring)
    return OutboxWorld(world)


async def apply(world: World, **entries: Any) -> None:
    async with world.pool.transaction("apply") as tx:
        await apply_bundle(tx, world.project_uid, bundle(**entries), *context(world))


async def deliver(box: OutboxWorld) -> None:
    async with leasing(box):
        await until_settled(box, "delivered")


async def put(world: World, value: str) -> None:
    async with world.pool.transaction("rotate") as tx:
        who, project = world.editor, world.project_uid
        await edit_secret(tx, who, project, "first", None, value, world.keyring)


def signed_with(receiver: Receiver) -> list[str]:
    """Returns the secret of each delivery, by the reference implementation."""
    found = []
    for one in receiver.got:
        for secret in (FIRST, SECOND):
            try:
                standardwebhooks.Webhook(secret).verify(one.body, one.headers)
            except standardwebhooks.WebhookVerificationError:
                continue
            found.append(secret)
    assert len(found) == len(receiver.got)
    return found


async def test_deliveries_are_signed_with_the_secret_that_the_bundle_names(world: World) -> None:
    box = await prepare(world)
    async with receiving() as receiver:
        url = receiver.url("/a")
        await apply(world, a={"url": url, "secret_ref": "first"})
        assert await box.enqueue(uuid4(), 1) == 1
        await deliver(box)
        await apply(world, a={"url": url, "secret_ref": "second"})
        await box.enqueue(uuid4(), 1)
        await deliver(box)
        assert signed_with(receiver) == [FIRST, SECOND]
        # A rotation has an effect without an application.
        await apply(world, a={"url": url, "secret_ref": "first"})
        await put(world, SECOND)
        await box.enqueue(uuid4(), 1)
        await deliver(box)
        assert signed_with(receiver)[2:] == [SECOND]


async def test_a_rotation_to_a_value_that_signs_nothing_sends_nothing(world: World) -> None:
    box = await prepare(world)
    async with receiving() as receiver:
        await apply(world, a={"url": receiver.url("/a"), "secret_ref": "first"})
        await put(world, "not a signing secret")
        await box.enqueue(uuid4(), 1)
        async with leasing(box, max_attempts=1):
            await until_settled(box, "dead")
        (event,) = await box.events()
        assert event.last_error == "invalid_secret"
        assert receiver.got == []


async def test_a_waiting_delivery_goes_to_the_changed_address(world: World) -> None:
    box = await prepare(world)
    async with receiving() as receiver:
        before = {"url": receiver.url("/before"), "secret_ref": "first"}
        await apply(world, a=before)
        await box.enqueue(uuid4(), 1)
        await apply(world, a={**before, "url": receiver.url("/after")})
        await deliver(box)
        assert [one.path for one in receiver.got] == ["/after"]
        # A disabled one keeps what waits, as in the API.
        await apply(world, a={**before, "enabled": False})
        assert await box.enqueue(uuid4(), 1) == 0


async def test_waiting_deliveries_of_a_removed_webhook_are_deleted(world: World) -> None:
    box = await prepare(world)
    async with receiving() as receiver:
        other = await box.webhook(receiver.url("/organization"))
        await apply(world, a={"url": receiver.url("/a"), "secret_ref": "first"})
        assert await box.enqueue(uuid4(), 1) == 2
        await apply(world)
        assert [one.webhook for one in await box.events()] == [other.id]
        assert len(await world.rows("select from destinations")) == 1
        await deliver(box)
        assert [one.path for one in receiver.got] == ["/organization"]


async def test_events_of_incidents_wait_for_no_application_before_its_end(world: World) -> None:
    box = await prepare(world)
    entry = {"url": "http://127.0.0.1:1/", "secret_ref": "first"}
    await apply(world, a=entry, b=entry)
    await box.enqueue(uuid4(), 1)
    changed = bundle(a={**entry, "enabled": False}, c=entry)
    told: list[int] = []

    async def tell() -> None:
        with trio.fail_after(20):
            told.append(await box.enqueue(uuid4(), 1))

    async with world.pool.transaction("apply") as tx:
        together: MonitorWriteBatch = await write(world, tx, changed, is_plan=False)
        await together.write_ahead(tx)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tell)
        await together.publish(tx)
    assert told == [2]
    assert len(await world.rows("select from webhooks")) == 2


async def test_an_application_and_a_creation_wait_in_one_order(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = await prepare(world)
    lock, made = webhooks.lock_webhook_quota, list[str]()

    async def make() -> None:
        made.append((await box.webhook()).url)

    async with trio.open_nursery() as nursery:

        async def locked(tx: Tx, org: int) -> None:
            await lock(tx, org)
            if tx.name == "apply":
                # It waits for the number of webhooks, and locks no row that the rest needs.
                nursery.start_soon(make)
                await until_blocked(world.pool)
                assert made == []

        monkeypatch.setattr(webhooks, "lock_webhook_quota", locked)
        await apply(world, a={"url": "http://127.0.0.1:2/", "secret_ref": "first"})
    urls = await world.rows("select url from webhooks order by id")
    assert urls == [("http://127.0.0.1:2/",), ("http://127.0.0.1:1/",)]


@pytest.mark.parametrize("gone", ["entry", "file"])
async def test_a_file_provider_manages_webhooks(world: World, tmp_path: Path, gone: str) -> None:
    box = await prepare(world)
    head = "format: 3\norganization: acme\nproject: shop\n"
    (tmp_path / "other.yaml").write_text(f"{head}monitors: {{}}\n")
    hook = "webhooks:\n  a: {url: 'http://127.0.0.1:1/', secret_ref: first}\n"
    (tmp_path / "shop.yaml").write_text(head + hook)
    look = provider(world, tmp_path)
    for _ in range(2):
        await look()
    assert (await file(world)).status == "applied"
    marks = "select managed_by, bundle_uid, bundle_path from bundle_objects where kind = 'webhook'"
    assert await world.rows(marks) == [("files", "a", "shop.yaml")]
    assert await box.enqueue(uuid4(), 1) == 1
    if gone == "entry":
        (tmp_path / "shop.yaml").write_text(f"{head}webhooks: {{}}\n")
    else:
        (tmp_path / "shop.yaml").unlink()
    for _ in range(3):
        await look()
    assert await world.rows("select from webhooks") == []
    assert await box.events() == []
    assert await world.rows(marks) == []
