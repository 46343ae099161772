"""Running outbox leasers, and a scripted receiver of deliveries."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, cast

import msgspec
import trio

from leadline.daemon.loops.outbox_leaser import OutboxLeaser
from leadline.daemon.process.loop_runner import run_loop
from leadline.daemon.runtime import limits
from leadline.probes.net.egress import make_reach
from leadline.probes.net.egress_policy import probe_policy
from leadline.probes.senders.send_result import SendContext
from leadline.storage.engine.keyring import Keyring
from leadline.storage.engine.pools import Pool
from leadline.storage.notifications.rules.delivery_retry import ROOMS
from tests.support.peers.servers import answer, read_head, serving
from tests.support.worlds.outbox_world import OutboxWorld

PASS_SECONDS = 0.02
OK = answer(b"ok")
REFUSED = answer(b"no", "503 Service Unavailable")


def means() -> SendContext:
    return SendContext(
        reach=make_reach(probe_policy(), nameservers=()), now=lambda: time.time_ns() // 1_000
    )


@dataclass(frozen=True)
class Arrival:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any]:
        return cast("dict[str, Any]", msgspec.json.decode(self.body))


Behaviour = Callable[[Arrival, trio.SocketStream], Awaitable[None]]


async def take(_arrival: Arrival, stream: trio.SocketStream) -> None:
    await stream.send_all(OK)


async def refuse(_arrival: Arrival, stream: trio.SocketStream) -> None:
    await stream.send_all(REFUSED)


async def hang(_arrival: Arrival, _stream: trio.SocketStream) -> None:
    await trio.sleep_forever()


@dataclass
class Receiver:
    """A receiver; `behaves` has the behavior by path, `otherwise` the default."""

    port: int = 0
    got: list[Arrival] = field(default_factory=list)
    behaves: dict[str, Behaviour] = field(default_factory=dict)
    otherwise: Behaviour = take
    # Set at each arrival.
    news: trio.Event = field(default_factory=trio.Event)

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    async def converse(self, stream: trio.SocketStream) -> None:
        data = await read_head(stream)
        head, _, body = data.partition(b"\r\n\r\n")
        if not head:
            return
        first, *lines = head.decode().split("\r\n")
        headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
        while len(body) < int(headers.get("content-length", 0)):
            more = await stream.receive_some(65_536)
            if not more:
                return
            body += more
        arrival = Arrival(first.split()[1], headers, bytes(body))
        self.got.append(arrival)
        self.news.set()
        self.news = trio.Event()
        await self.behaves.get(arrival.path, self.otherwise)(arrival, stream)

    async def until(self, count: int, path: str | None = None) -> list[Arrival]:
        """Waits for `count` arrivals, optionally at one path, and returns them."""
        with trio.fail_after(30):
            while len(found := self.at(path)) < count:
                await self.news.wait()
        return found

    def at(self, path: str | None = None) -> list[Arrival]:
        return [arrival for arrival in self.got if path in (None, arrival.path)]


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    async with serving(receiver.converse) as port:
        receiver.port = port
        yield receiver


def leaser_of(pool: Pool, keyring: Keyring, max_attempts: int = 24, **given: Any) -> OutboxLeaser:
    values: dict[str, Any] = {
        "base_url": "https://up.example.com",
        "random": Random(7).random,
        "permits": limits.sending(ROOMS.whole.both),
    }
    return OutboxLeaser(pool, keyring, means(), max_attempts=max_attempts, **{**values, **given})


async def lease_on(leaser: OutboxLeaser) -> None:
    """Runs passes like the daemon, with shorter pauses, until it is cancelled."""
    async with trio.open_nursery() as nursery:
        await nursery.start(leaser.run)
        await run_loop("leaser", leaser.pass_once, PASS_SECONDS, lambda _: None, leaser.wake)


@asynccontextmanager
async def leasing(box: OutboxWorld, **given: Any) -> AsyncIterator[OutboxLeaser]:
    leaser = leaser_of(box.world.pool, box.world.keyring, **given)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lease_on, leaser)
        yield leaser
        nursery.cancel_scope.cancel()


async def until_settled(box: OutboxWorld, *statuses: str, seconds: float = 20) -> None:
    """Waits until every event has one of the statuses."""
    with trio.fail_after(seconds):
        while True:
            if {event.status for event in await box.events()} <= set(statuses):
                return
            await trio.sleep(0.01)
