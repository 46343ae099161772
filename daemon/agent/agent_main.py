"""The running agent: what is opened in which order, and closed in the opposite one.

What asks ends first, then the probes in flight, then the sender has a moment, then the ring is
written for the last time. What had begun and could not end is not reported: the server gives its
window to another.
"""

import logging
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Final
from uuid import uuid4

import trio

from ...probes.jobs.agent_protocol import CAPABILITY
from ...probes.net.egress import Egress, make_reach
from ...probes.net.egress_policy import EgressPolicy
from ...probes.net.system_resolver import SystemNames
from ...probes.probe_kind import kind_of
from ..config.config_schema import Settings
from ..config.egress_setup import make_egress
from ..runtime import limits
from ..runtime.gc_tuning import set_aside
from ..runtime.sd_notify import keep_alive, notify
from ..runtime.supervisor import LoopHeartbeats, Supervisor
from .agent_config import AgentConfig
from .connection_state import ConnectionTracker
from .counters import AgentCounters
from .job_runner import JobRunner
from .offline_schedule import OfflineSchedule
from .puller import CLAIM_WAIT_SECONDS, HEARTBEAT_PAUSE_SECONDS, REFUSED_SECONDS, Puller
from .result_uploader import ResultUploader
from .ring_buffer import RingBuffer, open_ring
from .server_client import CLAIM_SECONDS_MORE, HEARTBEAT_SECONDS, REPORT_SECONDS, ServerClient
from .server_clock import ServerClock

log = logging.getLogger("leadline.agent")

SEND_FINISH_SECONDS: Final = 5.0
TOLD_SECONDS: Final = 60.0


@dataclass(slots=True)
class Agent:
    """The parts of one agent."""

    region: str
    reach: Egress
    ring: RingBuffer
    known: OfflineSchedule
    clock: ServerClock
    runs: JobRunner
    sender: ResultUploader
    puller: Puller
    counts: AgentCounters


async def run_agent(settings: Settings, place: AgentConfig) -> None:
    """Runs until SIGTERM or SIGINT. RingInUse or OSError where the ring cannot be had."""
    stopping = trio.Event()
    async with trio.open_nursery() as watching:
        watching.start_soon(_await_signal, stopping)
        ring = await open_ring(place.folder, limits.ring())
        async with ring:
            await run_parts(build(settings, place, ring), stopping)
        watching.cancel_scope.cancel()


async def _await_signal(stopping: trio.Event) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            log.info("stopping", extra={"signal": signal.Signals(number).name})
            notify("STOPPING=1")
            if stopping.is_set():
                raise KeyboardInterrupt
            stopping.set()


def version() -> str:
    return metadata.version("leadline")


def workflow_kinds() -> list[str]:
    """What this build can run of what not every agent can."""
    return [token for kind, token in CAPABILITY.items() if kind_of(kind) is not None]


def build(
    settings: Settings, place: AgentConfig, ring: RingBuffer, clock: ServerClock | None = None
) -> Agent:
    """Nothing of it runs yet."""
    clock, link, known, counts = (
        clock or ServerClock(),
        ConnectionTracker(),
        OfflineSchedule(),
        AgentCounters(),
    )
    reach = make_egress(settings, f"leadline/{version()}")
    permits = limits.probing(settings.prober.concurrency)
    runs = JobRunner(reach, clock, permits, known, ring, counts)
    server = ServerClient(_to_server(place), place, str(uuid4()), workflow_kinds())
    puller = Puller(server, place.token, version(), clock, link, known, runs, ring, counts)
    sender = ResultUploader(server, ring, clock, counts, puller.standing, puller.greet)
    puller.on_back = sender.hurry.set
    return Agent(place.region, reach, ring, known, clock, runs, sender, puller, counts)


def _to_server(place: AgentConfig) -> Egress:
    """The operator names the server, so that it may stand anywhere, by this host's own names."""
    return make_reach(
        EgressPolicy(allow_private=True),
        resolver=SystemNames(),
        contexts=place.contexts,
        user_agent=f"leadline/{version()} (agent)",
    )


async def run_parts(agent: Agent, stopping: trio.Event) -> None:
    """Until `stopping` is set, and then until all has ended in order."""
    beats, supervisor = LoopHeartbeats(), Supervisor()
    async with trio.open_nursery() as ground:
        await ground.start(agent.reach.lag.watch)
        ground.start_soon(supervisor.keep, "ring", agent.ring.run)
        async with trio.open_nursery() as sending:
            report = REPORT_SECONDS + REFUSED_SECONDS
            _keep(sending, supervisor, beats, "sender", agent.sender.run, report)
            async with trio.open_nursery() as probing:
                probing.start_soon(agent.runs.run)
                await _ask_until(agent, beats, supervisor, stopping)
                agent.runs.close()
                probing.cancel_scope.deadline = trio.current_time() + limits.PROBES_FINISH_SECONDS
            await _send_the_last(agent)
            sending.cancel_scope.cancel()
        ground.cancel_scope.cancel()
    _tell(agent, "stopped")


async def _ask_until(
    agent: Agent, beats: LoopHeartbeats, supervisor: Supervisor, stopping: trio.Event
) -> None:
    async with trio.open_nursery() as asking:
        touch = HEARTBEAT_SECONDS + max(HEARTBEAT_PAUSE_SECONDS, REFUSED_SECONDS)
        claim = CLAIM_WAIT_SECONDS + CLAIM_SECONDS_MORE + REFUSED_SECONDS
        _keep(asking, supervisor, beats, "heartbeat", agent.puller.keep_in_touch, touch)
        _keep(asking, supervisor, beats, "claim", agent.puller.keep_claiming, claim)
        _keep(asking, supervisor, beats, "alone", agent.puller.keep_going_alone, 1.0)
        asking.start_soon(_tell_often, agent)
        asking.start_soon(keep_alive, lambda: not beats.stale())
        set_aside()
        log.info("the agent is running", extra={"region": agent.region, "version": version()})
        # Cut off from its server it is well, and says in the log how it stands.
        notify("READY=1")
        await stopping.wait()
        asking.cancel_scope.cancel()


def _keep(
    nursery: trio.Nursery,
    supervisor: Supervisor,
    beats: LoopHeartbeats,
    name: str,
    loop: Callable[[Callable[[], None]], Awaitable[None]],
    seconds: float,
) -> None:
    """A loop that is begun again when it fails, and that the watchdog wants to see move."""
    beats.expect(name, seconds)

    async def child() -> None:
        await loop(lambda: beats.beat(name))

    nursery.start_soon(supervisor.keep, name, child)


async def _send_the_last(agent: Agent) -> None:
    """What is not sent by then stays on disk."""
    with trio.move_on_after(SEND_FINISH_SECONDS):
        while len(agent.ring) and agent.clock.is_set:
            agent.sender.hurry.set()
            await trio.sleep(0.05)


async def _tell_often(agent: Agent) -> None:
    while True:
        await trio.sleep(TOLD_SECONDS)
        _tell(agent, "the last minute")


def _tell(agent: Agent, text: str) -> None:
    """All counts are since the start; `ring` is what waits to be sent."""
    extra = {
        "standing": agent.puller.standing().value,
        "silent_seconds": agent.puller.silent_seconds(),
        "monitors": len(agent.known),
        "ring": len(agent.ring),
        "overflowed": agent.ring.overflowed,
        **agent.counts.told(),
    }
    log.info(text, extra=extra)
