"""A failed attempt of a failing destination counts for each event that is due, by a model."""

from dataclasses import dataclass
from random import Random
from uuid import UUID, uuid4

import pytest

from leadline.storage.core.instant import HOUR, MINUTE, SECOND, Instant
from leadline.storage.notifications.rules.delivery_retry import DeliveryOutcome, rooms_beside
from leadline.storage.notifications.rules.notification import NOTICE_EVENT, Topic
from leadline.storage.notifications.tables import outbox
from leadline.storage.notifications.transactions.lease_deliveries import (
    LeasedDelivery,
    lease_deliveries,
)
from leadline.storage.notifications.transactions.settle_deliveries import settle_deliveries
from leadline.storage.status_pages.rules.subscription import SubscriberKind
from tests.support.run import effort
from tests.support.worlds.outbox_world import OutboxWorld
from tests.support.worlds.subscribing import readers_of
from tests.support.worlds.world import World

CHANCE = 0.5
REST_LONGEST = 5 * MINUTE


def wait_of(failed: int, longest: int) -> int:
    """By doubling one after the other, as the documents describe it."""
    wait = 5 * SECOND
    for _ in range(failed - 1):
        wait = min(2 * wait, longest)
    return int(wait * CHANCE)


@dataclass
class Row:
    stream: object
    due: int
    status: str = "pending"
    attempts: int = 0


class Model:
    """The documented rule, row by row, for one destination.

    `dropped` is what an event becomes after its last attempt. Of a subscriber's webhook it is
    delivered, which lets the next event of its stream go.
    """

    def __init__(self, rows: dict[int, Row], most: int, dropped: str = "dead") -> None:
        self.rows = rows
        self.most = most
        self.dropped = dropped
        self.failures = 0
        self.rests_until = 0

    def is_ready(self, number: int) -> bool:
        row = self.rows[number]
        before = [other for n, other in self.rows.items() if n < number]
        return all(o.status == "delivered" for o in before if o.stream == row.stream)

    def due(self, now: int) -> list[int]:
        return [
            number
            for number, row in self.rows.items()
            if row.status == "pending" and row.due <= now and self.is_ready(number)
        ]

    def fail(self, number: int, now: int) -> None:
        row = self.rows[number]
        row.attempts += 1
        row.status = self.dropped if row.attempts >= self.most else "pending"
        row.due = now if row.status != "pending" else now + wait_of(row.attempts, HOUR)

    def settle(self, sent: dict[int, bool], now: int) -> None:
        """Settles the events in `sent`, which maps each event to True if it was delivered."""
        # Computed before the settlement: an event that becomes ready by it counts at the next
        # attempt.
        waiting = [number for number in self.due(now) if number not in sent]
        was_failing = self.failures > 0
        for number, is_delivered in sent.items():
            if is_delivered:
                row = self.rows[number]
                row.status, row.due, row.attempts = "delivered", now, row.attempts + 1
            else:
                self.fail(number, now)
        if not any(sent.values()):
            if was_failing:
                for number in waiting:
                    self.fail(number, now)
            self.failures += 1
            self.rests_until = now + wait_of(self.failures, REST_LONGEST)
            return
        if self.failures > 1:
            for number, row in self.rows.items():
                if row.status == "pending" and self.is_ready(number):
                    row.due = min(row.due, now)
        self.failures, self.rests_until = 0, 0

    def next_instant(self, now: int) -> int:
        pending = [
            row.due for n, row in self.rows.items() if row.status == "pending" and self.is_ready(n)
        ]
        return max(min(pending, default=now), self.rests_until, now + 1)


async def lease(world: World, most: int) -> list[LeasedDelivery]:
    async with world.pool.transaction("lease_deliveries") as tx:
        return list((await lease_deliveries(tx, rooms_beside(()), most)).deliveries)


async def settle(
    world: World, ended: list[tuple[LeasedDelivery, DeliveryOutcome]], most: int
) -> None:
    async with world.pool.transaction("settle_deliveries") as tx:
        await settle_deliveries(tx, ended, most, lambda: CHANCE)


async def rows_of(box: OutboxWorld) -> dict[int, Row]:
    return {e.id: Row(e.stream, e.due_at, e.status, e.attempts) for e in await box.events()}


DESTINATIONS = ("webhook", "subscribed mail", "subscribed webhook")


async def subscriber(world: World, kind: SubscriberKind) -> int:
    """The destination of a confirmed subscriber."""
    readers = await readers_of(world)
    address = "ada@example.com" if kind == "mail" else "https://hook.example.com/"
    await readers.ask(address, kind)
    await readers.rows("update subscribers set confirmed_at = created_at returning id")
    ((found,),) = await readers.rows("delete from outbox returning destination")
    return int(found)


async def notify(world: World, stream: UUID, destination: int) -> None:
    """Writes a notice of an incident for a subscriber, as a page passes it on."""
    async with world.pool.transaction("notify") as tx:
        await outbox.lock_shared_destinations(tx, world.org, [destination])
        await outbox.insert_events(
            tx,
            world.org,
            world.project,
            Topic.INCIDENT,
            stream,
            stream,
            NOTICE_EVENT,
            "{}",
            [destination],
        )


async def begin(
    world: World, random: Random, streams: int, to: str = "webhook"
) -> tuple[OutboxWorld, Model, int]:
    box, most, destination = OutboxWorld(world), random.randint(2, 6), None
    if to == "webhook":
        await box.webhook()
    else:
        kind = SubscriberKind(to.removeprefix("subscribed "))
        destination = await subscriber(world, kind)
    names = [uuid4() for _ in range(streams)]
    for seq in range(random.randint(streams, 2 * streams)):
        stream = names[seq % streams] if seq < streams else random.choice(names)
        if destination is None:
            await box.enqueue(stream, seq)
        else:
            await notify(world, stream, destination)
    dropped = "delivered" if to == "subscribed webhook" else "dead"
    return box, Model(await rows_of(box), most, dropped), most


@pytest.mark.parametrize("to", DESTINATIONS)
@pytest.mark.parametrize("seed", effort.varied(range(4), range(60)))
async def test_every_event_becomes_what_the_rule_makes_of_it(
    world: World, seed: int, to: str
) -> None:
    random = Random(seed)
    box, model, most = await begin(world, random, random.randint(1, 9), to)
    is_up = False
    for _ in range(60):
        if random.random() < 0.15:
            is_up = not is_up
        sent = await lease(world, most)
        numbers = {one.event.id for one in sent}
        allowed = [] if model.rests_until > world.now else model.due(world.now)
        assert numbers <= set(allowed)
        assert len(numbers) == min(len(allowed), 1 if model.failures else 5)
        if sent:
            outcomes = {n: is_up or random.random() < 0.1 for n in numbers}
            model.settle(outcomes, world.now)
            failed = DeliveryOutcome("http_status 503")
            ended = [(one, DeliveryOutcome() if outcomes[one.event.id] else failed) for one in sent]
            await settle(world, ended, most)
        assert await rows_of(box) == model.rows
        if all(row.status != "pending" for row in model.rows.values()):
            return
        world.now = Instant(model.next_instant(world.now) + random.choice((0, 0, MINUTE)))


@pytest.mark.parametrize("waiting", [1, 12])
async def test_each_waiting_event_becomes_dead_after_24_attempts_in_seven_hours(
    world: World, waiting: int
) -> None:
    box = OutboxWorld(world)
    await box.webhook()
    for _ in range(waiting):
        await box.enqueue(uuid4(), 1)
    model, began = Model(await rows_of(box), 24), world.now
    while sent := await lease(world, 24):
        await settle(world, [(one, DeliveryOutcome("timeout")) for one in sent], 24)
        model.settle({one.event.id: False for one in sent}, world.now)
        world.now = Instant(model.next_instant(world.now))
    events = await box.events()
    assert {(event.status, event.attempts) for event in events} == {("dead", 24)}
    hours = [(event.due_at - began) / HOUR for event in events]
    assert min(hours) > 6.5
    assert max(hours) < 8.5


async def test_events_for_a_destination_that_recovers_are_due_immediately(world: World) -> None:
    box = OutboxWorld(world)
    await box.webhook()
    for _ in range(20):
        await box.enqueue(uuid4(), 1)
    model = Model(await rows_of(box), 24)
    for _ in range(12):
        sent = await lease(world, 24)
        await settle(world, [(one, DeliveryOutcome("timeout")) for one in sent], 24)
        model.settle({one.event.id: False for one in sent}, world.now)
        world.now = Instant(model.next_instant(world.now))
    delivered = 0
    while sent := await lease(world, 24):
        await settle(world, [(one, DeliveryOutcome()) for one in sent], 24)
        delivered += len(sent)
    assert delivered == 20


async def test_notices_that_a_visitors_webhook_refuses_are_dropped(world: World) -> None:
    """Two incidents wait for the webhook of a subscriber, which does not answer."""
    box, destination = OutboxWorld(world), await subscriber(world, SubscriberKind.WEBHOOK)
    for _ in range(2):
        await notify(world, uuid4(), destination)
    model = Model(await rows_of(box), 24, "delivered")
    while sent := await lease(world, 24):
        await settle(world, [(one, DeliveryOutcome("timeout")) for one in sent], 24)
        model.settle({one.event.id: False for one in sent}, world.now)
        assert await rows_of(box) == model.rows
        world.now = Instant(model.next_instant(world.now))
    assert {(e.status, e.attempts) for e in await box.events()} == {("delivered", 24)}


@pytest.mark.parametrize("kind", SubscriberKind)
async def test_a_lost_lease_drops_the_notice_to_a_visitors_webhook(
    world: World, kind: SubscriberKind
) -> None:
    """A dropped notice cannot be replayed, so the later events of the incident are sent."""
    box, destination, stream = OutboxWorld(world), await subscriber(world, kind), uuid4()
    for _ in range(2):
        await notify(world, stream, destination)
    assert len(await lease(world, 1)) == 1
    world.now = Instant(world.now + HOUR)
    async with world.pool.transaction("lease_deliveries") as tx:
        lost = (await lease_deliveries(tx, rooms_beside(()), 1)).lost
    first, second = await box.events()
    assert (first.last_error, first.lease) == ("lease_lost", None)
    is_kept = kind is SubscriberKind.MAIL
    assert (first.status, second.ready, lost) == (
        ("dead", False, 1) if is_kept else ("delivered", True, 0)
    )
