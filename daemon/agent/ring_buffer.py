"""Ring buffer on disk of the results that the server has not acknowledged.

A killed process loses no written result. If the buffer is full, the oldest result is dropped and
counted. Memory is authoritative, and the disk follows in one transaction at a time, so that results
are still sent when the disk is full. An unreadable file is moved aside and logged, never repaired.
"""

import logging
import sqlite3
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from typing import Final

import trio

from ..runtime.wake_event import WakeEvent

log = logging.getLogger("leadline.agent.ring_buffer")

CAPACITY: Final = 10_000
FILE: Final = "ring.db"
# Number of unreadable files to keep. A later one replaces the last.
ASIDE_MOST: Final = 5
DISK_PAUSE_SECONDS: Final = 5.0
IDLE_SECONDS: Final = 60.0

_UNREADABLE: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_LAYOUT: Final = 1
_MAKE: Final = """
create table results (seq integer primary key, lease_until integer not null, body blob not null)
"""
_SELECT: Final = "select seq, lease_until, body from results order by seq"
_PUT: Final = "insert or replace into results (seq, lease_until, body) values (?, ?, ?)"
_DROP_BEFORE: Final = "delete from results where seq < ?"
_DROP_BETWEEN: Final = "delete from results where seq > ? and seq <= ?"


class RingInUse(Exception):
    """Raised if another agent uses the same folder."""


class _Unreadable(Exception):
    """Raised if the file is damaged, not a ring buffer, or of a later version."""


@dataclass(frozen=True, slots=True)
class BufferedResult:
    """Result as JSON. The server waits for it until `lease_until`, in µs."""

    seq: int
    lease_until: int
    body: bytes = field(repr=False)


class RingBuffer:
    """Buffer opened by `open_ring`. `run` writes changes, and the exit writes the last ones."""

    def __init__(self, path: Path, limiter: trio.CapacityLimiter) -> None:
        self._path = path
        self._limiter = limiter
        self._disk, rows = _open_or_set_aside(path)
        self._rows: deque[BufferedResult] = deque(rows, maxlen=CAPACITY)
        self._last = self._rows[-1].seq if self._rows else 0
        self._stored = self._last
        self._cuts: list[tuple[int, int]] = []
        self._unwritten = WakeEvent()
        self._writing = trio.Lock()
        self.news = WakeEvent()
        self.is_failing = False
        # Results dropped because the buffer was full, also those beyond a smaller capacity at
        # start.
        self.overflowed = len(rows) - len(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def last(self) -> int:
        """Returns the number of the newest result, even if that was removed since the start."""
        return self._last

    def keep(self, body: bytes, lease_until: int) -> int:
        """Adds a result and returns its number."""
        if len(self._rows) == CAPACITY:
            self.overflowed += 1
        self._last += 1
        self._rows.append(BufferedResult(self._last, lease_until, body))
        self._unwritten.set()
        self.news.set()
        return self._last

    def oldest(self, most: int) -> list[BufferedResult]:
        return list(islice(self._rows, most))

    def drop(self, rows: Iterable[BufferedResult]) -> None:
        """Removes results from the front of the buffer.

        Results that an overflow has already removed are skipped.
        """
        for row in rows:
            if self._rows and self._rows[0].seq == row.seq:
                self._rows.popleft()
        self._unwritten.set()

    def delete_after(self, seq: int) -> int:
        """Removes all results newer than this number, and returns their count."""
        count = 0
        while self._rows and self._rows[-1].seq > seq:
            self._rows.pop()
            count += 1
        if count:
            self._cuts.append((seq, self._last))
            self._unwritten.set()
        return count

    async def run(self) -> None:
        """Writes changes until cancelled. Disk failures are logged once and retried."""
        while True:
            if await self.flush():
                await self._unwritten.wait(IDLE_SECONDS)
            else:
                await trio.sleep(DISK_PAUSE_SECONDS)

    async def flush(self) -> bool:
        """Writes the changes so far. Returns whether they are on disk."""
        async with self._writing:
            rows = list(takewhile(lambda row: row.seq > self._stored, reversed(self._rows)))
            first = self._rows[0].seq if self._rows else self._last + 1
            cuts, last = list(self._cuts), self._last
            try:
                await trio.to_thread.run_sync(
                    partial(_write, self._disk, rows, first, cuts), limiter=self._limiter
                )
            except sqlite3.Error as error:
                await self._mend(error)
                return False
            self._stored = last
            del self._cuts[: len(cuts)]
        if self.is_failing:
            self.is_failing = False
            log.info("ring buffer is written again")
        return True

    async def __aenter__(self) -> "RingBuffer":
        return self

    async def __aexit__(self, *_: object) -> None:
        """Writes the remaining results, also on cancellation, and closes the file."""
        with trio.CancelScope(shield=True):
            await self.flush()
            await trio.to_thread.run_sync(self._disk.close, limiter=self._limiter)

    async def _mend(self, error: sqlite3.Error) -> None:
        if not self.is_failing:
            self.is_failing = True
            log.error(
                "ring buffer cannot be written: results are kept in memory",
                extra={"cause": str(error)},
            )
        # A closed connection has no error code. It is replaced as well.
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_NOTADB) & 0xFF in _UNREADABLE:
            self._disk = await trio.to_thread.run_sync(
                partial(_renew, self._disk, self._path, str(error)), limiter=self._limiter
            )
            self._stored = 0


async def open_ring(folder: Path, limiter: trio.CapacityLimiter) -> RingBuffer:
    """Opens the ring buffer of a folder, and creates the folder if it is missing.

    Raises: `OSError` if it cannot be opened, `RingInUse` if another process uses it.
    """
    await trio.Path(folder).mkdir(parents=True, exist_ok=True, mode=0o700)
    ring = await trio.to_thread.run_sync(
        partial(RingBuffer, folder / FILE, limiter), limiter=limiter
    )
    log.info("ring buffer opened", extra={"path": str(folder / FILE), "results": len(ring)})
    return ring


def _open_or_set_aside(path: Path) -> tuple[sqlite3.Connection, list[BufferedResult]]:
    try:
        return _open(path)
    except _Unreadable as error:
        return _replace(path, str(error)), []


def _replace(path: Path, cause: str) -> sqlite3.Connection:
    aside = _set_aside(path)
    log.error("ring buffer cannot be read: moved aside", extra={"path": str(aside), "cause": cause})
    return _open(path)[0]


def _renew(disk: sqlite3.Connection, path: Path, cause: str) -> sqlite3.Connection:
    # The close of a write-ahead log writes to the disk, so it is not done in the event loop.
    disk.close()
    return _replace(path, cause)


def _open(path: Path) -> tuple[sqlite3.Connection, list[BufferedResult]]:
    # Locked while the process runs, so that a second agent in the same folder fails safely.
    disk = sqlite3.connect(path, timeout=2, isolation_level=None, check_same_thread=False)
    try:
        disk.execute("pragma locking_mode = exclusive")
        disk.execute("pragma journal_mode = wal")
        # A killed process loses no data. A power failure can lose the last seconds.
        disk.execute("pragma synchronous = normal")
        disk.execute("begin immediate")
        (layout,) = disk.execute("pragma user_version").fetchone()
        if layout == 0:
            disk.execute(_MAKE)
            disk.execute(f"pragma user_version = {_LAYOUT}")
        elif layout != _LAYOUT:
            raise _Unreadable(f"its layout {layout} is of another version")
        disk.execute("commit")
        if disk.execute("pragma quick_check").fetchone() != ("ok",):
            raise _Unreadable("it is damaged")
        return disk, [BufferedResult(*found) for found in disk.execute(_SELECT)]
    except sqlite3.Error as error:
        disk.close()
        raise _named(error, path) from error
    except _Unreadable:
        disk.close()
        raise


def _named(error: sqlite3.Error, path: Path) -> Exception:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_BUSY:
        return RingInUse(f"{path.parent} is in use by another agent")
    # A generic error is from a statement, so the tables have an unexpected structure.
    if code in _UNREADABLE or code == sqlite3.SQLITE_ERROR:
        return _Unreadable(str(error))
    return OSError(f"{path} cannot be opened: {error}")


def _write(
    disk: sqlite3.Connection, rows: list[BufferedResult], first: int, cuts: list[tuple[int, int]]
) -> None:
    """Writes all changes in one transaction. On `sqlite3.Error` the file is unchanged."""
    disk.execute("begin immediate")
    try:
        disk.executemany(_PUT, [(row.seq, row.lease_until, row.body) for row in rows])
        disk.execute(_DROP_BEFORE, (first,))
        disk.executemany(_DROP_BETWEEN, cuts)
        disk.execute("commit")
    except sqlite3.Error:
        if disk.in_transaction:
            disk.execute("rollback")
        raise


def _set_aside(path: Path) -> Path:
    """Moves the file and its companions to the first free name."""
    names = [path.with_name(f"{path.name}.unreadable-{n}") for n in range(1, ASIDE_MOST + 1)]
    aside = next((name for name in names if not name.exists()), names[-1])
    for ending in ("", "-wal", "-shm"):
        part = path.with_name(path.name + ending)
        if part.exists():
            part.replace(aside.with_name(aside.name + ending))
    return aside
