"""Results that the server has not acknowledged, on disk: none is lost when the process is killed,
and when there is room for no more the oldest goes, and is counted.

Memory leads and the disk follows, in one transaction at a time: what cannot be written, as the disk
is full, is still sent. A file that cannot be read is set aside and said, never mended.
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
# Files that could not be read are kept so many; a later one replaces the last.
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
    """Another agent keeps its results in the same folder."""


class _Unreadable(Exception):
    """The file is damaged, no store of ours, or of a later version."""


@dataclass(frozen=True, slots=True)
class BufferedResult:
    """`body` is a result as it is sent; the server waits for it until `lease_until`, in µs."""

    seq: int
    lease_until: int
    body: bytes = field(repr=False)


class RingBuffer:
    """Opened by `open_ring`; `run` writes what is kept and dropped, and leaving it the last."""

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
        # Dropped because there was no room; what a smaller version left over counts too.
        self.overflowed = len(rows) - len(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def last(self) -> int:
        """The number of the newest result that was ever kept."""
        return self._last

    def keep(self, body: bytes, lease_until: int) -> int:
        """Takes a result; its number."""
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
        """They have been acknowledged, or will never be. The oldest of them lead the ring, unless
        it has overflowed meanwhile."""
        for row in rows:
            if self._rows and self._rows[0].seq == row.seq:
                self._rows.popleft()
        self._unwritten.set()

    def delete_after(self, seq: int) -> int:
        """All that is newer than this number; how many."""
        count = 0
        while self._rows and self._rows[-1].seq > seq:
            self._rows.pop()
            count += 1
        if count:
            self._cuts.append((seq, self._last))
            self._unwritten.set()
        return count

    async def run(self) -> None:
        """Writes what changed, until cancelled; trouble with the disk is said once and tried
        again."""
        while True:
            if await self.flush():
                await self._unwritten.wait(IDLE_SECONDS)
            else:
                await trio.sleep(DISK_PAUSE_SECONDS)

    async def flush(self) -> bool:
        """Whether all that was kept by now is on disk."""
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
        """Writes what can be written, whatever ends us, and lets go of the file."""
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
        # A file that was closed for good has no code: it is begun anew as well.
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_NOTADB) & 0xFF in _UNREADABLE:
            self._disk.close()
            self._disk = await trio.to_thread.run_sync(
                partial(_replace, self._path, str(error)), limiter=self._limiter
            )
            self._stored = 0


async def open_ring(folder: Path, limiter: trio.CapacityLimiter) -> RingBuffer:
    """The ring of a folder, which is made where it is missing. OSError where it cannot be had,
    RingInUse where another process has it."""
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


def _open(path: Path) -> tuple[sqlite3.Connection, list[BufferedResult]]:
    # Held for as long as we run: a second agent in the same folder is told, and harms nothing.
    disk = sqlite3.connect(path, timeout=2, isolation_level=None, check_same_thread=False)
    try:
        disk.execute("pragma locking_mode = exclusive")
        disk.execute("pragma journal_mode = wal")
        # A killed process loses nothing; a machine without power the last seconds at most.
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
    # A plain error is of a statement: the tables are not those that they should be.
    if code in _UNREADABLE or code == sqlite3.SQLITE_ERROR:
        return _Unreadable(str(error))
    return OSError(f"{path} cannot be opened: {error}")


def _write(
    disk: sqlite3.Connection, rows: list[BufferedResult], first: int, cuts: list[tuple[int, int]]
) -> None:
    """One transaction; sqlite3.Error leaves the file as it was."""
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
    """The file and what belongs to it, under the first name that is free."""
    names = [path.with_name(f"{path.name}.unreadable-{n}") for n in range(1, ASIDE_MOST + 1)]
    aside = next((name for name in names if not name.exists()), names[-1])
    for ending in ("", "-wal", "-shm"):
        part = path.with_name(path.name + ending)
        if part.exists():
            part.replace(aside.with_name(aside.name + ending))
    return aside
