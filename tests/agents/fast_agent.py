"""An agent in the test's own loop, whose time runs faster than the world's."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from leadline.daemon.agent.agent_config import read_place
from leadline.daemon.agent.agent_main import Agent, build, run_parts
from leadline.daemon.agent.ring_buffer import open_ring
from leadline.daemon.agent.server_clock import ServerClock
from leadline.daemon.config.config_schema import ProberConfig, Pull, Settings
from leadline.daemon.runtime import limits
from leadline.daemon.runtime.supervisor import supervising
from leadline.probes.check.loop_lag import LoopLag
from tests.agents.job_samples import REGION, T0, TOKEN

# A minute of theirs is three seconds of ours.
PACE = 20
PATIENCE_SECONDS = 60.0


class FastTime:
    """A clock that runs fast, and the true time of the server's clock."""

    def __init__(self) -> None:
        self._began = LoopLag.now_us()
        self.leap = 0

    def count(self) -> int:
        return (LoopLag.now_us() - self._began) * PACE + self.leap

    def truth(self) -> int:
        return T0 + (LoopLag.now_us() - self._began) * PACE


@asynccontextmanager
async def not_running(
    folder: Path,
    url: str,
    count: Callable[[], int],
    *,
    region: str = REGION,
    concurrency: int = 100,
) -> AsyncIterator[Agent]:
    """Its parts, for a test that moves them itself."""
    settings = Settings(
        pull=Pull(token=TOKEN, server_url=url),
        prober=ProberConfig(regions=(region,), concurrency=concurrency),
    )
    place = read_place(settings, {}, folder)
    async with await open_ring(folder, limits.ring()) as ring:
        yield build(settings, place, ring, ServerClock(count))


@asynccontextmanager
async def agent(
    folder: Path, url: str, count: Callable[[], int], *, concurrency: int = 100
) -> AsyncIterator[Agent]:
    """Stopped in order when this is left."""
    stopping = trio.Event()
    async with not_running(folder, url, count, concurrency=concurrency) as made:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_run, made, stopping)
            yield made
            stopping.set()


async def _run(made: Agent, stopping: trio.Event) -> None:
    async with supervising() as supervisor:
        await run_parts(made, supervisor, stopping)


async def until(holds: Callable[[], object]) -> None:
    """Waits for something that happens; a test that waits too long has failed."""
    with trio.fail_after(PATIENCE_SECONDS):
        while not holds():  # noqa: ASYNC110 - there is no event for what it asks
            await trio.sleep(0.01)


@asynccontextmanager
async def target() -> AsyncIterator[str]:
    """host:port of something that takes connections."""

    async def take(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some(1)

    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, take, listeners)
        yield f"127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


async def know_the_time(ours: Agent) -> None:
    """Asks for the server's time until the clock is set. Slow responses, as on a busy machine,
    leave it open.
    """
    while True:
        assert await ours.puller.greet()
        if ours.clock.is_set:
            return
