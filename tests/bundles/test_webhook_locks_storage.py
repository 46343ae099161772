"""Deletions of several webhooks wait for events of incidents in one order, without a deadlock."""

from typing import Any
from uuid import UUID, uuid4

import pytest
import trio

from leadline.storage.accounts.rules.access import CredentialKind, Membership, Principal, Role
from leadline.storage.bundles.rules.bundle import Bundle, read_bundle
from leadline.storage.bundles.transactions import write_webhooks
from leadline.storage.core.key import DestinationKey
from leadline.storage.core.refusal import Refused
from leadline.storage.engine.pools import Conflicted, Tx
from leadline.storage.notifications.rows import WebhookRow
from leadline.storage.notifications.tables import outbox_settlements, webhooks
from tests.bundles.test_bundle_locks_storage import write
from tests.bundles.test_bundle_webhooks_loop import apply, prepare
from tests.support.worlds.blocked import until_blocked
from tests.support.worlds.deletion import delete_organization, delete_project
from tests.support.worlds.outbox_world import OutboxWorld
from tests.support.worlds.world import World

ENTRY: dict[str, Any] = {"url": "http://127.0.0.1:1/", "secret_ref": "first"}
OFF = {**ENTRY, "enabled": False}


async def twisted(world: World) -> OutboxWorld:
    """Makes two webhooks. The second has the first destination."""
    box = await prepare(world)
    await apply(world, a=OFF, b=ENTRY)
    await box.enqueue(uuid4(), 1)
    await apply(world, a=ENTRY, b=ENTRY)
    await box.enqueue(uuid4(), 1)
    assert await destinations(world) == [(1, 2), (2, 1)]
    return box


async def destinations(world: World) -> list[tuple[Any, ...]]:
    """Returns the ranks of the destinations and of their webhooks, by the ids."""
    rows = await world.rows("select id, webhook from destinations order by id")
    order = sorted(webhook for _, webhook in rows)
    return [(n + 1, order.index(webhook) + 1) for n, (_, webhook) in enumerate(rows)]


async def remove(world: World) -> None:
    await apply(world)


async def keys_of(world: World) -> list[DestinationKey]:
    rows = await world.rows("select org, id from destinations order by id")
    return [DestinationKey((org, key)) for org, key in rows]


async def test_events_of_incidents_pass_a_removal_of_several_webhooks(world: World) -> None:
    box, told = await twisted(world), list[int]()
    first, _ = await keys_of(world)

    async def tell() -> None:
        told.append(await box.enqueue(uuid4(), 1))

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            async with world.pool.transaction("settle") as tx:
                await outbox_settlements.lock_shared_destinations(tx, [first])
                nursery.start_soon(remove, world)
                await until_blocked(world.pool)
                async with trio.open_nursery() as inner:
                    inner.start_soon(tell)
    assert told == [2]
    assert await world.rows("select from webhooks") == []
    assert await box.events() == []


async def test_the_first_event_of_a_webhook_waits_for_a_removal_without_a_lock(
    world: World,
) -> None:
    box, told = await prepare(world), list[int]()
    await apply(world, a=ENTRY)
    await box.enqueue(uuid4(), 1)
    await apply(world, a=ENTRY, b=ENTRY)

    async def tell() -> None:
        told.append(await box.enqueue(uuid4(), 1))

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            async with world.pool.transaction("settle") as tx:
                await outbox_settlements.lock_shared_destinations(tx, await keys_of_first(tx))
                nursery.start_soon(remove, world)
                await until_blocked(world.pool)
                nursery.start_soon(tell)
                await until_blocked(world.pool, 2)
    assert told == [0]


async def keys_of_first(tx: Tx) -> list[DestinationKey]:
    return [
        DestinationKey((org, key)) for org, key in await tx.rows("select org, id from destinations")
    ]


async def test_a_page_to_a_new_channel_waits_for_no_application(world: World) -> None:
    box, told = OutboxWorld(world), list[list[int]]()
    await apply_channel(world, channel("first"))
    ((key,),) = await world.rows("select id from notification_channels")

    async def tell() -> None:
        with trio.fail_after(20):
            told.append(await box.paged(uuid4(), "Shop is down", key))

    async with world.pool.transaction("apply") as tx:
        together = await write(world, tx, channel("second"), is_plan=False)
        await together.write_ahead(tx)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tell)
        await together.publish(tx)
    assert told == [[key]]


def channel(topic: str) -> Bundle:
    head = {"format": 3, "organization": "acme", "project": "shop"}
    return read_bundle({**head, "channels": {"desk": {"type": "ntfy", "config": {"topic": topic}}}})


async def apply_channel(world: World, wanted: Bundle) -> None:
    async with world.pool.transaction("apply") as tx:
        together = await write(world, tx, wanted, is_plan=False)
        await together.write_ahead(tx)
        await together.publish(tx)


@pytest.mark.parametrize("whole", [False, True])
async def test_a_settlement_passes_the_deletion_of_a_tenant(world: World, whole: bool) -> None:
    await twisted(world)
    async with world.pool.transaction("release") as tx:
        await tx.execute("update bundle_objects set managed_by = ''")
        values = "project = null, secret = null, secret_ciphertext = ''"
        # The order of the updates is that of a cascade.
        for (key,) in await tx.rows("select id from webhooks order by id"):
            if whole:
                await tx.execute(f"update webhooks set {values} where id = %(key)s", key=key)
    first, second = await keys_of(world)
    role = Membership(world.org, None, Role.ORG_ADMIN)
    admin = Principal(CredentialKind.SESSION, (role,), is_global_admin=whole)
    ((org_uid,),) = await world.rows("select uid from organizations")

    async def delete() -> None:
        async with world.pool.transaction("delete") as tx:
            if whole:
                await delete_organization(tx, admin, org_uid)
            else:
                await delete_project(tx, admin, world.project_uid)

    async def settle() -> None:
        async with world.pool.transaction("settle") as tx:
            found = await outbox_settlements.lock_shared_destinations(tx, [first, second])
            assert len(found) == 2

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            async with world.pool.transaction("settle_first") as tx:
                await outbox_settlements.lock_shared_destinations(tx, [first])
                nursery.start_soon(delete)
                await until_blocked(world.pool)
                async with trio.open_nursery() as inner:
                    inner.start_soon(settle)
    assert await world.rows("select from destinations") == []


async def test_a_webhook_that_changes_after_the_comparison_repeats_the_application(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = await prepare(world)
    await apply(world, a=ENTRY)
    ((uid,),) = await world.rows("select uid from webhooks")
    lock, changed = webhooks.lock_webhook, list[UUID]()

    async def change() -> None:
        async with world.pool.transaction("enable") as tx:
            row = await lock(tx, uid)
            assert row is not None
            await webhooks.enable_webhook(tx, row, enabled=False)
        changed.append(uid)

    async def locked(tx: Tx, own: UUID) -> WebhookRow | None:
        if tx.name == "apply" and not changed:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(change)
        return await lock(tx, own)

    monkeypatch.setattr(webhooks, "lock_webhook", locked)
    with pytest.raises(Conflicted, match="another transaction changed the webhook a"):
        await apply(world, a={**ENTRY, "url": "http://127.0.0.1:2/"})
    assert changed == [uid]
    await apply(world, a={**ENTRY, "url": "http://127.0.0.1:2/"})
    assert await world.rows("select url, enabled from webhooks") == [("http://127.0.0.1:2/", True)]
    assert await box.enqueue(uuid4(), 1) == 1


async def test_webhooks_are_counted_again_under_the_lock_of_their_number(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = await prepare(world)
    monkeypatch.setattr(write_webhooks, "WEBHOOKS_OF_ORGANIZATION_MOST", 1)
    lock = webhooks.lock_webhook_quota

    async def make() -> None:
        await box.webhook()

    async def locked(tx: Tx, org: int) -> None:
        if tx.name == "apply":
            async with trio.open_nursery() as nursery:
                nursery.start_soon(make)
        await lock(tx, org)

    monkeypatch.setattr(webhooks, "lock_webhook_quota", locked)
    with pytest.raises(Refused, match="would make more than 1 of the organization"):
        await apply(world, a=ENTRY)
    assert len(await world.rows("select from webhooks")) == 1


async def test_the_secret_is_locked_before_the_webhook(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await prepare(world)
    await apply(world, a=ENTRY)
    lock, free = webhooks.lock_webhook, list[list[tuple[Any, ...]]]()

    async def look() -> None:
        async with world.pool.transaction("look") as tx:
            query = "select name from project_secrets order by name for update skip locked"
            free.append(await tx.rows(query))

    async def locked(tx: Tx, own: UUID) -> WebhookRow | None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(look)
        return await lock(tx, own)

    monkeypatch.setattr(webhooks, "lock_webhook", locked)
    await apply(world, a={**ENTRY, "enabled": False})
    # A rename of the secret locks it before what names it.
    assert free[0] == [("second",)]
