"""The running agent: what is opened in which order, and closed in the opposite one.

What asks ends first, then the probes in flight, then the sender has a moment, then the ring is
written for the last time. What had begun and could not end is not reported: the server gives its
window to another.
"""

import logging
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
from ..runtime.sd_notify import notify
from ..runtime.stop_signal import SIGNALS
from ..runtime.supervisor import (
    Child,
    RunChild,
    StopPhase,
    Supervisor,
    keep_watchdog,
    supervising,
)
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

ASKING: Final = StopPhase("asking")
RUNS: Final = StopPhase("runs", limits.PROBES_FINISH_SECONDS)
# What is not sent by then stays on disk.
SENDING: Final = StopPhase("sending", SEND_FINISH_SECONDS)
GROUND: Final = StopPhase("ground")
STOP_ORDER: Final = (ASKING, RUNS, SENDING, GROUND)


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
    permits: trio.CapacityLimiter
    counts: AgentCounters


async def run_agent(settings: Settings, place: AgentConfig) -> None:
    """Runs until SIGTERM or SIGINT. RingInUse or OSError where the ring cannot be had."""
    stopping = trio.Event()
    async with supervising() as supervisor:
        await supervisor.start([SIGNALS], stopping)
        async with await open_ring(place.folder, limits.ring()) as ring:
            await run_parts(build(settings, place, ring), supervisor, stopping)


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
    return Agent(place.region, reach, ring, known, clock, runs, sender, puller, permits, counts)


def _to_server(place: AgentConfig) -> Egress:
    """The operator names the server, so that it may stand anywhere, by this host's own names."""
    return make_reach(
        EgressPolicy(allow_private=True),
        resolver=SystemNames(),
        contexts=place.contexts,
        user_agent=f"leadline/{version()} (agent)",
    )


async def run_parts(agent: Agent, supervisor: Supervisor, stopping: trio.Event) -> None:
    """Until `stopping` is set, and then until all has ended in order."""
    async with supervisor.stopping_after(STOP_ORDER):
        await supervisor.start(CHILDREN, agent)
        set_aside()
        log.info("agent started", extra={"region": agent.region, "version": version()})
        # Cut off from its server it is well, and says in the log how it stands.
        notify("READY=1")
        await stopping.wait()
    _send_heartbeat(agent, "stopped")


def _loop(
    name: str,
    loop_of: Callable[[Agent], Callable[[Callable[[], None]], Awaitable[None]]],
    pass_seconds: float,
    *,
    phase: StopPhase = ASKING,
    limiter: Callable[[Agent], trio.CapacityLimiter] | None = None,
    close: Callable[[Agent], None] | None = None,
) -> Child[Agent]:
    """A loop that is restarted when it fails, and that the watchdog expects to move."""

    def bind(agent: Agent) -> RunChild:
        loop = loop_of(agent)
        return lambda task: loop(task.beat)

    return Child(
        name,
        phase,
        bind,
        limiter=limiter,
        close=close,
        restarts=True,
        pass_seconds=pass_seconds,
    )


def _watch_lag(agent: Agent) -> RunChild:
    return lambda task: agent.reach.lag.watch(task_status=task)


# In the order of their start.
CHILDREN: Final[tuple[Child[Agent], ...]] = (
    Child("lag", GROUND, _watch_lag, reports_start=True),
    Child("ring", GROUND, lambda a: lambda _: a.ring.run(), restarts=True),
    _loop(
        "sender",
        lambda a: a.sender.run,
        REPORT_SECONDS + REFUSED_SECONDS,
        phase=SENDING,
        close=lambda a: a.sender.close(),
    ),
    Child(
        "runs",
        RUNS,
        lambda a: a.runs.run,
        limiter=lambda a: a.permits,
        close=lambda a: a.runs.close(),
        reports_start=True,
    ),
    _loop(
        "heartbeat",
        lambda a: a.puller.heartbeat_loop,
        HEARTBEAT_SECONDS + max(HEARTBEAT_PAUSE_SECONDS, REFUSED_SECONDS),
    ),
    _loop(
        "claim",
        lambda a: a.puller.claim_loop,
        CLAIM_WAIT_SECONDS + CLAIM_SECONDS_MORE + REFUSED_SECONDS,
        limiter=lambda a: a.permits,
    ),
    _loop("alone", lambda a: a.puller.offline_loop, 1.0),
    Child("report", ASKING, lambda a: lambda _: _heartbeat_loop(a)),
    Child("watchdog", ASKING, lambda _: keep_watchdog),
)


async def _heartbeat_loop(agent: Agent) -> None:
    while True:
        await trio.sleep(TOLD_SECONDS)
        _send_heartbeat(agent, "the last minute")


def _send_heartbeat(agent: Agent, text: str) -> None:
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
