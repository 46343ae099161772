"""Agent process: the start order of its parts, and the reverse stop order.

On stop the requests end first, then the runs in flight. Then the uploader has a few seconds, and
the ring buffer is written for the last time. A run that could not end is not reported. The server
can give its window to another worker.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Final
from uuid import uuid4

import trio

from ...probes.jobs.agent_protocol import (
    CAPABILITY,
    CERTIFICATES,
    CHECK_TEST,
    CRON_SCHEDULE,
    OPTIONS,
)
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
from ..runtime.thread_switching import favor_event_loop
from .agent_config import AgentConfig
from .certificate_reporter import PAUSE_SECONDS, CertificateReporter
from .check_tester import CheckTester
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
# Results that are not sent within this phase remain on disk.
SENDING: Final = StopPhase("sending", SEND_FINISH_SECONDS)
GROUND: Final = StopPhase("ground")
STOP_ORDER: Final = (ASKING, RUNS, SENDING, GROUND)


@dataclass(slots=True)
class Agent:
    """Parts of one agent."""

    region: str
    reach: Egress
    ring: RingBuffer
    known: OfflineSchedule
    clock: ServerClock
    runs: JobRunner
    tests: CheckTester
    certificates: CertificateReporter
    sender: ResultUploader
    puller: Puller
    permits: trio.CapacityLimiter
    counts: AgentCounters


async def run_agent(settings: Settings, place: AgentConfig) -> None:
    """Runs until SIGTERM or SIGINT.

    Raises: `RingInUse` or `OSError` if the ring buffer cannot be opened.
    """
    stopping = trio.Event()
    async with supervising() as supervisor:
        await supervisor.start([SIGNALS], stopping)
        async with await open_ring(place.folder, limits.ring()) as ring:
            await run_parts(build(settings, place, ring), supervisor, stopping)


def version() -> str:
    return metadata.version("leadline")


def workflow_kinds() -> list[str]:
    """Returns the capabilities of this build that not every agent has."""
    kinds = [token for kind, token in CAPABILITY.items() if kind_of(kind) is not None]
    return [*kinds, CHECK_TEST, CRON_SCHEDULE, CERTIFICATES, *OPTIONS.values()]


def build(
    settings: Settings, place: AgentConfig, ring: RingBuffer, clock: ServerClock | None = None
) -> Agent:
    """Creates the parts of an agent without starting them."""
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
    tests = CheckTester(server, place.token, reach, clock, permits, counts)
    puller = Puller(server, place.token, version(), clock, link, known, runs, tests, ring, counts)
    sender = ResultUploader(server, ring, clock, counts, puller.standing, puller.greet)
    puller.on_back = sender.hurry.set
    return Agent(
        region=place.region,
        reach=reach,
        ring=ring,
        known=known,
        clock=clock,
        runs=runs,
        tests=tests,
        certificates=CertificateReporter(server, runs.seen, clock, puller.standing),
        sender=sender,
        puller=puller,
        permits=permits,
        counts=counts,
    )


def _to_server(place: AgentConfig) -> Egress:
    """Returns the egress to the server.

    The operator names the server, so private addresses and the names of this host are allowed.
    """
    return make_reach(
        EgressPolicy(allow_private=True),
        resolver=SystemNames(),
        contexts=place.contexts,
        user_agent=f"leadline/{version()} (agent)",
    )


async def run_parts(agent: Agent, supervisor: Supervisor, stopping: trio.Event) -> None:
    """Runs the parts until `stopping` is set, and then until they have ended in order."""
    async with supervisor.stopping_after(STOP_ORDER):
        await supervisor.start(CHILDREN, agent)
        set_aside()
        favor_event_loop()
        log.info("agent started", extra={"region": agent.region, "version": version()})
        # Ready also without a connection, because an agent works while disconnected. The log has
        # its state.
        notify("READY=1")
        await stopping.wait()
    _send_heartbeat(agent, "agent stopped")


def _loop(
    name: str,
    loop_of: Callable[[Agent], Callable[[Callable[[], None]], Awaitable[None]]],
    pass_seconds: float,
    *,
    phase: StopPhase = ASKING,
    limiter: Callable[[Agent], trio.CapacityLimiter] | None = None,
    close: Callable[[Agent], None] | None = None,
) -> Child[Agent]:
    """Returns a loop that is restarted on failure and monitored by the watchdog."""

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


# In start order.
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
    Child(
        "tests",
        RUNS,
        lambda a: a.tests.run,
        limiter=lambda a: a.permits,
        close=lambda a: a.tests.close(),
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
    _loop(
        "certificates",
        lambda a: a.certificates.run,
        HEARTBEAT_SECONDS + PAUSE_SECONDS,
    ),
    _loop("alone", lambda a: a.puller.offline_loop, 1.0),
    Child("report", ASKING, lambda a: lambda _: _heartbeat_loop(a)),
    Child("watchdog", ASKING, lambda _: keep_watchdog),
)


async def _heartbeat_loop(agent: Agent) -> None:
    while True:
        await trio.sleep(TOLD_SECONDS)
        _send_heartbeat(agent, "agent counters")


def _send_heartbeat(agent: Agent, text: str) -> None:
    """Logs the counters since the start. `ring` is the number of results to be sent."""
    extra = {
        "standing": agent.puller.standing().value,
        "silent_seconds": agent.puller.silent_seconds(),
        "monitors": len(agent.known),
        "ring": len(agent.ring),
        "overflowed": agent.ring.overflowed,
        **agent.counts.told(),
    }
    log.info(text, extra=extra)
