"""Children of the daemon in the order of their start, and the phases in which they stop.

HTTP stops first: it ends event streams and finishes requests. Then the loops stop, so that no new
work begins. Next are the active runs and deliveries, and then the recorder, which stores its queued
results, and then the further API processes. The presence renewal and the clock follow. The monitor
of the embedded PostgreSQL stops last.
"""

import logging
import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

import trio

from ...http.server.hypercorn_server import serve
from ...http.wire.app_context import AppContext
from ...storage.engine.edit_notify import EDITED, WORK
from ...storage.engine.embedded_postgres import EmbeddedServer
from ...storage.scheduling.rules.work import Work
from ...storage.scheduling.tables import presences
from ..config.roles import DaemonPart
from ..loops import (
    alert_processor,
    cache_invalidator,
    canary_dispatcher,
    composite_evaluator,
    due_reader,
    figure_repairer,
    file_provider_syncer,
    janitor,
    key_checker,
    metric_samplers,
    monitor_sealer,
    operation_runner,
    outbox_leaser,
    presence_renewer,
    prober,
    push_deadline_checker,
    result_packer,
    schedule_ticker,
    self_monitor,
    service_evaluator,
    service_sealer,
)
from ..loops.bundles import proposal_adopter
from ..loops.mailers import (
    invitation_mailer,
    maintenance_teller,
    oncall_mailer,
    password_reset_mailer,
    warning_teller,
)
from ..runtime import limits
from ..runtime.supervisor import Child, ChildTask, RunChild, StopPhase, keep_watchdog
from ..runtime.wake_event import WakeEvent, staggered
from .api_processes import ApiProcesses
from .loop_runner import run_loop
from .wiring import Components

log = logging.getLogger("leadline.daemon")

SERVING: Final = StopPhase("serving", limits.HTTP_FINISH_SECONDS)
LOOPS: Final = StopPhase("loops")
RUNS: Final = StopPhase("runs", limits.PROBES_FINISH_SECONDS)
RECORDING: Final = StopPhase("recording", limits.RECORDER_DRAIN_SECONDS)
PROCESSES: Final = StopPhase("processes", limits.PROCESSES_FINISH_SECONDS)
PRESENCE: Final = StopPhase("presence")
STORE: Final = StopPhase("store")
STOP_ORDER: Final = (SERVING, LOOPS, RUNS, RECORDING, PROCESSES, PRESENCE, STORE)


@dataclass(frozen=True, slots=True)
class Daemon:
    """Objects of a daemon that its children run.

    `server` is None with an external PostgreSQL, `listening` if the process serves no HTTP.
    """

    house: Components
    context: AppContext
    listening: socket.socket | None
    listen_dsn: str
    server: EmbeddedServer | None
    # None if this process is the only one on its socket.
    processes: ApiProcesses | None
    # Set when the daemon is ready for the first time.
    ready: trio.Event


class Loop(Protocol):
    async def pass_once(self) -> object: ...


@runtime_checkable
class Wakeable(Protocol):
    wake: WakeEvent


@runtime_checkable
class Resting(Protocol):
    """Loop that knows how long it can rest without work."""

    def rest_seconds(self) -> float: ...


@runtime_checkable
class Beating(Protocol):
    """Loop whose passes can be long, and which beats within them."""

    def beat_with(self, beat: Callable[[], None]) -> None: ...


class Runner(Protocol):
    """Task that runs until `close`, and then until its work in progress has ended."""

    async def run(self, task_status: trio.TaskStatus[None]) -> None: ...

    def close(self) -> None: ...


def _loop(
    name: str,
    part: DaemonPart | None,
    loop_of: Callable[[Components], Loop | None],
    pause_seconds: float,
    *,
    work: Collection[Work] = (),
    phase: StopPhase = LOOPS,
    limiter: Callable[[Daemon], trio.CapacityLimiter] | None = None,
) -> Child[Daemon]:
    """Returns the child of a loop.

    A loop with `work` rests until it has some. Its own `rest_seconds` bounds the rest, or else
    LOOP_REST_SECONDS.
    """

    def bind(daemon: Daemon) -> RunChild | None:
        loop, reader = loop_of(daemon.house), daemon.house.due_reader
        if loop is None:
            return None
        wake = loop.wake if isinstance(loop, Wakeable) else WakeEvent()
        for kind in work:
            reader.register(kind, wake)
        rest = loop.rest_seconds if isinstance(loop, Resting) else None

        async def run(task: ChildTask) -> None:
            if isinstance(loop, Beating):
                loop.beat_with(task.beat)
            await run_loop(
                name,
                loop.pass_once,
                pause_seconds,
                task.beat,
                wake=wake,
                rest_seconds=rest or (_rest_of_loop if work else None),
                after_work=reader.ask if work else lambda: None,
                limiter=None if limiter is None else limiter(daemon),
            )

        return run

    return Child(name, phase, bind, part or "", limiter, restarts=True, pass_seconds=pause_seconds)


def _rest_of_loop() -> float:
    return staggered(due_reader.LOOP_REST_SECONDS)


def _runner(
    name: str,
    part: DaemonPart,
    runner_of: Callable[[Components], Runner | None],
    phase: StopPhase,
    limiter: Callable[[Daemon], trio.CapacityLimiter] | None = None,
) -> Child[Daemon]:
    def bind(daemon: Daemon) -> RunChild | None:
        runner = runner_of(daemon.house)
        return None if runner is None else runner.run

    def close(daemon: Daemon) -> None:
        runner = runner_of(daemon.house)
        if runner is not None:
            runner.close()

    return Child(name, phase, bind, part, limiter, close, reports_start=True)


def _server(part: DaemonPart, *, with_api: bool) -> Child[Daemon]:
    """Returns the child of an HTTP server, which reports its address when it has started."""

    def bind(daemon: Daemon) -> RunChild | None:
        listening = daemon.listening
        if listening is None:
            return None
        return lambda task: serve(daemon.context, listening, with_api, task)

    def close(daemon: Daemon) -> None:
        daemon.house.recorder.stop_hearing()
        daemon.house.bus.close()
        daemon.context.stopping.set()
        if daemon.processes is not None:
            daemon.processes.stop()

    return Child(part, SERVING, bind, part, lambda d: d.context.requests, close, reports_start=True)


def _keep_server(daemon: Daemon) -> RunChild | None:
    server = daemon.server
    if server is None:
        return None

    async def restart_once(_: ChildTask) -> None:
        # Returning counts as a failure of the child, which bounds the number of restarts.
        status = await server.died()
        log.error("embedded PostgreSQL ended", extra={"status": status})
        await server.start()

    return restart_once


def _further_processes(daemon: Daemon) -> RunChild | None:
    return None if daemon.processes is None else daemon.processes.run


def _stop_processes(daemon: Daemon) -> None:
    if daemon.processes is not None:
        daemon.processes.stop()


def _hear(daemon: Daemon) -> RunChild:
    house, forget = daemon.house, daemon.context.forget

    def hear_edits(payloads: Collection[str]) -> None:
        forget()
        house.edits.hear(payloads)

    heard: dict[str, Callable[[Collection[str]], None]] = {
        presences.ASKED: lambda _: house.attendance.wake.set(),
        EDITED: hear_edits,
        WORK: house.due_reader.hear,
    }

    def note_hearing(is_hearing: bool) -> None:
        house.due_reader.set_hearing(is_hearing)
        if is_hearing:
            forget()

    return lambda _: cache_invalidator.hear(daemon.listen_dsn, heard, note_hearing)


def _watch_lag(daemon: Daemon) -> RunChild:
    return lambda task: daemon.house.reach.lag.watch(task_status=task)


CHILDREN: Final[tuple[Child[Daemon], ...]] = (
    Child("postgres", STORE, _keep_server, restarts=True),
    Child("lag", PRESENCE, _watch_lag, reports_start=True),
    Child("notices", PRESENCE, _hear, restarts=True),
    _loop(
        "attendance",
        None,
        lambda h: h.attendance,
        presence_renewer.PAUSE_SECONDS,
        phase=PRESENCE,
    ),
    Child(
        "api_processes",
        PROCESSES,
        _further_processes,
        DaemonPart.HTTP,
        close=_stop_processes,
        reports_start=True,
    ),
    _runner("recorder", DaemonPart.RECORDER, lambda h: h.recorder, RECORDING),
    _runner("runs", DaemonPart.PROBER, lambda h: h.prober, RUNS, lambda d: d.house.limiters.prober),
    _runner(
        "canaries",
        DaemonPart.DISPATCHER,
        lambda h: h.dispatcher,
        RUNS,
        lambda d: d.house.limiters.dispatcher,
    ),
    _runner(
        "deliveries",
        DaemonPart.LEASER,
        lambda h: h.leaser,
        RUNS,
        lambda d: d.house.limiters.leaser,
    ),
    _loop(
        "ticker",
        DaemonPart.TICKER,
        lambda h: h.ticker,
        schedule_ticker.PAUSE_SECONDS,
        work=(Work.SCHEDULE,),
        limiter=lambda d: d.house.limiters.ticker,
    ),
    _loop(
        "composer",
        DaemonPart.TICKER,
        lambda h: h.composer,
        composite_evaluator.PAUSE_SECONDS,
        work=(Work.COMPOSITES,),
    ),
    _loop(
        "listener",
        DaemonPart.LISTENER,
        lambda h: h.listener,
        push_deadline_checker.PAUSE_SECONDS,
        work=(Work.SCHEDULE,),
    ),
    _loop(
        "prober",
        DaemonPart.PROBER,
        lambda h: h.prober,
        prober.PAUSE_SECONDS,
        work=(Work.JOBS, Work.DEFINITIONS),
    ),
    _loop(
        "dispatcher",
        DaemonPart.DISPATCHER,
        lambda h: h.dispatcher,
        canary_dispatcher.PAUSE_SECONDS,
        work=(Work.CANARIES, Work.JOBS),
    ),
    _loop(
        "sealer",
        DaemonPart.SEALER,
        lambda h: h.sealer,
        monitor_sealer.PAUSE_SECONDS,
        work=(Work.SEALS,),
    ),
    _loop(
        "service_sealer",
        DaemonPart.SERVICE_SEALER,
        lambda h: h.service_sealer,
        service_sealer.PAUSE_SECONDS,
        work=(Work.SERVICES,),
    ),
    _loop(
        "repairer",
        DaemonPart.REPAIRER,
        lambda h: h.repairer,
        figure_repairer.PAUSE_SECONDS,
        work=(Work.REPAIRS,),
    ),
    _loop(
        "leaser",
        DaemonPart.LEASER,
        lambda h: h.leaser,
        outbox_leaser.PAUSE_SECONDS,
        work=(Work.DELIVERIES,),
    ),
    _loop(
        "resets",
        DaemonPart.LEASER,
        lambda h: h.resets,
        password_reset_mailer.PAUSE_SECONDS,
        work=(Work.RESETS,),
    ),
    _loop(
        "invitations",
        DaemonPart.LEASER,
        lambda h: h.invitations,
        invitation_mailer.PAUSE_SECONDS,
        work=(Work.INVITATIONS,),
    ),
    _loop("oncall_mails", DaemonPart.LEASER, lambda h: h.oncall_mails, oncall_mailer.PAUSE_SECONDS),
    _loop(
        "maintenance_teller",
        DaemonPart.LEASER,
        lambda h: maintenance_teller.MaintenanceTeller(h.pools.loops),
        maintenance_teller.PAUSE_SECONDS,
    ),
    _loop(
        "warning_teller",
        DaemonPart.WATCHER,
        lambda h: warning_teller.WarningTeller(h.pools.loops, h.clock.now),
        warning_teller.PAUSE_SECONDS,
    ),
    _loop(
        "watcher",
        DaemonPart.WATCHER,
        lambda h: h.watcher,
        alert_processor.PAUSE_SECONDS,
        work=(Work.ALERTS,),
    ),
    _loop(
        "evaluator",
        DaemonPart.EVALUATOR,
        lambda h: h.evaluator,
        service_evaluator.PAUSE_SECONDS,
        work=(Work.EVALUATIONS,),
    ),
    _loop("self_monitor", DaemonPart.WATCHER, lambda h: h.self_monitor, self_monitor.PAUSE_SECONDS),
    _loop("key_checker", None, lambda h: h.key_checker, key_checker.PAUSE_SECONDS),
    _loop("edits", DaemonPart.HTTP, lambda h: h.edits, cache_invalidator.PAUSE_SECONDS),
    _loop("surveyor", DaemonPart.SURVEYOR, lambda h: h.surveyor, metric_samplers.PAUSE_SECONDS),
    _loop(
        "providers",
        DaemonPart.PROVIDERS,
        lambda h: h.providers,
        file_provider_syncer.PAUSE_SECONDS,
    ),
    _loop("sampler", DaemonPart.JANITOR, lambda h: h.sampler, metric_samplers.PAUSE_SECONDS),
    _loop(
        "proposals",
        DaemonPart.JANITOR,
        lambda h: proposal_adopter.ProposalAdopter(h.pools.loops),
        proposal_adopter.PAUSE_SECONDS,
    ),
    _loop(
        "operations",
        DaemonPart.JANITOR,
        lambda h: h.operations,
        operation_runner.PAUSE_SECONDS,
        work=(Work.OPERATIONS,),
    ),
    _loop("packer", DaemonPart.PACKER, lambda h: h.packer, result_packer.PAUSE_SECONDS),
    _loop("janitor", DaemonPart.JANITOR, lambda h: h.janitor, janitor.PAUSE_SECONDS),
    # After the loops, whose wake events it needs.
    _loop("due_work", None, lambda h: h.due_reader, due_reader.PAUSE_SECONDS),
    Child("watchdog", LOOPS, lambda _: keep_watchdog),
    _server(DaemonPart.HTTP, with_api=True),
    _server(DaemonPart.OPS, with_api=False),
)
