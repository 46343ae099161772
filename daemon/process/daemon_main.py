"""Main function of the daemon: order of construction, start and stop.

Until the daemon is ready, `startup` answers on its address and waits for the database.

At the stop the children end first, in the phases of `children`. Then the presence is deleted, the
connections close, and the embedded PostgreSQL stops.
"""

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import trio
from msgspec.structs import replace

from ...http.auth.passwords import Passwords
from ...http.server.hypercorn_server import listen
from ...http.wire.app_context import Readiness
from ...storage.core.instant import Instant
from ...storage.engine import embedded_postgres as embedded
from ...storage.engine.keyring import Keyring
from ...storage.engine.migrate import migrate
from ...storage.engine.pools import Pool, open_pool
from ...storage.engine.product_clock import ProductClock
from ..config.config_schema import Settings, split_address
from ..config.load import BadConfig, default_data_dir
from ..config.roles import PARTS, DaemonPart, ProcessRole, listen_address, serves_console
from ..runtime import limits
from ..runtime.gc_tuning import set_aside
from ..runtime.sd_notify import notify
from ..runtime.stop_signal import SIGNALS
from ..runtime.supervisor import LoopHeartbeats, Supervisor, supervising
from ..runtime.thread_switching import favor_event_loop
from .api_processes import ApiProcesses
from .children import CHILDREN, STOP_ORDER, Daemon
from .first_start import FirstStart, InitialAdmin, configured_keys, load_keyring
from .metrics import Metrics
from .parent_process import PARENT, InheritedSocket, ParentProcess
from .startup import NOT_READY, Startup
from .startup_message import print_ready
from .wiring import Components, Pools, build, context_of, make_clock


async def run_daemon(
    settings: Settings, role: ProcessRole, inherited: InheritedSocket | None = None
) -> None:
    """Runs the daemon until SIGTERM or SIGINT.

    With `inherited` it is a further process on the socket of its parent, which answers there
    already: it serves when it is ready, and stops also when its parent ends.

    Raises: BadConfig if the process cannot listen on its address, or if a key is missing.
    """
    data_dir = Path(settings.data_dir) if settings.data_dir else default_data_dir()
    stopping = trio.Event()
    listening = inherited.listening if inherited else _listen(settings, role)
    # A started embedded server is available, or has a fault that waiting does not repair.
    answering = None if inherited else listening
    startup = Startup(
        answering,
        stopping,
        waits=bool(settings.database.dsn),
        base_path=settings.server.base_path,
    )
    process = _Process(settings, role, data_dir, listening, startup, inherited is not None)
    async with supervising() as supervisor:
        await supervisor.start([SIGNALS], stopping)
        if inherited:
            await supervisor.start([PARENT], ParentProcess(inherited.parent, stopping))
        await supervisor.start([NOT_READY], startup)
        async with _store(process) as store:
            if store is None:
                return
            if await startup.until_available(partial(migrate, store.dsn)) is not None:
                await _run_on(store, process, supervisor, stopping)


def _listen(settings: Settings, role: ProcessRole) -> socket.socket | None:
    """Returns None if `role` serves no HTTP."""
    key, address = listen_address(settings.server, role)
    if not address:
        return None
    try:
        return listen(split_address(address))
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadConfig([f"{key}: cannot listen on {address}: {reason}"]) from error


@dataclass(frozen=True, slots=True)
class _Process:
    settings: Settings
    role: ProcessRole
    data_dir: Path
    listening: socket.socket | None
    startup: Startup
    is_further: bool


@dataclass(frozen=True, slots=True)
class _Store:
    """`server` is None with an external PostgreSQL."""

    dsn: str
    server: embedded.EmbeddedServer | None = None


@asynccontextmanager
async def _store(process: _Process) -> AsyncIterator[_Store | None]:
    """Yields the store; an embedded server runs until the end of the context. Yields None if the
    process is stopped while a command, such as a backup, uses the embedded store.

    Raises: CannotRun; AlreadyRunning if another daemon runs on the data directory.
    """
    dsn, data_dir = process.settings.database.dsn, process.data_dir
    if dsn:
        yield _Store(dsn)
        return
    await trio.Path(data_dir).mkdir(parents=True, exist_ok=True, mode=0o755)
    with embedded.daemon_lock(data_dir):
        async with AsyncExitStack() as stack:

            async def start() -> embedded.EmbeddedServer:
                return await stack.enter_async_context(embedded.running(data_dir))

            server = await process.startup.until_available(start)
            yield _Store(server.dsn, server) if server is not None else None


async def _run_on(
    store: _Store, process: _Process, supervisor: Supervisor, stopping: trio.Event
) -> None:
    metrics = Metrics()
    size = process.settings.database.pool_size
    http_size = max(int(size * limits.HTTP_SHARE), 2)
    read_clocks: list[ProductClock] = []

    def now() -> Instant:
        # No clock exists before the first reading. Code that runs then stores no instants.
        return read_clocks[0].now() if read_clocks else Instant(0)

    opened = partial(
        open_pool,
        store.dsn,
        clock=now,
        observe=metrics.observe,
        prepares=not process.settings.database.listen_dsn,
    )
    async with (
        opened(name="loops", size=size - http_size) as loops,
        opened(name="http", size=http_size) as pages,
    ):
        clock = make_clock(loops)
        read = partial(_read_state, process, loops, clock, read_clocks)
        keyring = await process.startup.until_available(read)
        if keyring is None:
            return
        passwords = Passwords(limits.hashing())
        house = build(process.settings, process.role, Pools(loops, pages), clock, keyring)
        daemon = _daemon_of(house, store, process, passwords, metrics, supervisor)
        # Created once, outside of the retries: a retry must recognize what it wrote before.
        first_start = FirstStart(process.settings, process.role, passwords)
        joined = await process.startup.until_available(partial(_join, house, first_start))
        if joined is None:
            return
        await process.startup.end()
        async with supervisor.stopping_after(STOP_ORDER):
            await _start(daemon, joined.admin, supervisor, is_further=process.is_further)
            await stopping.wait()
        await house.attendance.delete_presence()


async def _read_state(
    process: _Process, pool: Pool, clock: ProductClock, read_clocks: list[ProductClock]
) -> Keyring:
    await clock.refresh()
    read_clocks[:] = [clock]
    return await load_keyring(pool, process.settings, process.data_dir)


@dataclass(frozen=True, slots=True)
class _Joined:
    admin: InitialAdmin | None


async def _join(house: Components, first_start: FirstStart) -> _Joined:
    """Performs the first writes of the process.

    Raises: Unavailable, also if a standby rejects writes; the start then waits.
    """
    # First, because it fails with the reason that the server gives.
    await house.attendance.pass_once()
    await house.janitor.make_room()
    # Last, because a generated password is shown only if the start continues.
    return _Joined(await first_start.found(house.pools.loops))


def _daemon_of(
    house: Components,
    store: _Store,
    process: _Process,
    passwords: Passwords,
    metrics: Metrics,
    supervisor: Supervisor,
) -> Daemon:
    heartbeats = supervisor.heartbeats
    metrics.watch(house, supervisor)
    ready = trio.Event()
    context = context_of(
        house,
        passwords,
        readiness=lambda: _readiness(house, heartbeats),
        was_ready=ready.is_set,
        metrics=metrics.render,
    )
    if DaemonPart.HTTP in PARTS[house.role]:
        metrics.watch_asked(context)
    listen_dsn = house.settings.database.listen_dsn or store.dsn
    processes = _further_processes(process, store)
    return Daemon(house, context, process.listening, listen_dsn, store.server, processes, ready)


def _further_processes(process: _Process, store: _Store) -> ApiProcesses | None:
    """Returns the processes that share the socket of this one; None if there are none."""
    settings = process.settings
    count = settings.server.processes - 1
    if process.is_further or not count or not serves_console(process.role):
        return None
    assert process.listening is not None, "a role with the console listens"
    # They have neither the data directory nor its key file.
    keys = configured_keys(settings, process.data_dir)
    further = replace(
        settings,
        database=replace(settings.database, dsn=store.dsn),
        security=replace(
            settings.security, encryption_key=keys.current if keys else "", admin_password=""
        ),
    )
    return ApiProcesses(further, count, process.listening.dup())


async def _start(
    daemon: Daemon, founder: InitialAdmin | None, supervisor: Supervisor, *, is_further: bool
) -> None:
    """Starts the children of this role and reports that the daemon is ready."""
    parts = PARTS[daemon.house.role]
    children = [child for child in CHILDREN if not child.part or child.part in parts]
    reported = await supervisor.start(children, daemon)
    set_aside()
    favor_event_loop()
    address = reported.get(DaemonPart.HTTP) or reported.get(DaemonPart.OPS) or ""
    print_ready(daemon.house, str(address), founder, is_further=is_further)
    daemon.ready.set()
    notify("READY=1\nSTATUS=")


def _readiness(house: Components, heartbeats: LoopHeartbeats) -> Readiness:
    faults = []
    if house.pools.loops.counts().cause:
        faults.append("database")
    if house.clock.is_notably_off:
        faults.append("clock")
    faults += [f"stalled: {name}" for name in heartbeats.stale()]
    return Readiness(faults=tuple(faults))
