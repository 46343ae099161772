"""Checks that runs cancelled at random instants leave nothing open."""

import gc
import os
import random
import threading
import time
import warnings
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

import trio
import trio.testing

from tests.support.run.effort import IS_SOAK

CANCELLATIONS = 300 if IS_SOAK else 60
LONGEST_SECONDS = 0.012
CLOSES_SECONDS = 5.0


@contextmanager
def nothing_left_behind() -> Iterator[None]:
    """A socket that only the collector closes counts as left open: Python warns of it.

    A file that is gone at the end counts for nothing: a server in a thread of its own closes the
    connection of an earlier run when it gets to it.
    """
    gc.collect()
    before = _open_files()
    tasks = trio.lowlevel.current_statistics().tasks_living
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ResourceWarning)
        yield
        gc.collect()
    assert [str(w.message) for w in warned] == []
    assert _opened_since(before) == []
    assert trio.lowlevel.current_statistics().tasks_living == tasks


def _opened_since(before: Counter[str]) -> list[str]:
    """What is still open CLOSES_SECONDS after the run: the threads of servers go on meanwhile."""
    end = time.monotonic() + CLOSES_SECONDS
    while left := sorted((_open_files() - before).elements()):
        if time.monotonic() > end:
            return left
        time.sleep(0.01)
    return []


def _open_files() -> Counter[str]:
    found: Counter[str] = Counter()
    for number in os.listdir("/proc/self/fd"):
        # The descriptor of the listing itself is closed.
        with suppress(FileNotFoundError):
            found[os.readlink(f"/proc/self/fd/{number}")] += 1
    return found


async def settle() -> None:
    """Waits until all tasks of this process are blocked, so that peers have closed their
    ends too.
    """
    await trio.testing.wait_all_tasks_blocked(cushion=0.01)


async def cancelled_often(probe: Callable[[], Awaitable[object]]) -> None:
    """Runs `probe` CANCELLATIONS times and cancels each run within its first 12 ms.

    The 12 ms are divided into CANCELLATIONS parts, and one instant is drawn from each part.
    """
    rng = random.Random(11)
    part = LONGEST_SECONDS / CANCELLATIONS
    instants = [(place + rng.random()) * part for place in range(CANCELLATIONS)]
    rng.shuffle(instants)
    for instant in instants:
        with trio.move_on_after(instant):
            await probe()
    await settle()


async def leaves_nothing(
    probe: Callable[[], Awaitable[object]], threads: trio.CapacityLimiter | None = None
) -> None:
    """Runs `cancelled_often`, after one run that fills the caches.

    If a run works in a thread that `threads` limits, each must have ended its work (Trio keeps the
    thread itself for a while).
    """
    await probe()
    await settle()
    alive = threading.active_count()
    with nothing_left_behind():
        await cancelled_often(probe)
        if threads is not None:
            with trio.fail_after(30):
                for place in range(int(threads.total_tokens)):
                    await threads.acquire_on_behalf_of(place)
    # There can be fewer: a thread of an earlier test can have ended.
    assert threads is not None or threading.active_count() <= alive
