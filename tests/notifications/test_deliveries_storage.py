"""Events are leased within limits, settled once and in the order of their stream, with concurrent
leasers and writers."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import pytest
import trio

from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.engine.pools import Tx
from leadline.storage.notifications.rules.delivery_retry import (
    LEASE_US,
    ROOMS,
    SLOW_AFTER_US,
    DeliveryOutcome,
    DeliveryStatus,
    InFlight,
    rooms_beside,
)
from leadline.storage.notifications.rules.notification import Topic
from leadline.storage.notifications.tables import dead_letters
from leadline.storage.notifications.transactions import edit_channels
from leadline.storage.notifications.transactions.edit_webhooks import delete_webhook, enable_webhook
from leadline.storage.notifications.transactions.enqueue_notifications import enqueue_pages
from leadline.storage.notifications.transactions.lease_deliveries import (
    LeasedDeliveries,
    LeasedDelivery,
    lease_deliveries,
)
from leadline.storage.notifications.transactions.settle_deliveries import Settled, settle_deliveries
from tests.support.worlds.blocked import until_blocked
from tests.support.worlds.outbox_world import OutboxWorld, a_page
from tests.support.worlds.world import START, World

FAILED = DeliveryOutcome("http_status 503")
DELIVERED = DeliveryOutcome()
MOST = 3


async def leased(world: World, held: Sequence[InFlight] = ()) -> Sequence[LeasedDelivery]:
    return (await claimed(world, held)).deliveries


async def claimed(world: World, held: Sequence[InFlight] = ()) -> LeasedDeliveries:
    async with world.pool.transaction("lease_deliveries") as tx:
        return await lease_deliveries(tx, rooms_beside(held), MOST)


async def settled(world: World, *ended: tuple[LeasedDelivery, DeliveryOutcome]) -> Settled:
    async with world.pool.transaction("settle_deliveries") as tx:
        return await settle_deliveries(tx, ended, MOST, lambda: 0.5)


async def statuses(box: OutboxWorld) -> list[str]:
    return [event.status for event in await box.events()]


async def test_a_leased_event_is_not_leased_again_before_the_lease_ends(world: World) -> None:
    box = OutboxWorld(world)
    hook = await box.webhook()
    await box.enqueue(uuid4(), 1)
    (mine,) = await leased(world)
    assert mine.webhook is not None
    assert (mine.webhook.uid, mine.event.attempts) == (hook.uid, 1)
    assert not await leased(world)
    world.now = Instant(world.now + LEASE_US - 1)
    assert not await leased(world)
    world.now = Instant(world.now + 1)
    (again,) = await leased(world)
    assert again.event.uid == mine.event.uid
    assert again.event.attempts == 2
    assert again.lease != mine.lease
    # The holder of the old lease can no longer settle the event.
    assert await settled(world, (mine, DeliveryOutcome())) == Settled()
    assert (await settled(world, (again, DeliveryOutcome()))).became == {
        (again.event.org, again.event.id): DeliveryStatus.DELIVERED
    }


async def test_a_stream_goes_one_by_one_and_streams_go_side_by_side(world: World) -> None:
    box = OutboxWorld(world)
    await box.webhook()
    one, other = uuid4(), uuid4()
    for stream, seq in ((one, 1), (one, 2), (one, 3), (other, 1)):
        await box.enqueue(stream, seq)
    first = await leased(world)
    assert [d.event.id for d in first] == [1, 4]
    assert not await leased(world)
    await settled(world, *((d, DeliveryOutcome()) for d in first))
    (second,) = await leased(world)
    assert second.event.id == 2
    await settled(world, (second, FAILED))
    world.now = Instant(world.now + 10 * SECOND)
    (again,) = await leased(world)
    assert again.event.id == 2
    await settled(world, (again, DeliveryOutcome()))
    (third,) = await leased(world)
    assert third.event.id == 3


async def test_a_dead_event_blocks_only_its_followers(world: World) -> None:
    box = OutboxWorld(world)
    await box.webhook()
    stream = uuid4()
    await box.enqueue(stream, 1)
    await box.enqueue(stream, 2)
    for _ in range(MOST):
        (one,) = await leased(world)
        await settled(world, (one, FAILED))
        world.now = Instant(world.now + 3600 * SECOND)
    assert await statuses(box) == ["dead", "pending"]
    await box.enqueue(stream, 3)
    await box.enqueue(uuid4(), 1)
    (other,) = await leased(world)
    assert other.event.id == 4
    assert (await box.events())[0].last_error == "http_status 503"


async def enqueue_outage(world: World, channel: int, monitor: UUID, outage: UUID) -> None:
    """Of a monitor without an incident: each outage is a thread of its own."""
    async with world.pool.transaction("page") as tx:
        await enqueue_pages(
            tx, world.org, world.project, monitor, outage, Topic.MONITOR, [channel], a_page()
        )


async def died(world: World, one: LeasedDelivery) -> None:
    """Makes an event dead, by its last failed attempt."""
    async with world.pool.transaction("wear") as tx:
        await tx.execute("update outbox set attempts = 99 where id = %(id)s", id=one.event.id)
    await settled(world, (one, FAILED))
    world.now = Instant(world.now + 3600 * SECOND)


async def test_a_dead_page_of_one_outage_does_not_block_the_next_outage(world: World) -> None:
    """A later event of the same outage waits, and is sent after the dead one is replayed."""
    box = OutboxWorld(world)
    channel = await box.channel()
    monitor, first, second = uuid4(), uuid4(), uuid4()
    for outage in (first, first, second, second):
        await enqueue_outage(world, channel.id, monitor, outage)
    (one,) = await leased(world)
    await died(world, one)
    # Of the first outage's, also what is written later.
    await enqueue_outage(world, channel.id, monitor, first)
    for expected in (3, 4):
        (one,) = await leased(world)
        assert one.event.id == expected
        await settled(world, (one, DeliveryOutcome()))
    assert not await leased(world)
    async with world.pool.transaction("replay") as tx:
        found = await dead_letters.select_dead_after(tx, 0)
        assert len(await dead_letters.replay(tx, found, wait=True)) == 1
    for expected in (1, 2, 5):
        (one,) = await leased(world)
        assert one.event.id == expected
        await settled(world, (one, DeliveryOutcome()))
    assert await statuses(box) == ["delivered"] * 5


async def test_a_lost_page_does_not_block_the_next_outage(world: World) -> None:
    box = OutboxWorld(world)
    channel = await box.channel()
    monitor = uuid4()
    for _ in range(2):
        await enqueue_outage(world, channel.id, monitor, uuid4())
    for _ in range(MOST):
        assert [d.event.id for d in await leased(world)] == [1]
        world.now = Instant(world.now + LEASE_US)
    assert (await claimed(world)).lost == 1
    assert [d.event.id for d in await leased(world)] == [2]


async def test_an_event_written_while_a_page_dies_waits_only_in_its_own_outage(
    world: World,
) -> None:
    """It waits in the same outage and not in the next outage."""
    box = OutboxWorld(world)
    channel = await box.channel()
    for is_same in (True, False):
        monitor, outage = uuid4(), uuid4()
        await enqueue_outage(world, channel.id, monitor, outage)
        (one,) = await leased(world)
        async with world.pool.transaction("wear") as tx:
            await tx.execute("update outbox set attempts = 99 where id = %(id)s", id=one.event.id)
        async with _settling(world, one, FAILED) as nursery:
            latter = outage if is_same else uuid4()
            nursery.start_soon(enqueue_outage, world, channel.id, monitor, latter)
        assert (await box.events())[-1].ready != is_same
        world.now = Instant(world.now + 3600 * SECOND)


async def test_an_attempt_without_an_outcome_counts_and_the_last_one_is_lost(
    world: World,
) -> None:
    box = OutboxWorld(world)
    await box.webhook()
    await box.enqueue(uuid4(), 1)
    for _ in range(MOST):
        assert len(await leased(world)) == 1
        world.now = Instant(world.now + LEASE_US)
    claim = await claimed(world)
    assert (len(claim.deliveries), claim.lost) == (0, 1)
    (event,) = await box.events()
    assert (event.status, event.last_error, event.attempts) == ("dead", "lease_lost", MOST)


async def test_leases_stay_within_the_limits_and_pages_come_first(world: World) -> None:
    box = OutboxWorld(world)
    hooks = [await box.webhook() for _ in range(8)]
    channels = [await box.channel() for _ in range(5)]
    for _ in range(7):
        await box.enqueue(uuid4(), 1)
        await box.paged(uuid4(), "down", *(row.id for row in channels))
    first = await leased(world)
    pages = [d for d in first if d.channel is not None]
    assert len(first) == 50
    assert len(pages) == 25
    assert all(d.channel is not None for d in first[:25])
    # Another process: the limit of five per destination is for all processes together.
    second = await leased(world)
    by_hook = {row.id: 0 for row in hooks}
    for d in [*first, *second]:
        if d.webhook is not None:
            by_hook[d.webhook.id] += 1
    assert all(count <= 5 for count in by_hook.values())
    assert len(second) == 15
    assert not [d for d in second if d.channel is not None]
    # At most 30 webhook deliveries, although slots are free.
    world.now = Instant(world.now + LEASE_US)
    async with world.pool.transaction("quiet") as tx:
        await tx.execute("update notification_channels set enabled = false")
    assert len(await leased(world)) == 30
    page, hook = (InFlight(is_page, False, False) for is_page in (True, False))
    assert len(await leased(world, [page] * 7 + [hook] * 28)) == 2
    assert not await leased(world, [page] * 50)


async def test_a_destination_without_an_answer_gets_no_further_events(world: World) -> None:
    box = OutboxWorld(world)
    await box.webhook()
    await box.enqueue(uuid4(), 1)
    (one,) = await leased(world)
    for wait, count in ((SLOW_AFTER_US - 1, 1), (SLOW_AFTER_US + SECOND, 0)):
        world.now = Instant(START + wait)
        await box.enqueue(uuid4(), 1)
        found = await leased(world)
        assert len(found) == count
        await settled(world, *((d, DeliveryOutcome()) for d in found))
    await settled(world, (one, DeliveryOutcome()))
    assert len(await leased(world)) == 1


async def test_failing_destinations_do_not_delay_healthy_ones(world: World) -> None:
    """With more than 50 failing destinations, whose events have been due for longer."""
    box = OutboxWorld(world)
    for _ in range(55):
        row = await box.channel()
        await box.paged(uuid4(), "down", row.id)
    async with world.pool.transaction("fail") as tx:
        await tx.execute("update destinations set failures = 3")
    world.now = Instant(world.now + SECOND)
    well = await box.channel()
    await box.paged(uuid4(), "down", well.id)
    await box.webhook()
    await box.enqueue(uuid4(), 1)
    beside = [InFlight(is_page=True, is_failing=True, is_slow=True)] * 48
    found = await leased(world, beside)
    assert [d.is_failing for d in found] == [True, True, False, False]
    assert [d.is_page for d in found] == [True, True, True, False]


async def test_a_claim_has_at_most_fifty_events(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200 destinations are due, and half of them failed before."""
    monkeypatch.setattr(edit_channels, "CHANNELS_OF_PROJECT_MOST", 200)
    box = OutboxWorld(world)
    channels = [await box.channel() for _ in range(200)]
    await box.paged(uuid4(), "down", *(row.id for row in channels))
    async with world.pool.transaction("fail") as tx:
        await tx.execute("update destinations set failures = 3 where id %% 2 = 0")
    held: list[InFlight] = []
    claims = []
    while found := await leased(world, held):
        claims.append([d.is_failing for d in found])
        held += [InFlight(d.is_page, d.is_failing, is_slow=False) for d in found]
    assert claims == [[False] * 50, [True] * 50]


async def test_a_failing_destination_pauses_and_is_tried_with_one_event(world: World) -> None:
    box = OutboxWorld(world)
    await box.webhook()
    for _ in range(8):
        await box.enqueue(uuid4(), 1)
    first = await leased(world)
    assert len(first) == 5
    await settled(world, *((d, FAILED) for d in first[:3]))
    await settled(world, *((d, FAILED) for d in first[3:]))
    standing = "select failures, backoff_until from destinations"
    # Half of five seconds by the given random number. Further failures of the batch add no delay.
    assert await world.rows(standing) == [(1, world.now + 2_500_000)]
    assert not await leased(world)
    world.now = Instant(world.now + 2_500_000)
    (only,) = await leased(world)
    assert not await leased(world)
    await settled(world, (only, FAILED))
    assert await world.rows(standing) == [(2, world.now + 5_000_000)]
    world.now = Instant(world.now + 5_000_000)
    (only,) = await leased(world)
    await settled(world, (only, DeliveryOutcome()))
    assert await world.rows(standing) == [(0, None)]
    assert len(await leased(world)) == 5


async def test_a_retry_after_of_a_destination_is_respected(world: World) -> None:
    box = OutboxWorld(world)
    await box.webhook()
    await box.enqueue(uuid4(), 1)
    await box.enqueue(uuid4(), 1)
    first = await leased(world)
    slow = DeliveryOutcome("http_status 429", retry_after_us=600 * SECOND)
    await settled(world, *((d, slow) for d in first))
    world.now = Instant(world.now + 600 * SECOND - 1)
    assert not await leased(world)
    world.now = Instant(world.now + 1)
    assert len(await leased(world)) == 1


async def test_our_own_fault_makes_no_destination_rest(world: World) -> None:
    box = OutboxWorld(world)
    await box.webhook()
    await box.enqueue(uuid4(), 1)
    await box.enqueue(uuid4(), 1)
    first, second = await leased(world)
    await settled(
        world, (first, DeliveryOutcome("bad_payload", is_ours=True)), (second, DeliveryOutcome())
    )
    assert await world.rows("select failures from destinations") == [(0,)]
    assert [e.last_error for e in await box.events()] == ["bad_payload", ""]


async def test_events_for_a_disabled_destination_wait_without_an_attempt(world: World) -> None:
    box = OutboxWorld(world)
    hook = await box.webhook()
    await box.enqueue(uuid4(), 1)
    for enabled, count in ((False, 0), (True, 1)):
        async with world.pool.transaction("turn") as tx:
            await enable_webhook(tx, box.admin, hook.uid, enabled=enabled)
        found = await leased(world)
        assert [d.event.attempts for d in found] == [1] * count


async def test_the_first_thread_of_a_conversation_is_the_one_that_is_kept(world: World) -> None:
    box = OutboxWorld(world)
    channel = await box.channel()
    stream = uuid4()
    for title in ("down", "still down", "up"):
        await box.paged(stream, title, channel.id)
    threads = []
    for name in ("first", "second", ""):
        (one,) = await leased(world)
        threads.append(one.event.thread_external_id)
        await settled(world, (one, DeliveryOutcome(external_id=name)))
    assert threads == ["", "first", "first"]


async def test_a_settlement_sees_a_follower_that_is_written_concurrently(world: World) -> None:
    """The writer locks the first event. The settlement skips it, tries again, and then sees the
    follower."""
    box = OutboxWorld(world)
    await box.webhook()
    stream = uuid4()
    await box.enqueue(stream, 1)
    (one,) = await leased(world)
    async with world.pool.transaction("tell") as tx:
        await box.enqueue_in(tx, stream, 2)
        tried: list[Settled] = []

        async def settle() -> None:
            tried.append(await settled(world, (one, DeliveryOutcome())))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(settle)
    assert tried == [Settled(busy={one.event.key})]
    assert [e.ready for e in await box.events()] == [True, False]
    await settled(world, (one, DeliveryOutcome()))
    assert [e.ready for e in await box.events()] == [True, True]


async def test_a_follower_written_while_the_first_event_is_settled_is_ready(world: World) -> None:
    box = OutboxWorld(world)
    await box.webhook()
    stream = uuid4()
    await box.enqueue(stream, 1)
    (one,) = await leased(world)
    async with _settling(world, one) as nursery:
        nursery.start_soon(box.enqueue, stream, 2)
    assert [(e.status, e.ready) for e in await box.events()] == [
        ("delivered", True),
        ("pending", True),
    ]


async def test_a_follower_written_while_the_first_of_several_is_settled_waits(
    world: World,
) -> None:
    box = OutboxWorld(world)
    await box.webhook()
    stream = uuid4()
    await box.enqueue(stream, 1)
    await box.enqueue(stream, 2)
    (one,) = await leased(world)
    async with _settling(world, one) as nursery:
        nursery.start_soon(box.enqueue, stream, 3)
    assert [(e.status, e.ready) for e in await box.events()] == [
        ("delivered", True),
        ("pending", True),
        ("pending", False),
    ]


async def test_a_webhook_that_is_deleted_while_its_events_are_settled_waits(world: World) -> None:
    box = OutboxWorld(world)
    hook = await box.webhook()
    stream = uuid4()
    for seq in (1, 2, 3):
        await box.enqueue(stream, seq)
    (one,) = await leased(world)

    async def delete() -> None:
        async with world.pool.transaction("delete") as tx:
            await delete_webhook(tx, box.admin, hook.uid)

    async with _settling(world, one) as nursery:
        nursery.start_soon(delete)
    assert not await box.events()
    assert await settled(world, (one, DeliveryOutcome())) == Settled()


@asynccontextmanager
async def _settling(
    world: World, one: LeasedDelivery, outcome: DeliveryOutcome = DELIVERED
) -> AsyncIterator[trio.Nursery]:
    """Begins what is started once the settlement is written, and commits when that waits."""
    written = trio.Event()

    async def settle() -> None:
        async with world.pool.transaction("settle_deliveries") as tx:
            await settle_deliveries(tx, [(one, outcome)], MOST, lambda: 0.5)
            written.set()
            await until_blocked(world.pool)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(settle)
        await written.wait()
        yield nursery


async def test_tellers_settlers_and_leasers_of_the_same_streams_never_deadlock(
    world: World,
) -> None:
    """Many tellers of few streams to many destinations, against batches that settle across them."""
    box = OutboxWorld(world)
    for _ in range(6):
        await box.webhook()
    locks = {uuid4(): trio.Lock() for _ in range(3)}

    async def writer(stream: UUID) -> None:
        for seq in range(1, 13):
            async with locks[stream], world.pool.transaction("tell") as tx:
                await box.enqueue_in(tx, stream, seq)

    done: set[tuple[int, int]] = set()

    async def leaser() -> None:
        busy: list[tuple[LeasedDelivery, DeliveryOutcome]] = []
        while len(done) < 3 * 12 * 6:
            claim = await leased(world)
            ended = [*busy, *((one, DeliveryOutcome()) for one in claim)]
            found = await settled(world, *ended) if ended else Settled()
            done.update(found.became)
            busy = [(d, o) for d, o in ended if (d.event.org, d.event.id) in found.busy]
            await trio.sleep(0.002)

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for stream in locks:
                nursery.start_soon(writer, stream)
            for _ in range(3):
                nursery.start_soon(leaser)
    assert len(done) == 3 * 12 * 6
    assert set(await statuses(box)) == {"delivered"}
    counted = "select deadlocks from pg_stat_database where datname = current_database()"
    assert await world.rows(counted) == [(0,)]


async def test_the_limit_of_a_destination_holds_with_concurrent_leasers(world: World) -> None:
    """A leaser that finds the destination locked takes no event, and later sees the taken ones."""
    box = OutboxWorld(world)
    await box.webhook()
    for _ in range(9):
        await box.enqueue(uuid4(), 1)
    found: list[Sequence[LeasedDelivery]] = []

    async def lease(tx: Tx) -> None:
        found.append((await lease_deliveries(tx, ROOMS, MOST)).deliveries)

    async with world.pool.transaction("lease_deliveries") as tx:
        await lease(tx)

        async def beside() -> None:
            found.append(await leased(world))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(beside)
    found.append(await leased(world))
    assert [len(one) for one in found] == [5, 0, 0]
