"""The outbox leaser delivers events signed and in order, and a failing destination delays no
other."""

import base64
import hashlib
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast
from uuid import uuid4

import pytest
import trio
import trio.testing
from standardwebhooks import Webhook

from leadline.daemon.loops import delivery_sender
from leadline.daemon.loops import outbox_leaser as leaser_module
from leadline.daemon.loops.janitor import DELIVERED_KEPT_US, Janitor
from leadline.daemon.loops.outbox_leaser import BACKLOG_FRESH_US
from leadline.daemon.runtime import limits
from leadline.storage.core.instant import DAY, HOUR, SECOND, Instant
from leadline.storage.core.refusal import Unavailable
from leadline.storage.engine.keyring import Keyring
from leadline.storage.engine.pools import Pool, Tx
from leadline.storage.notifications.rules.delivery_retry import DeliveryOutcome
from leadline.storage.notifications.transactions.edit_channels import create_channel
from leadline.storage.notifications.transactions.edit_webhooks import place_of
from leadline.storage.notifications.transactions.settle_deliveries import (
    Settled,
    settle_deliveries,
)
from tests.support.peers.servers import answer
from tests.support.worlds.leasing import (
    Arrival,
    hang,
    leaser_of,
    leasing,
    receiving,
    refuse,
    take,
    until_settled,
)
from tests.support.worlds.local_failures import FlakyPool
from tests.support.worlds.outbox_world import SECRET, OutboxWorld
from tests.support.worlds.world import World


async def test_a_webhook_gets_the_document_with_two_signatures(world: World) -> None:
    box = OutboxWorld(world)
    stream = uuid4()
    async with receiving() as receiver:
        await box.webhook(receiver.url("/hook"))
        await box.enqueue(stream, 1, "incident.opened")
        async with leasing(box):
            (got,) = await receiver.until(1)
            await until_settled(box, "delivered")
    (event,) = await box.events()
    # `verify` raises if the signature does not match the body or the timestamp is not the current
    # time.
    assert Webhook(SECRET).verify(got.body, got.headers) == {"event": "incident.opened", "seq": 1}
    assert got.headers["webhook-id"] == str(event.uid)
    assert got.headers["x-leadline-event"] == "incident.opened"
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    whole = hmac.new(key, got.body, hashlib.sha256).hexdigest()
    assert got.headers["x-leadline-signature"] == f"sha256={whole}"


async def test_a_page_reaches_its_channel_with_a_link_and_the_conversations_key(
    world: World,
) -> None:
    box = OutboxWorld(world)
    stream = uuid4()
    async with receiving() as receiver:
        channel = await box.channel(receiver.url("/page"))
        await box.paged(stream, "Shop is down", channel.id)
        async with leasing(box):
            (got,) = await receiver.until(1)
            await until_settled(box, "delivered")
    (event,) = await box.events()
    page = got.document
    assert (page["title"], page["status"], page["severity"]) == ("Shop is down", "down", "major")
    assert page["link"] == "https://up.example.com/incidents/1"
    assert (page["id"], page["key"]) == (str(event.uid), str(stream))


async def test_tries_have_one_id_and_end_when_it_is_taken(world: World) -> None:
    box = OutboxWorld(world)

    async def third_time(arrival: Arrival, stream: trio.SocketStream) -> None:
        await (take if len(receiver.got) > 2 else refuse)(arrival, stream)

    async with receiving() as receiver:
        receiver.otherwise = third_time
        await box.webhook(receiver.url())
        await box.enqueue(uuid4(), 1)
        async with leasing(box) as leaser:
            for count in (1, 2, 3):
                await receiver.until(count)
                await _until_tried(box, count)
                world.now = Instant(world.now + HOUR)
            await until_settled(box, "delivered")
    assert len({got.headers["webhook-id"] for got in receiver.got}) == 1
    assert leaser.counts == {
        ("incident_webhook", "failed"): 2,
        ("incident_webhook", "delivered"): 1,
    }


async def test_a_delivery_waits_for_a_permit_of_the_leaser(world: World) -> None:
    box, permits, released = OutboxWorld(world), limits.sending(1), trio.Event()

    async def answers_later(arrival: Arrival, stream: trio.SocketStream) -> None:
        await released.wait()
        await take(arrival, stream)

    async with receiving() as receiver:
        receiver.otherwise = answers_later
        for path in ("/one", "/other"):
            await box.webhook(receiver.url(path))
        await box.enqueue(uuid4(), 1)
        async with leasing(box, permits=permits):
            await receiver.until(1)
            with trio.fail_after(20):
                while permits.statistics().tasks_waiting < 1:  # noqa: ASYNC110 - it sets no event
                    await trio.sleep(0.01)
            assert len(receiver.got) == 1
            released.set()
            await until_settled(box, "delivered")
    assert {got.path for got in receiver.got} == {"/one", "/other"}


async def test_a_dead_event_blocks_its_stream_and_no_other_destination(
    world: World,
) -> None:
    box = OutboxWorld(world)
    one, other = uuid4(), uuid4()
    async with receiving() as receiver:
        receiver.behaves["/dead"] = refuse
        await box.webhook(receiver.url("/dead"))
        await box.webhook(receiver.url("/well"))
        for seq in (1, 2, 3):
            await box.enqueue(one, seq)
        await box.enqueue(other, 1)
        async with leasing(box, max_attempts=1):
            await receiver.until(4, "/well")
            await receiver.until(1, "/dead")
            # Settled too: by the clock that is set forward their leases would have ended.
            await _until_idle(box)
            world.now = Instant(world.now + HOUR)
            await receiver.until(2, "/dead")
            await _until(box, {"dead": 2, "pending": 2, "delivered": 4})
            world.now = Instant(world.now + HOUR)
            await box.enqueue(uuid4(), 1)
            await receiver.until(5, "/well")
            await receiver.until(3, "/dead")
    seqs = [got.document["seq"] for got in receiver.at("/dead")]
    assert seqs == [1, 1, 1]


async def test_pages_wait_for_no_webhook_that_hangs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaser_module, "SLOW_AFTER_US", HOUR)
    box = OutboxWorld(world)
    async with receiving() as receiver:
        receiver.behaves["/hangs"] = hang
        for _ in range(12):
            await box.webhook(receiver.url("/hangs"))
        channel = await box.channel(receiver.url("/page"))
        for _ in range(5):
            await box.enqueue(uuid4(), 1)
        async with leasing(box):
            await receiver.until(30, "/hangs")
            for count in range(1, 8):
                await box.paged(uuid4(), "down", channel.id)
                await receiver.until(count, "/page")
        assert len(receiver.at("/hangs")) == 30


async def test_pages_wait_for_no_channels_that_hang(world: World) -> None:
    """More channels than one process can lease, all of them healthy before."""
    box = OutboxWorld(world)
    async with receiving() as receiver:
        receiver.behaves["/hangs"] = hang
        for _ in range(60):
            channel = await box.channel(receiver.url("/hangs"))
            for _ in range(2):
                await box.paged(uuid4(), "down", channel.id)
        well = await box.channel(receiver.url("/page"))
        async with leasing(box):
            await receiver.until(50, "/hangs")
            with trio.fail_after(8):
                for count in range(1, 4):
                    await box.paged(uuid4(), "down", well.id)
                    await receiver.until(count, "/page")


async def test_an_invalid_secret_sends_no_unsigned_event(world: World) -> None:
    box = OutboxWorld(world)
    async with receiving() as receiver:
        hook = await box.webhook(receiver.url("/unsigned"))
        sealed = world.keyring.seal(b"whsec_broken", place_of(hook.uid))
        async with world.pool.transaction("break") as tx:
            await tx.execute("update webhooks set secret_ciphertext = %(sealed)s", sealed=sealed)
        await box.webhook(receiver.url("/signed"))
        await box.enqueue(uuid4(), 1)
        async with leasing(box):
            await receiver.until(1, "/signed")
            await _until_tried(box, 1)
    events = await box.events()
    assert [(e.status, e.last_error) for e in events] == [
        ("pending", "invalid_secret"),
        ("delivered", ""),
    ]
    assert not receiver.at("/unsigned")


async def test_an_undecryptable_secret_fails_only_its_own_delivery(world: World) -> None:
    box = OutboxWorld(world)
    async with receiving() as receiver:
        world.keyring = Keyring(b"o" * 32)
        await box.webhook(receiver.url("/closed"))
        world.keyring = Keyring(b"k" * 32)
        await box.webhook(receiver.url("/open"))
        await box.enqueue(uuid4(), 1)
        async with leasing(box):
            await receiver.until(1, "/open")
            await _until_tried(box, 1)
    events = await box.events()
    assert [(e.status, e.last_error) for e in events] == [
        ("pending", "decrypt_failed"),
        ("delivered", ""),
    ]
    assert not receiver.at("/closed")


async def test_a_page_that_cannot_be_read_fails_alone(world: World) -> None:
    box = OutboxWorld(world)
    async with receiving() as receiver:
        channel = await box.channel(receiver.url("/page"))
        await box.paged(uuid4(), "first", channel.id)
        await box.paged(uuid4(), "second", channel.id)
        async with world.pool.transaction("spoil") as tx:
            await tx.execute("""update outbox set payload = '{"event": 1}' where id = 1""")
        async with leasing(box, max_attempts=1):
            await until_settled(box, "dead", "delivered")
    assert [(e.status, e.last_error) for e in await box.events()] == [
        ("dead", "bad_payload"),
        ("delivered", ""),
    ]
    assert await world.rows("select failures from destinations") == [(0,)]


async def test_a_settlement_that_the_database_refuses_does_not_affect_the_others(
    world: World,
) -> None:
    """A constraint represents any reason for which a database refuses a row."""
    box = OutboxWorld(world)
    async with receiving() as receiver:
        hook = await box.webhook(receiver.url())
        for seq in (1, 2, 3):
            await box.enqueue(uuid4(), seq)
        async with world.pool.transaction("spoil") as tx:
            await tx.execute(
                "alter table outbox add constraint odd check (id <> 2 or status <> 'delivered')"
            )
        async with leasing(box):
            await receiver.until(3)
            await _until(box, {"pending": 1, "delivered": 2})
    assert hook.enabled
    assert [e.status for e in await box.events()] == ["delivered", "pending", "delivered"]


async def test_a_settlement_that_raises_for_one_ends_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event is sent again after its lease, and becomes a dead letter after its last attempt."""
    box = OutboxWorld(world)

    async def settle(tx: Tx, ended: Any, *given: Any) -> Settled:
        if any(delivery.event.id == 2 for delivery, _ in ended):
            raise KeyError("a fault of ours")
        return await settle_deliveries(tx, ended, *given)

    monkeypatch.setattr(leaser_module, "settle_deliveries", settle)
    async with receiving() as receiver:
        await box.webhook(receiver.url())
        for seq in (1, 2, 3):
            await box.enqueue(uuid4(), seq)
        async with leasing(box, max_attempts=2):
            await receiver.until(3)
            await _until(box, {"pending": 1, "delivered": 2})
            for _ in range(2):
                world.now = Instant(world.now + HOUR)
                await receiver.until(4)
            await _until(box, {"dead": 1, "delivered": 2})
    assert len(receiver.got) == 4
    assert (await box.events())[1].last_error == "lease_lost"


async def test_a_delivery_that_raises_ends_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = OutboxWorld(world)

    async def carry(delivery: Any, *given: Any) -> DeliveryOutcome:
        if delivery.event.id == 2:
            raise KeyError("a fault of ours")
        return await delivery_sender.carry(delivery, *given)

    monkeypatch.setattr(leaser_module, "carry", carry)
    async with receiving() as receiver:
        await box.webhook(receiver.url())
        for seq in (1, 2, 3):
            await box.enqueue(uuid4(), seq)
        async with leasing(box, max_attempts=1):
            await until_settled(box, "delivered", "dead")
    assert [(e.status, e.last_error) for e in await box.events()] == [
        ("delivered", ""),
        ("dead", "internal_error"),
        ("delivered", ""),
    ]


@pytest.mark.parametrize("when", ["fail_before", "fail_after"])
async def test_a_delivery_during_a_database_outage_is_settled_and_not_repeated(
    world: World, when: str
) -> None:
    box = OutboxWorld(world)
    flaky = FlakyPool(world.pool)
    leaser = leaser_of(cast("Pool", flaky), world.keyring)
    async with receiving() as receiver, trio.open_nursery() as nursery:
        await box.webhook(receiver.url())
        await box.enqueue(uuid4(), 1)
        await nursery.start(leaser.run)
        await leaser.pass_once()
        await receiver.until(1)
        await leaser.wake.wait(5)
        getattr(flaky, when).add("settle_deliveries")
        for _ in range(2):
            with pytest.raises(Unavailable):
                await leaser.pass_once()
        getattr(flaky, when).clear()
        await leaser.pass_once()
        leaser.close()
    assert [e.status for e in await box.events()] == ["delivered"]
    assert len(receiver.got) == 1


async def test_an_expired_lease_does_not_overwrite_a_later_settlement(
    world: World,
) -> None:
    box = OutboxWorld(world)
    slow, quick = (leaser_of(world.pool, world.keyring) for _ in range(2))
    async with receiving() as receiver, trio.open_nursery() as nursery:
        receiver.otherwise = refuse
        await box.webhook(receiver.url())
        await box.enqueue(uuid4(), 1)
        for leaser in (slow, quick):
            await nursery.start(leaser.run)
        await slow.pass_once()
        await receiver.until(1)
        await slow.wake.wait(5)
        # The leaser has the response, but has not settled it when the lease ends.
        world.now = Instant(world.now + HOUR)
        receiver.otherwise = take
        await quick.pass_once()
        await receiver.until(2)
        await quick.wake.wait(5)
        await slow.pass_once()
        assert [e.status for e in await box.events()] == ["pending"]
        assert not slow.counts
        await quick.pass_once()
        slow.close()
        quick.close()
    assert [(e.status, e.attempts) for e in await box.events()] == [("delivered", 2)]
    assert await world.rows("select failures from destinations") == [(0,)]


async def test_a_send_ends_with_the_lease_that_allowed_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaser_module, "LEASE_US", 200_000)
    box = OutboxWorld(world)
    async with receiving() as receiver:
        receiver.otherwise = hang
        await box.webhook(receiver.url())
        await box.enqueue(uuid4(), 1)
        with trio.fail_after(30):
            async with leasing(box):
                await _until_tried(box, 1)
    assert [e.last_error for e in await box.events()] == ["timeout"]


async def test_a_stop_waits_for_deliveries_in_flight_and_settles_them(world: World) -> None:
    box = OutboxWorld(world)
    go = trio.Event()

    async def slowly(arrival: Arrival, stream: trio.SocketStream) -> None:
        await go.wait()
        await take(arrival, stream)

    async with receiving() as receiver:
        receiver.otherwise = slowly
        await box.webhook(receiver.url())
        await box.enqueue(uuid4(), 1)
        leaser = leaser_of(world.pool, world.keyring)
        async with trio.open_nursery() as nursery:
            await nursery.start(leaser.run)
            await leaser.pass_once()
            await receiver.until(1)
            leaser.close()
            assert await leaser.pass_once() == 0
            go.set()
    assert [e.status for e in await box.events()] == ["delivered"]


async def test_a_stop_that_cannot_wait_leaves_the_lease(world: World) -> None:
    box = OutboxWorld(world)
    async with receiving() as receiver:
        receiver.behaves["/hangs"] = hang
        await box.webhook(receiver.url("/hangs"))
        await box.webhook(receiver.url("/takes"))
        await box.enqueue(uuid4(), 1)
        leaser = leaser_of(world.pool, world.keyring)
        async with trio.open_nursery() as nursery:
            await nursery.start(leaser.run)
            await leaser.pass_once()
            await receiver.until(2)
            # Of the two one is answered; it is settled in the end.
            await leaser.wake.wait(5)
            nursery.cancel_scope.cancel()
    hanging, taken = await box.events()
    assert (hanging.status, hanging.lease is None) == ("pending", False)
    assert taken.status == "delivered"


@pytest.mark.parametrize("steps", range(6))
async def test_deliveries_leased_while_the_leaser_ends_stay_leased(
    world: World, steps: int
) -> None:
    """At any step of the end."""
    box = OutboxWorld(world)

    class Ending(FlakyPool):
        """Its leases are committed just as the leaser is cancelled."""

        async def transact(self, name: str, work: Callable[[Tx], Awaitable[Any]]) -> Any:
            result = await super().transact(name, work)
            if name == "lease_deliveries" and result[0].deliveries and receiver.got:
                scope.cancel()
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
            return result

    leaser = leaser_of(cast("Pool", Ending(world.pool)), world.keyring)

    async def run() -> None:
        with scope:
            await leaser.run()

    scope = trio.CancelScope()
    async with receiving() as receiver, trio.open_nursery() as nursery:
        receiver.otherwise = hang
        await box.webhook(receiver.url())
        nursery.start_soon(run)
        await trio.testing.wait_all_tasks_blocked()
        for count in (1, 1):
            await box.enqueue(uuid4(), 1)
            await leaser.pass_once()
            await receiver.until(count)
    assert [(e.status, e.lease is None) for e in await box.events()] == [("pending", False)] * 2
    assert len(receiver.got) == 1


async def test_the_id_of_the_first_message_is_sent_with_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = OutboxWorld(world)
    stream = uuid4()

    async def named(_arrival: Arrival, peer: trio.SocketStream) -> None:
        await peer.send_all(answer(b'{"ok":true,"result":{"message_id":77}}'))

    async with receiving() as receiver:
        receiver.otherwise = named
        monkeypatch.setattr("leadline.probes.senders.telegram.ORIGIN", receiver.url(""))
        async with world.pool.transaction("make") as tx:
            config = {"bot_token": "1:" + "x" * 30, "chat_id": "-5"}
            row = await create_channel(
                tx,
                world.editor,
                world.project_uid,
                "telegram",
                "people",
                config,
                world.keyring,
                enabled=True,
            )
        await box.paged(stream, "down", row.id)
        await box.paged(stream, "still down", row.id)
        async with leasing(box):
            await until_settled(box, "delivered")
    first, second = receiver.got
    assert "reply_parameters" not in first.document
    assert second.document["reply_parameters"]["message_id"] == 77


async def test_pending_and_dead_events_are_counted(world: World) -> None:
    box = OutboxWorld(world)
    async with receiving() as receiver:
        receiver.otherwise = refuse
        await box.webhook(receiver.url())
        stream = uuid4()
        for seq in (1, 2):
            await box.enqueue(stream, seq)
        async with leasing(box, max_attempts=1):
            await _until(box, {"dead": 1, "pending": 1})
        leaser = leaser_of(world.pool, world.keyring)
        await leaser.pass_once()
    assert leaser.backlog is not None
    found = leaser.backlog
    assert (found.pending, found.dead, found.failing) == (1, 1, 1)
    assert found.oldest_us(world.now, BACKLOG_FRESH_US) == 0
    blocked = Instant(found.at + BACKLOG_FRESH_US + 7 * SECOND)
    assert found.oldest_us(blocked, BACKLOG_FRESH_US) == 7 * SECOND


async def test_delivered_events_are_kept_for_two_weeks_and_dead_ones_without_limit(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leadline.daemon.loops.janitor.DELIVERED_AT_ONCE", 2)
    box = OutboxWorld(world)
    over, dead, ongoing = uuid4(), uuid4(), uuid4()
    async with receiving() as receiver:
        receiver.behaves["/dead"] = refuse
        well = await box.channel(receiver.url("/well"))
        bad = await box.channel(receiver.url("/dead"))
        for _ in range(3):
            await box.paged(over, "down", well.id)
        await box.paged(dead, "down", bad.id)
        await box.paged(ongoing, "down", well.id)
        async with world.pool.transaction("open") as tx:
            await tx.execute(
                "insert into incidents (org, uid, project, seq, title, status, impact, source, "
                "started_at, created_at, updated_at) values (%(org)s, %(uid)s, %(project)s, 1, "
                "'open', 'investigating', 'minor', 'manual', now(), now(), now())",
                org=world.org,
                project=world.project,
                uid=ongoing,
            )
        async with leasing(box, max_attempts=1):
            await _until(box, {"delivered": 4, "dead": 1})
    janitor = Janitor(world.pool, lambda: world.now, heartbeat_days=4, ledger_days=4, gate_days=90)
    kept = "select thread from notification_threads"
    world.now = Instant(world.now + 14 * DAY - HOUR)
    await janitor._purge_delivered(Instant(world.now - DELIVERED_KEPT_US))
    assert len(await box.events()) == 5
    world.now = Instant(world.now + 2 * HOUR)
    await janitor._purge_delivered(Instant(world.now - DELIVERED_KEPT_US))
    assert [event.status for event in await box.events()] == ["dead"]
    # The notified destinations of an open incident are kept until its end.
    assert {row[0] for row in await world.rows(kept)} == {dead, ongoing}


class Counting(FlakyPool):
    """Remembers what it was asked for."""

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self.asked: list[str] = []

    @asynccontextmanager
    async def transaction(self, name: str, **given: Any) -> AsyncIterator[Tx]:
        self.asked.append(name)
        async with super().transaction(name, **given) as tx:
            yield tx


async def test_a_pass_without_due_events_opens_no_transaction(world: World) -> None:
    """Events of disabled or pausing destinations and leased events cause no transaction either."""
    box = OutboxWorld(world)
    pool = Counting(world.pool)
    leaser = leaser_of(cast("Pool", pool), world.keyring)
    async with receiving() as receiver, trio.open_nursery() as nursery:
        receiver.otherwise = hang
        await nursery.start(leaser.run)
        await leaser.pass_once()
        pool.asked.clear()
        await leaser.pass_once()
        assert not pool.asked
        await box.webhook(receiver.url())
        await box.enqueue(uuid4(), 1)
        # Where something was due there may be more.
        for expected in (["lease_deliveries"], ["lease_deliveries"], []):
            pool.asked.clear()
            await leaser.pass_once()
            assert pool.asked == expected
        nursery.cancel_scope.cancel()


async def test_a_failed_backlog_count_is_not_repeated_in_each_pass(world: World) -> None:
    """A count of the backlog that fails does not delay the deliveries."""
    pool = Counting(world.pool)
    pool.fail_before.add("count_backlog")
    leaser = leaser_of(cast("Pool", pool), world.keyring)
    with pytest.raises(Unavailable):
        await leaser.pass_once()
    await leaser.pass_once()
    assert pool.asked.count("count_backlog") == 1


async def test_a_stop_also_settles_events_that_another_transaction_locks(world: World) -> None:
    box = OutboxWorld(world)
    stream = uuid4()
    async with receiving() as receiver:
        await box.webhook(receiver.url())
        await box.enqueue(stream, 1)
        pool = Counting(world.pool)
        leaser = leaser_of(cast("Pool", pool), world.keyring)
        async with trio.open_nursery() as nursery:
            await nursery.start(leaser.run)
            await leaser.pass_once()
            await leaser.wake.wait(30)
            async with world.pool.transaction("tell") as tx:
                await box.enqueue_in(tx, stream, 2)
                leaser.close()
                # The second attempt follows the first, which found the row locked.
                await _until_asked(pool, "settle_deliveries", 2)
    assert [(e.status, e.ready) for e in await box.events()] == [
        ("delivered", True),
        ("pending", True),
    ]


async def _until_asked(pool: Counting, name: str, count: int) -> None:
    with trio.fail_after(30):
        while pool.asked.count(name) < count:  # noqa: ASYNC110 - it sets no event
            await trio.sleep(0.01)


async def _until_tried(box: OutboxWorld, count: int) -> None:
    """Waits until every event has `count` attempts and no lease."""
    with trio.fail_after(30):
        while True:
            events = await box.events()
            if all(event.lease is None and event.attempts >= count for event in events):
                return
            await trio.sleep(0.01)


async def _until_idle(box: OutboxWorld) -> None:
    """Waits until no event is leased."""
    with trio.fail_after(30):
        while True:
            if all(event.lease is None for event in await box.events()):
                return
            await trio.sleep(0.01)


async def _until(box: OutboxWorld, counts: dict[str, int]) -> None:
    with trio.fail_after(30):
        while True:
            found = [event.status for event in await box.events()]
            if {status: found.count(status) for status in set(found)} == counts:
                return
            await trio.sleep(0.01)


async def test_waiting_events_are_counted_when_they_become_dead_letters(world: World) -> None:
    box = OutboxWorld(world)
    async with receiving() as receiver:
        receiver.otherwise = refuse
        await box.webhook(receiver.url())
        for _ in range(9):
            await box.enqueue(uuid4(), 1)
        async with leasing(box, max_attempts=3, random=lambda: 0.0) as leaser:
            await until_settled(box, "dead")
            # The loop counts after the commit that the test has seen.
            with trio.fail_after(20):
                while leaser.counts["incident_webhook", "dead"] < 9:  # noqa: ASYNC110 - it sets no event
                    await trio.sleep(0.01)
            assert leaser.counts["incident_webhook", "dead"] == 9
    assert {event.attempts for event in await box.events()} == {3}
    # The others were counted with one that was sent.
    assert len(receiver.got) < 27
