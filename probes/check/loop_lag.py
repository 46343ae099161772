"""How long our own event loop stood still, so that our stalls are not taken for the target's.

A task wakes every `TICK_SECONDS`; by how much it wakes late is how long the loop did not run.
CLOCK_BOOTTIME, where the system has it, also counts the time the machine was asleep.
"""

import time
from bisect import bisect_left
from collections import deque

import trio

TICK_SECONDS = 0.05
# Below this a late wake-up is the ordinary work of a busy loop and is not kept.
NOTED_US = 20_000
# How late the loop wakes is counted up to each of these.
LATENESS_US = (1_000, 2_500, 5_000, 10_000, 20_000, 50_000, 100_000, 500_000)
_TICK_US = int(TICK_SECONDS * 1_000_000)
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class LoopLag:
    """One of these a process; `watch` runs in a nursery for as long as probes run."""

    def __init__(self) -> None:
        # (noted at, stood still), both µs; the stalls fall from left to right, since an older
        # one that is no longer than a newer one can never be the worst of any span again.
        self._stalls: deque[tuple[int, int]] = deque()
        self._slept_at_us: int | None = None
        # How many wake-ups were as late as each of LATENESS_US at most, and not as the one before;
        # the last are later than all. And how late all were together.
        self.lateness = [0] * (len(LATENESS_US) + 1)
        self.late_us = 0

    @staticmethod
    def now_us() -> int:
        """The instant to hand to `stalled_since` later; no date, only a running count."""
        return time.clock_gettime_ns(_CLOCK) // 1_000

    async def watch(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Never returns. Until it runs, `stalled_since` refuses to answer."""
        started = False
        try:
            while True:
                self._slept_at_us = self.now_us()
                if not started:
                    started = True
                    task_status.started()
                await trio.sleep(TICK_SECONDS)
                self._note(self.now_us())
        finally:
            self._slept_at_us = None

    def stalled_since(self, began_us: int) -> int:
        """The longest single standstill, in µs, that touched the span from `began_us` to now."""
        if self._slept_at_us is None:
            raise RuntimeError("Lag.watch is not running: nobody would notice that we stood still")
        now_us = self.now_us()
        # The watcher itself may not have had its turn yet since the loop came back.
        worst_us = max(0, now_us - max(began_us, self._slept_at_us + _TICK_US))
        first = True
        for noted_at_us, stall_us in self._stalls:
            if noted_at_us >= began_us:
                # Only the first can have begun before the span; the next is the longest after it.
                worst_us = max(worst_us, min(stall_us, noted_at_us - began_us))
                if not first:
                    break
                first = False
        return worst_us

    def _note(self, now_us: int) -> None:
        assert self._slept_at_us is not None
        stall_us = now_us - self._slept_at_us - _TICK_US
        self.lateness[bisect_left(LATENESS_US, stall_us)] += 1
        self.late_us += max(stall_us, 0)
        if stall_us < NOTED_US:
            return
        while self._stalls and self._stalls[-1][1] <= stall_us:
            self._stalls.pop()
        self._stalls.append((now_us, stall_us))
        # Falling lengths bound the queue by itself; this bounds it for a loop that is ever late.
        while len(self._stalls) > 1_000:
            self._stalls.popleft()
