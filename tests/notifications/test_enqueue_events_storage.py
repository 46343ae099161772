"""Events are enqueued for the enabled webhooks and channels, in order for each destination."""

from uuid import uuid4

import pytest
import trio

from leadline.storage.notifications.rules.notification import Topic
from leadline.storage.notifications.transactions.edit_channels import edit_channel
from leadline.storage.notifications.transactions.edit_webhooks import delete_webhook, enable_webhook
from leadline.storage.notifications.transactions.enqueue_notifications import (
    enqueue_to_notified_channels,
)
from tests.support.worlds.blocked import until_blocked
from tests.support.worlds.outbox_world import OutboxWorld, a_page
from tests.support.worlds.world import World


async def test_webhooks_of_organization_and_project_get_each_event_once(
    world: World,
) -> None:
    box = OutboxWorld(world)
    whole = await box.webhook()
    own = await box.webhook(project=world.project_uid)
    await box.webhook(enabled=False)
    assert await box.enqueue(uuid4(), 1, "incident.opened") == 2
    events = await box.events()
    assert [(e.webhook, e.event, e.ready) for e in events] == [
        (whole.id, "incident.opened", True),
        (own.id, "incident.opened", True),
    ]
    assert events[0].payload == {"seq": 1, "event": "incident.opened"}
    assert events[0].uid != events[1].uid


async def test_the_second_event_of_a_stream_waits(
    world: World,
) -> None:
    box = OutboxWorld(world)
    await box.webhook()
    one, other = uuid4(), uuid4()
    for stream, seq in ((one, 1), (one, 2), (other, 1)):
        await box.enqueue(stream, seq)
    assert [(e.stream, e.ready) for e in await box.events()] == [
        (one, True),
        (one, False),
        (other, True),
    ]


async def test_one_transaction_can_enqueue_two_events_of_a_stream(world: World) -> None:
    box = OutboxWorld(world)
    await box.webhook()
    stream = uuid4()
    async with world.pool.transaction("both") as tx:
        await box.enqueue_in(tx, stream, 1)
        await box.enqueue_in(tx, stream, 2)
    assert [e.ready for e in await box.events()] == [True, False]


async def test_enabled_channels_get_one_page_and_the_recovery(world: World) -> None:
    box = OutboxWorld(world)
    first, second, off = (
        await box.channel(),
        await box.channel(),
        await box.channel(enabled=False),
    )
    stream = uuid4()
    paged = await box.paged(stream, "down", second.id, first.id, off.id, first.id, 999)
    assert sorted(paged) == [first.id, second.id]
    async with world.pool.transaction("off") as tx:
        await edit_channel(tx, world.editor, first.uid, None, None, False, world.keyring)
    async with world.pool.transaction("recover") as tx:
        told = await enqueue_to_notified_channels(
            tx,
            world.org,
            world.project,
            stream,
            stream,
            Topic.INCIDENT,
            a_page("up", status="recovered", event="incident.resolved"),
        )
    assert told == [second.id]
    assert [(e.channel, e.event) for e in await box.events()] == [
        (first.id, "incident.opened"),
        (second.id, "incident.opened"),
        (second.id, "incident.resolved"),
    ]


async def test_a_recovery_without_an_earlier_page_is_not_sent(world: World) -> None:
    box = OutboxWorld(world)
    await box.channel()
    async with world.pool.transaction("recover") as tx:
        page = a_page(status="recovered")
        assert not await enqueue_to_notified_channels(
            tx, world.org, world.project, uuid4(), uuid4(), Topic.MONITOR, page
        )
    assert not await box.events()


async def test_pages_do_not_wait_for_webhooks_of_the_same_incident(world: World) -> None:
    box = OutboxWorld(world)
    await box.webhook()
    channel = await box.channel()
    stream = uuid4()
    await box.enqueue(stream, 1)
    await box.paged(stream, "down", channel.id)
    assert all(e.ready for e in await box.events())


async def test_nul_characters_are_kept_out_and_everything_else_is_kept(world: World) -> None:
    box = OutboxWorld(world)
    channel = await box.channel()
    await box.paged(uuid4(), "a\0b \\u0000 \\\0 é 😀", channel.id)
    payload = (await box.events())[0].payload
    assert payload["title"] == "a\ufffdb \\u0000 \\\ufffd é 😀"


async def test_an_event_without_a_sequence_number_is_refused(world: World) -> None:
    async with world.pool.transaction("tell") as tx:
        with pytest.raises(ValueError, match="seq"):
            await OutboxWorld(world).enqueue_in(tx, uuid4(), None)  # type: ignore[arg-type]


async def test_deleting_a_webhook_deletes_what_waits_for_it(world: World) -> None:
    box = OutboxWorld(world)
    row = await box.webhook()
    kept = await box.webhook()
    await box.enqueue(uuid4(), 1)
    async with world.pool.transaction("delete") as tx:
        await delete_webhook(tx, box.admin, row.uid)
    assert [e.webhook for e in await box.events()] == [kept.id]


async def test_concurrent_first_events_create_one_destination(world: World) -> None:
    box = OutboxWorld(world)
    await box.webhook()
    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(box.enqueue, uuid4(), 1)
    assert len(await box.events()) == 4
    assert len(await world.rows("select id from destinations")) == 1


async def test_a_webhook_deleted_during_its_first_event_is_left_out(world: World) -> None:
    """The writer waits for the deletion and does not fail."""
    box = OutboxWorld(world)
    row = await box.webhook()
    kept = await box.webhook()
    deleted = trio.Event()

    async def delete() -> None:
        async with world.pool.transaction("delete") as tx:
            await delete_webhook(tx, box.admin, row.uid)
            deleted.set()
            await until_blocked(world.pool)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(delete)
        await deleted.wait()
        assert await box.enqueue(uuid4(), 1) == 1
    assert [e.webhook for e in await box.events()] == [kept.id]


async def test_a_disabled_webhook_gets_only_events_after_it_is_enabled(world: World) -> None:
    box = OutboxWorld(world)
    row = await box.webhook()
    for enabled, seq in ((False, 1), (True, 2)):
        async with world.pool.transaction("turn") as tx:
            await enable_webhook(tx, box.admin, row.uid, enabled=enabled)
        await box.enqueue(uuid4(), seq)
    assert [e.payload["seq"] for e in await box.events()] == [2]
