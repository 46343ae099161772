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
    """To be entered before anything of the test opens a socket."""
    with kept_network(HERE, THERE, HERE_V6, *ELSEWHERE):
        yield


@asynccontextmanager
async def asking(prober: Prober, names: Names, authority: trustme.CA) -> AsyncIterator[Asker]:
    """Two hosts of the service are known by name, an address each."""
    names.records[HOST, "A"] = [[HERE]]
    names.records[OTHER, "A"] = [[THERE]]
    # Made here and not in a thread, which would stay in this network for a while.
    prober.reach.contexts.context(verify=True, alpn=("http/1.1",))
    queue = Queue()
    async with working(queue, authority):
        yield Asker(prober, names, queue)
