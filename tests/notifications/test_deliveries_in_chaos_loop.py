"""Leasers are killed at any moment, and receivers fail, hang or answer wrongly: every event
arrives, the events of one incident arrive in order at each destination, and none remains."""

import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from uuid import UUID, uuid4

import pytest
import trio

from leadline.storage.core.instant import SECOND, Instant
from tests.support.run.effort import IS_SOAK
from tests.support.worlds.leasing import (
    OK,
    REFUSED,
    Arrival,
    Receiver,
    lease_on,
    leaser_of,
    receiving,
    until_settled,
)
from tests.support.worlds.outbox_world import OutboxWorld
from tests.support.worlds.world import World

ROOT = Path(__file__).parents[2]
# A soak run repeats these tests with more events.
pytestmark = [pytest.mark.soak] if IS_SOAK else []
SEQS = 25 if IS_SOAK else 4
STREAMS = 12 if IS_SOAK else 2
# Product seconds per real second, in tests that set the clock.
SPEED = 30


class Liar:
    """A receiver that accepts a request and answers wrongly: no response, a refusal or a lost
    connection."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)

    async def __call__(self, _arrival: Arrival, stream: trio.SocketStream) -> None:
        said = self.chance.random()
        if said < 0.2:
            await stream.send_all(REFUSED)
        elif said < 0.25:
            await trio.sleep(30)
        elif said < 0.35:
            # The receiver has the event, but the sender gets no response.
            await stream.aclose()
        elif said < 0.45:
            await stream.send_all(OK[:10])
            await stream.aclose()
        else:
            if said < 0.6:
                await trio.sleep(self.chance.random() * 0.2)
            await stream.send_all(OK)


async def enqueue_all(box: OutboxWorld, streams: list[UUID], channel: int, chance: Random) -> None:
    """Writes the events of each stream in a task of its own, together with pages to a channel."""

    async def writer(stream: UUID) -> None:
        for seq in range(1, SEQS + 1):
            async with box.world.pool.transaction("tell") as tx:
                await box.enqueue_in(tx, stream, seq)
                await box.page(tx, stream, f"{stream} {seq}", channel)
                # Settlements can occur between the write and its commit.
                await trio.sleep(chance.random() * 0.05)
            await trio.sleep(chance.random() * 0.2)

    async with trio.open_nursery() as nursery:
        for stream in streams:
            nursery.start_soon(writer, stream)


@asynccontextmanager
async def receivers(box: OutboxWorld) -> AsyncIterator[tuple[Receiver, int]]:
    """Two webhooks that lie, one that is well, and a channel that lies."""
    async with receiving() as receiver:
        for n, path in enumerate(("/a", "/b", "/page")):
            receiver.behaves[path] = Liar(n)
        for path in ("/a", "/b", "/well"):
            await box.webhook(receiver.url(path))
        channel = await box.channel(receiver.url("/page"))
        yield receiver, channel.id


async def expect_all(box: OutboxWorld, receiver: Receiver, streams: list[UUID]) -> None:
    events = await box.events()
    assert len(events) == len(streams) * SEQS * 4
    assert {event.status for event in events} == {"delivered"}
    stream_of = {str(event.uid): str(event.stream) for event in events}
    order: dict[tuple[str, str], list[int]] = {}
    for arrival in receiver.got:
        document = arrival.document
        # A page has its id in the document, because a request without a secret has no signature
        # headers.
        uid = document.get("id") or arrival.headers["webhook-id"]
        seq = document.get("seq") or int(document["title"].rsplit(" ", 1)[1])
        seen = order.setdefault((stream_of[uid], arrival.path), [])
        if seq not in seen:
            seen.append(seq)
    wanted = list(range(1, SEQS + 1))
    assert order == {
        (str(stream), path): wanted for stream in streams for path in ("/a", "/b", "/well", "/page")
    }


async def test_leasers_that_are_cancelled_anywhere(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leadline.probes.senders.deliver.SEND_SECONDS", 0.3)
    box, chance = OutboxWorld(world), Random(11)
    streams = [uuid4() for _ in range(STREAMS)]

    async def keep_time() -> None:
        began, start = trio.current_time(), world.now
        while True:
            world.now = Instant(start + int((trio.current_time() - began) * SPEED * SECOND))
            await trio.sleep(0.005)

    async def killed_at_random() -> None:
        while True:
            leaser = leaser_of(world.pool, world.keyring, max_attempts=10_000)
            with trio.move_on_after(0.2 + chance.random()):
                await lease_on(leaser)

    async with receivers(box) as (receiver, channel), trio.open_nursery() as nursery:
        nursery.start_soon(keep_time)
        for _ in range(3):
            nursery.start_soon(killed_at_random)
        await enqueue_all(box, streams, channel, chance)
        await until_settled(box, "delivered", seconds=600)
        nursery.cancel_scope.cancel()
    await expect_all(box, receiver, streams)
    assert len(receiver.got) > len(await box.events())


async def test_processes_that_are_killed(world: World, dsn: str) -> None:
    box, chance = OutboxWorld(world), Random(12)
    streams = [uuid4() for _ in range(STREAMS)]
    kills = 0

    async def killed_at_random() -> None:
        nonlocal kills
        while True:
            child = await trio.lowlevel.open_process(
                [sys.executable, "-m", "tests.support.processes.leaser_process", dsn],
                cwd=ROOT,
                stdout=subprocess.PIPE,
            )
            try:
                assert child.stdout is not None
                said = await child.stdout.receive_some()
                assert said == b"ready\n", "a leaser ended without a kill"
                await trio.sleep(0.2 + chance.random() * 2)
            finally:
                child.kill()
                with trio.CancelScope(shield=True):
                    await child.wait()
            kills += 1

    async with receivers(box) as (receiver, channel), trio.open_nursery() as nursery:
        world.now = Instant(time.time_ns() // 1_000)
        for _ in range(3):
            nursery.start_soon(killed_at_random)
        await enqueue_all(box, streams, channel, chance)
        await until_settled(box, "delivered", seconds=600)
        nursery.cancel_scope.cancel()
    await expect_all(box, receiver, streams)
    assert kills
