"""A network namespace for the tests of canaries, with the service in it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import trustme

from tests.support.peers.job_queue import (
    ELSEWHERE,
    HERE,
    HERE_V6,
    HOST,
    OTHER,
    THERE,
    Asker,
    Queue,
    working,
)
from tests.support.peers.own_network import kept_network
from tests.support.peers.servers import Names, Prober


@contextmanager
def canary_network() -> Iterator[None]:
    """Enters the network; the test must not open a socket before."""
    with kept_network(HERE, THERE, HERE_V6, *ELSEWHERE):
        yield


@asynccontextmanager
async def asking(prober: Prober, names: Names, authority: trustme.CA) -> AsyncIterator[Asker]:
    """Registers two host names of the service, with an address each."""
    names.records[HOST, "A"] = [[HERE]]
    names.records[OTHER, "A"] = [[THERE]]
    # Created in this thread: a worker thread would stay in this network for a while.
    prober.reach.contexts.context(verify=True, alpn=("http/1.1",))
    queue = Queue()
    async with working(queue, authority):
        yield Asker(prober, names, queue)
