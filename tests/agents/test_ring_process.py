"""The ring buffer: kept results survive a kill of the process, dropped results are counted, and an
unreadable file is set aside."""

import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from leadline.daemon.agent import ring_buffer as rings
from leadline.daemon.agent.ring_buffer import CAPACITY, RingBuffer, RingInUse, open_ring
from leadline.daemon.runtime import limits

KEEPING = Path(__file__).with_name("keeping.py")


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[RingBuffer]:
    async with await open_ring(folder, limits.ring()) as ring:
        yield ring


def numbers(ring: RingBuffer) -> list[int]:
    return [row.seq for row in ring.oldest(CAPACITY)]


async def test_kept_results_are_restored_in_order(tmp_path: Path) -> None:
    async with opened(tmp_path) as ring:
        for n in range(5):
            ring.keep(b"%d" % n, lease_until=n)
    async with opened(tmp_path) as ring:
        assert [(row.body, row.lease_until) for row in ring.oldest(9)] == [
            (b"%d" % n, n) for n in range(5)
        ]
        ring.drop(ring.oldest(2))
    async with opened(tmp_path) as ring:
        assert [row.body for row in ring.oldest(9)] == [b"2", b"3", b"4"]


def kept_until_killed(folder: Path, lines: int) -> tuple[int, int]:
    """The first and the last number that the killed process reported as on disk."""
    with subprocess.Popen(
        [sys.executable, str(KEEPING), str(folder)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        # The lines that it printed before its end count as well.
        said += process.stdout.read().splitlines()
    first, last = map(int, said[-1].split())
    return first, last


def set_aside(folder: Path) -> int:
    return len(list(folder.glob("*.unreadable-?")))


async def test_kill_9_loses_no_result_that_was_reported_as_on_disk(
    tmp_path: Path,
) -> None:
    for lines in (1, 40, 3, 90, 17):
        said_first, said_last = kept_until_killed(tmp_path, lines)
        async with opened(tmp_path) as ring:
            found = numbers(ring)
            assert found == list(range(found[0], found[-1] + 1)), "a number is missing or repeated"
            assert found[0] <= said_first + 3
            assert found[-1] >= said_last
            assert all(row.body == b'{"n":%d}' % row.seq for row in ring.oldest(CAPACITY))


async def test_when_it_is_full_the_oldest_goes_and_is_counted(tmp_path: Path) -> None:
    async with opened(tmp_path) as ring:
        for _ in range(CAPACITY + 3):
            ring.keep(b"{}", 0)
        assert (len(ring), ring.overflowed) == (CAPACITY, 3)
        held = ring.oldest(2)
        ring.keep(b"{}", 0)
        # The first of the two was overwritten, so the acknowledgement of both drops only the other.
        ring.drop(held)
        assert numbers(ring)[0] == 6
    async with opened(tmp_path) as ring:
        assert (numbers(ring)[0], len(ring)) == (6, CAPACITY - 1)


async def test_results_newer_than_a_number_can_be_dropped_permanently(tmp_path: Path) -> None:
    async with opened(tmp_path) as ring:
        for _ in range(5):
            ring.keep(b"{}", 0)
        assert await ring.flush()
        assert ring.delete_after(3) == 2
        assert ring.delete_after(3) == 0
        assert ring.keep(b"new", 0) == 6
    async with opened(tmp_path) as ring:
        assert numbers(ring) == [1, 2, 3, 6]


@pytest.mark.parametrize("damage", [b"", b"not a database at all" * 400, None])
async def test_a_file_that_cannot_be_read_is_set_aside(
    tmp_path: Path, damage: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path) as ring:
        for _ in range(2_000):
            ring.keep(b"x" * 100, 0)
    path = tmp_path / rings.FILE
    data = path.read_bytes()
    if damage is None:
        # Pages in the middle, the head left as it was.
        path.write_bytes(data[:8_192] + b"\xff" * 60_000 + data[68_192:])
    else:
        path.write_bytes(damage)
    async with opened(tmp_path) as ring:
        assert len(ring) == 0
        ring.keep(b"{}", 0)
        assert await ring.flush()
    aside = tmp_path / f"{rings.FILE}.unreadable-1"
    # A file that is empty is a new one.
    assert aside.exists() is (damage != b"")
    assert ("moved aside" in caplog.text) is (damage != b"")
    async with opened(tmp_path) as ring:
        assert len(ring) == 1


async def test_a_ring_of_another_version_is_set_aside_whole(tmp_path: Path) -> None:
    async with opened(tmp_path) as ring:
        ring.keep(b"{}", 0)
    disk = sqlite3.connect(tmp_path / rings.FILE)
    disk.execute("pragma user_version = 99")
    disk.close()
    async with opened(tmp_path) as ring:
        assert len(ring) == 0
    kept = sqlite3.connect(tmp_path / f"{rings.FILE}.unreadable-1")
    assert kept.execute("select count(*) from results").fetchone() == (1,)
    kept.close()


async def test_files_that_were_set_aside_do_not_fill_the_disk(tmp_path: Path) -> None:
    for _ in range(rings.ASIDE_MOST + 3):
        (tmp_path / rings.FILE).write_bytes(b"not a database at all" * 400)
        async with opened(tmp_path):
            pass
    assert set_aside(tmp_path) == rings.ASIDE_MOST


async def test_a_second_agent_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as ring:
        ring.keep(b"{}", 0)
        with pytest.raises(RingInUse, match="another agent"):
            await open_ring(tmp_path, limits.ring())
        assert await ring.flush()
    async with opened(tmp_path) as ring:
        assert len(ring) == 1


async def test_an_unusable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        await open_ring(tmp_path / "file", limits.ring())


async def test_a_failing_disk_does_not_stop_the_upload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as ring:
        ring.keep(b"1", 0)
        with monkeypatch.context() as patched:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL

            def fails(*_: object) -> None:
                raise error

            patched.setattr(rings, "_write", fails)
            assert not await ring.flush()
            assert ring.is_failing
            ring.keep(b"2", 0)
            assert [row.body for row in ring.oldest(9)] == [b"1", b"2"]
            ring.drop(ring.oldest(1))
        assert await ring.flush()
        assert not ring.is_failing
    async with opened(tmp_path) as ring:
        assert [row.body for row in ring.oldest(9)] == [b"2"]


async def test_a_file_damaged_at_run_time_is_replaced_with_all_waiting_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = sqlite3.DatabaseError("database disk image is malformed")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT

    def fails(*_: object) -> None:
        raise error

    async with opened(tmp_path) as ring:
        ring.keep(b"1", 0)
        assert await ring.flush()
        ring.keep(b"2", 0)
        with monkeypatch.context() as patched:
            patched.setattr(rings, "_write", fails)
            assert not await ring.flush()
        assert await ring.flush()
    assert (tmp_path / f"{rings.FILE}.unreadable-1").exists()
    async with opened(tmp_path) as ring:
        assert [row.body for row in ring.oldest(9)] == [b"1", b"2"]


class _Damaged:
    """A connection whose writes fail as those to a damaged file. Notes the thread of its close."""

    def __init__(self, disk: sqlite3.Connection) -> None:
        self.disk = disk
        self.closed_in: list[int] = []

    def execute(self, *_: object) -> None:
        error = sqlite3.DatabaseError("database disk image is malformed")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error

    def close(self) -> None:
        self.closed_in.append(threading.get_ident())
        self.disk.close()


async def test_a_damaged_file_is_closed_outside_the_event_loop(tmp_path: Path) -> None:
    async with opened(tmp_path) as ring:
        ring.keep(b"1", lease_until=1)
        damaged: Any = _Damaged(ring._disk)
        ring._disk = damaged
        assert not await ring.flush()
        assert await ring.flush()
        assert len(damaged.closed_in) == 1
        assert threading.get_ident() not in damaged.closed_in
    async with opened(tmp_path) as ring:
        assert [row.body for row in ring.oldest(9)] == [b"1"]
