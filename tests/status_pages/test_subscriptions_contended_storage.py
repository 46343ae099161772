"""Concurrent subscribing, unsubscribing, page deletion and sending: no transaction fails, no
address gets two requests, and no ended subscription receives mail.
"""

from functools import partial
from uuid import UUID

import pytest
import trio

from leadline.storage.core.refusal import Refused
from leadline.storage.engine.pools import Conflicted, Tx
from leadline.storage.notifications.rows import Leased
from leadline.storage.notifications.rules.delivery_retry import ROOMS, DeliveryOutcome
from leadline.storage.notifications.transactions.lease_deliveries import (
    LeasedDelivery,
    lease_deliveries,
)
from leadline.storage.notifications.transactions.settle_deliveries import settle_deliveries
from leadline.storage.status_pages.transactions.edit_pages import delete_page
from leadline.storage.status_pages.transactions.fan_out import LeaseLost, pass_on
from tests.support.worlds.blocked import until_blocked
from tests.support.worlds.subscribing import Readers, readers_of
from tests.support.worlds.world import World

ADA = "ada@example.com"


@pytest.fixture
async def readers(world: World) -> Readers:
    return await readers_of(world)


async def leased(readers: Readers) -> LeasedDelivery:
    async with readers.world.pool.transaction("lease") as tx:
        claim = await lease_deliveries(tx, ROOMS, 3)
    (delivery,) = claim.deliveries
    return delivery


async def _pass_on(event: Leased, lease: UUID, tx: Tx) -> None:
    await pass_on(tx, event, lease, 0)


async def test_concurrent_requests_for_one_address_send_one_mail(readers: Readers) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(readers.ask, ADA)
    assert await readers.rows("select count(*) from outbox") == [(1,)]
    assert await readers.rows("select count(*) from subscribers") == [(1,)]


async def test_concurrent_requests_of_two_pages_send_one_mail(readers: Readers) -> None:
    other = Readers(readers.world)
    other.org = readers.org
    await other.open_page(slug="other", title="Other")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(readers.ask, ADA)
        nursery.start_soon(other.ask, ADA)
    assert await readers.rows("select count(*) from outbox") == [(1,)]


async def test_deleting_a_page_waits_for_the_fan_out(readers: Readers) -> None:
    await readers.subscribe(ADA, "bob@example.com")
    await readers.open_incident()
    delivery = await leased(readers)
    pool = readers.world.pool

    async def delete() -> None:
        async with pool.transaction("delete") as tx:
            await delete_page(tx, readers.owner, readers.page)

    async with trio.open_nursery() as nursery:
        async with pool.transaction("enqueue_subscriber_events") as tx:
            assert await pass_on(tx, delivery.event, delivery.lease, 0) is None
            nursery.start_soon(delete)
            await until_blocked(pool)
    for table in ("subscribers", "destinations", "outbox"):
        assert not await readers.rows(f"select id from {table}")


async def test_unsubscribing_during_the_fan_out_takes_effect(readers: Readers) -> None:
    await readers.subscribe(ADA, "bob@example.com")
    await readers.open_incident()
    delivery = await leased(readers)
    pool = readers.world.pool

    async def leave() -> None:
        async with pool.transaction("leave") as tx:
            await tx.execute("delete from subscribers where address = 'bob@example.com'")

    async with trio.open_nursery() as nursery:
        async with pool.transaction("enqueue_subscriber_events") as tx:
            await pass_on(tx, delivery.event, delivery.lease, 0)
            nursery.start_soon(leave)
            await until_blocked(pool)
    told = await readers.rows(
        "select s.address from outbox o join destinations d on d.id = o.destination"
        " join subscribers s on s.id = d.subscriber"
    )
    assert told == [(ADA,)]


async def test_a_lost_lease_sends_nothing(readers: Readers) -> None:
    await readers.subscribe(ADA)
    await readers.open_incident()
    delivery = await leased(readers)
    await readers.rows("update outbox set lease = gen_random_uuid() returning id")
    with pytest.raises(LeaseLost):
        async with readers.world.pool.transaction("enqueue_subscriber_events") as tx:
            await pass_on(tx, delivery.event, delivery.lease, 0)
    assert await readers.rows("select count(*) from outbox") == [(1,)]


async def test_a_deleted_page_sends_and_settles_nothing(readers: Readers) -> None:
    await readers.subscribe(ADA)
    await readers.open_incident()
    delivery = await leased(readers)
    pool = readers.world.pool
    async with pool.transaction("delete") as tx:
        await delete_page(tx, readers.owner, readers.page)
    async with pool.transaction("enqueue_subscriber_events") as tx:
        assert await pass_on(tx, delivery.event, delivery.lease, 0) is None
    async with pool.transaction("settle") as tx:
        settled = await settle_deliveries(tx, [(delivery, DeliveryOutcome())], 3, lambda: 0.0)
    assert not settled.became


async def test_random_concurrent_operations_lose_nothing(readers: Readers, world: World) -> None:
    people = [f"reader{n}@example.com" for n in range(12)]
    await readers.subscribe(*people)
    incident = await readers.open_incident()

    async def send_leased() -> None:
        claim = await world.pool.transact("lease", lambda tx: lease_deliveries(tx, ROOMS, 3))
        for delivery in claim.deliveries:
            if delivery.event.page is not None:
                event, lease = delivery.event, delivery.lease
                await world.pool.transact(
                    "enqueue_subscriber_events", partial(_pass_on, event, lease)
                )

    async def sending() -> None:
        for _ in range(5):
            await send_leased()

    async def updating() -> None:
        for n in range(5):
            await readers.say(incident.uid, None, f"Note {n}.")

    async def leaving() -> None:
        for address in people[::2]:
            async with world.pool.transaction("leave") as tx:
                await tx.execute("delete from subscribers where address = %(a)s", a=address)

    async def asking() -> None:
        for n in range(5):
            await readers.ask(f"new{n}@example.com")

    try:
        async with trio.open_nursery() as nursery:
            for work in (sending, sending, updating, leaving, asking):
                nursery.start_soon(work)
    except* (Refused, Conflicted) as group:
        pytest.fail(repr(group.exceptions))
    left = await readers.rows("select address from subscribers where confirmed_at is not null")
    assert {row[0] for row in left} == set(people[1::2])
    orphans = await readers.rows(
        "select o.id from outbox o left join destinations d on d.id = o.destination"
        " where d.id is null"
    )
    assert not orphans
