"""The running daemon: what is opened in which order, and closed in the opposite one.

The nesting is the order of stopping: HTTP first (streams are ended, requests finished), then the
ticker, then the probes in flight, then the recorder (what was handed to it is committed), then the
presence says goodbye, then the connections close, and the embedded PostgreSQL last.
"""

import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from ...http.auth.passwords import Passwords
from ...http.server.hypercorn_server import serve
from ...http.wire.app_context import AppContext, Readiness
from ...storage.core.instant import Instant
from ...storage.engine import embedded_postgres as embedded
from ...storage.engine.edit_notify import EDITED
from ...storage.engine.migrate import migrate
from ...storage.engine.pools import open_pool
from ...storage.engine.product_clock import ProductClock
from ...storage.scheduling.tables import presences
from ..config.config_schema import Settings, split_address
from ..config.load import default_data_dir
from ..config.roles import PARTS, DaemonPart, ProcessRole
from ..loops import (
    alert_processor as watcher,
)
from ..loops import (
    cache_invalidator as edits,
)
from ..loops import (
    canary_dispatcher as dispatcher,
)
from ..loops import (
    composite_evaluator as composer,
)
from ..loops import (
    figure_repairer as repairer,
)
from ..loops import (
    file_provider_syncer as providers,
)
from ..loops import (
    janitor,
    prober,
    service_sealer,
)
from ..loops import (
    monitor_sealer as sealer,
)
from ..loops import (
    outbox_leaser as leaser,
)
from ..loops import (
    password_reset_mailer as resets,
)
from ..loops import (
    presence_renewer as attendance,
)
from ..loops import (
    push_deadline_checker as listener,
)
from ..loops import (
    region_load_sampler as surveyor,
)
from ..loops import (
    schedule_ticker as ticker,
)
from ..loops import (
    service_evaluator as evaluator,
)
from ..runtime import limits
from ..runtime.gc_tuning import set_aside
from ..runtime.sd_notify import keep_alive, notify
from ..runtime.supervisor import LoopHeartbeats, Supervisor
from ..runtime.wake_event import WakeEvent
from .first_start import InitialAdmin, found, load_keyring
from .loop_runner import run_loop
from .metrics import Metrics
from .startup_message import print_ready
from .wiring import Components, Pools, build, context_of, make_clock

log = logging.getLogger("leadline.daemon")

PassOnce = Callable[[], Awaitable[object]]


async def run_daemon(settings: Settings, role: ProcessRole) -> None:
    """Runs until SIGTERM or SIGINT."""
    data_dir = Path(settings.data_dir) if settings.data_dir else default_data_dir()
    stopping = trio.Event()
    async with trio.open_nursery() as watching:
        watching.start_soon(_await_signal, stopping)
        async with _store(settings, data_dir) as dsn:
            await migrate(dsn)
            await _run_on(settings, role, data_dir, dsn, stopping)
        watching.cancel_scope.cancel()


async def _await_signal(stopping: trio.Event) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            log.info("stopping", extra={"signal": signal.Signals(number).name})
            notify("STOPPING=1")
            if stopping.is_set():
                raise KeyboardInterrupt
            stopping.set()


@asynccontextmanager
async def _store(settings: Settings, data_dir: Path) -> AsyncIterator[str]:
    """The DSN of the store; an embedded server lives as long as this."""
    if settings.database.dsn:
        yield settings.database.dsn
        return
    await trio.Path(data_dir).mkdir(parents=True, exist_ok=True, mode=0o755)
    async with embedded.running(data_dir) as server, trio.open_nursery() as watching:
        watching.start_soon(_keep_server, server)
        yield server.dsn
        watching.cancel_scope.cancel()


async def _keep_server(server: embedded.EmbeddedServer) -> None:
    """An embedded server that dies is started again: it recovers what was committed."""
    supervisor = Supervisor()

    async def watch() -> None:
        status = await server.died()
        log.error("the embedded PostgreSQL ended", extra={"status": status})
        await server.start()

    await supervisor.keep("postgres", watch)


async def _run_on(
    settings: Settings, role: ProcessRole, data_dir: Path, dsn: str, stopping: trio.Event
) -> None:
    metrics = Metrics()
    size = settings.database.pool_size
    http_size = max(int(size * limits.HTTP_SHARE), 2)
    async with trio.open_nursery() as clocks:
        read_clocks: list[ProductClock] = []

        def now() -> Instant:
            # Before its first reading there is no clock; what runs then stamps nothing.
            return read_clocks[0].now() if read_clocks else Instant(0)

        async with (
            open_pool(
                dsn, name="loops", size=size - http_size, clock=now, observe=metrics.observe
            ) as loops,
            open_pool(
                dsn, name="http", size=http_size, clock=now, observe=metrics.observe
            ) as pages,
        ):
            clock = make_clock(loops)
            await clocks.start(clock.run)
            read_clocks.append(clock)
            passwords = Passwords(limits.hashing())
            keyring = await load_keyring(loops, settings, data_dir)
            founder = await found(loops, settings, passwords)
            house = build(settings, role, Pools(loops, pages), clock, keyring)
            listen_dsn = settings.database.listen_dsn or dsn
            await _run_house(house, passwords, metrics, founder, listen_dsn, stopping)
            clocks.cancel_scope.cancel()


async def _run_house(
    house: Components,
    passwords: Passwords,
    metrics: Metrics,
    founder: InitialAdmin | None,
    listen_dsn: str,
    stopping: trio.Event,
) -> None:
    beats, supervisor = LoopHeartbeats(), Supervisor()
    metrics.watch(house, beats, supervisor)
    await house.janitor.make_room()
    context = context_of(
        house, passwords, readiness=lambda: _readiness(house, beats), metrics=metrics.render
    )
    if DaemonPart.HTTP in PARTS[house.role]:
        metrics.watch_asked(context)
    async with trio.open_nursery() as ground:
        await ground.start(house.reach.lag.watch)
        if DaemonPart.HTTP in PARTS[house.role]:
            heard = {presences.ASKED: house.attendance.wake.set, EDITED: context.forget}
            ground.start_soon(edits.hear, listen_dsn, heard, context.forget)
        await house.attendance.pass_once()
        ground.start_soon(_attend, house, beats, supervisor)
        async with trio.open_nursery() as recording:
            await recording.start(house.recorder.run)
            await _run_loops(house, context, beats, supervisor, founder, stopping)
            await house.recorder.close()
            recording.cancel_scope.deadline = trio.current_time() + limits.RECORDER_DRAIN_SECONDS
        ground.cancel_scope.cancel()
    await house.attendance.say_goodbye()


async def _attend(house: Components, beats: LoopHeartbeats, supervisor: Supervisor) -> None:
    await _loop(
        supervisor,
        "attendance",
        house.attendance.pass_once,
        attendance.PAUSE_SECONDS,
        beats,
        house.attendance.wake,
    )


async def _run_loops(
    house: Components,
    context: AppContext,
    beats: LoopHeartbeats,
    supervisor: Supervisor,
    founder: InitialAdmin | None,
    stopping: trio.Event,
) -> None:
    async with trio.open_nursery() as probing:
        if house.prober is not None:
            await probing.start(house.prober.run)
        if house.dispatcher is not None:
            await probing.start(house.dispatcher.run)
        if house.leaser is not None:
            await probing.start(house.leaser.run)
        async with trio.open_nursery() as loops:
            _start_loops(loops, house, beats, supervisor)
            loops.start_soon(keep_alive, lambda: not beats.stale())
            async with trio.open_nursery() as serving:
                address = await _start_serving(serving, house, context)
                set_aside()
                print_ready(house, address, founder)
                notify("READY=1")
                await stopping.wait()
                house.recorder.stop_hearing()
                house.bus.close()
                context.stopping.set()
                serving.cancel_scope.deadline = trio.current_time() + limits.HTTP_FINISH_SECONDS
            loops.cancel_scope.cancel()
        if house.prober is not None:
            house.prober.close()
        if house.dispatcher is not None:
            house.dispatcher.close()
        if house.leaser is not None:
            house.leaser.close()
        probing.cancel_scope.deadline = trio.current_time() + limits.PROBES_FINISH_SECONDS


async def _start_serving(serving: trio.Nursery, house: Components, context: AppContext) -> str:
    """Where it listens; empty where this role listens nowhere."""
    server = house.settings.server
    with_api = DaemonPart.HTTP in PARTS[house.role]
    listen = server.listen if with_api else server.ops_listen
    if not listen:
        return ""
    address: str = await serving.start(serve, context, split_address(listen), with_api)
    return address


def _start_loops(
    nursery: trio.Nursery, house: Components, beats: LoopHeartbeats, supervisor: Supervisor
) -> None:
    def start(name: str, pass_once, seconds: float, wake: WakeEvent | None = None) -> None:  # type: ignore[no-untyped-def]
        nursery.start_soon(_loop, supervisor, name, pass_once, seconds, beats, wake)

    if house.ticker is not None:
        start("ticker", house.ticker.pass_once, ticker.PAUSE_SECONDS)
    if house.composer is not None:
        start("composer", house.composer.pass_once, composer.PAUSE_SECONDS)
    if house.listener is not None:
        start("listener", house.listener.pass_once, listener.PAUSE_SECONDS)
    if house.prober is not None:
        start("prober", house.prober.pass_once, prober.PAUSE_SECONDS, house.prober.wake)
    if house.dispatcher is not None:
        start("dispatcher", house.dispatcher.pass_once, dispatcher.PAUSE_SECONDS)
    if house.sealer is not None:
        start("sealer", house.sealer.pass_once, sealer.PAUSE_SECONDS)
    if house.service_sealer is not None:
        seal = house.service_sealer
        start("service_sealer", seal.pass_once, service_sealer.PAUSE_SECONDS)
    if house.repairer is not None:
        start("repairer", house.repairer.pass_once, repairer.PAUSE_SECONDS)
    if house.leaser is not None:
        start("leaser", house.leaser.pass_once, leaser.PAUSE_SECONDS, house.leaser.wake)
    if house.resets is not None:
        start("resets", house.resets.pass_once, resets.PAUSE_SECONDS, house.resets.wake)
    if house.watcher is not None:
        start("watcher", house.watcher.pass_once, watcher.PAUSE_SECONDS, house.watcher.wake)
    if house.evaluator is not None:
        start("evaluator", house.evaluator.pass_once, evaluator.PAUSE_SECONDS)
    if DaemonPart.HTTP in PARTS[house.role]:
        start("edits", house.edits.pass_once, edits.PAUSE_SECONDS, house.edits.wake)
    if house.surveyor is not None:
        start("surveyor", house.surveyor.pass_once, surveyor.PAUSE_SECONDS)
    if house.providers is not None:
        start("providers", house.providers.pass_once, providers.PAUSE_SECONDS)
    if DaemonPart.JANITOR in PARTS[house.role]:
        start("janitor", house.janitor.pass_once, janitor.PAUSE_SECONDS)


async def _loop(
    supervisor: Supervisor,
    name: str,
    pass_once: PassOnce,
    seconds: float,
    beats: LoopHeartbeats,
    wake: WakeEvent | None = None,
) -> None:
    beats.expect(name, seconds)

    async def child() -> None:
        await run_loop(name, pass_once, seconds, beats.beat, wake)

    await supervisor.keep(name, child)


def _readiness(house: Components, beats: LoopHeartbeats) -> Readiness:
    faults = []
    if house.pools.loops.counts().cause:
        faults.append("database")
    if house.clock.is_notably_off:
        faults.append("clock")
    faults += [f"stalled: {name}" for name in beats.stale()]
    return Readiness(faults=tuple(faults))
