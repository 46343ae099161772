"""Stalls of the event loop, so that they are not reported as failures of the target.

A task wakes every `TICK_SECONDS`, and its lateness is the duration of the stall. CLOCK_BOOTTIME, if
the system has it, also counts time in suspend.
"""

import time
from bisect import bisect_left
from collections import deque

import trio

TICK_SECONDS = 0.05
# Smaller lateness is normal in a busy loop and is not recorded as a stall.
NOTED_US = 20_000
# Upper bounds of the histogram of lateness, µs.
LATENESS_US = (1_000, 2_500, 5_000, 10_000, 20_000, 50_000, 100_000, 500_000)
_TICK_US = int(TICK_SECONDS * 1_000_000)
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class LoopLag:
    """Monitor of the event loop, one per process.

    `watch` must run in a nursery for as long as probes run.
    """

    def __init__(self) -> None:
        # (recorded at, duration), both µs. Durations decrease from left to right: an older stall
        # that is not longer than a newer one can never be the longest of a span.
        self._stalls: deque[tuple[int, int]] = deque()
        self._slept_at_us: int | None = None
        # Wake-ups per bucket of LATENESS_US, the last for later ones; and the sum of all lateness.
        self.lateness = [0] * (len(LATENESS_US) + 1)
        self.late_us = 0

    @staticmethod
    def now_us() -> int:
        """Returns an instant of the running clock for `stalled_since`, in µs. Not a date."""
        return time.clock_gettime_ns(_CLOCK) // 1_000

    async def watch(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Records stalls and never returns. Until it runs, `stalled_since` raises."""
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
        """Returns the longest single stall, in µs, between `began_us` and now.

        Raises: `RuntimeError` if `watch` is not running.
        """
        if self._slept_at_us is None:
            raise RuntimeError("LoopLag.watch is not running, so stalls are not recorded")
        now_us = self.now_us()
        # The watch task may not have run since the end of a current stall.
        worst_us = max(0, now_us - max(began_us, self._slept_at_us + _TICK_US))
        first = True
        for noted_at_us, stall_us in self._stalls:
            if noted_at_us >= began_us:
                # Only the first stall can have begun before the span. The next one is the longest
                # later one.
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
        # Decreasing durations usually bound the queue. This bounds it for a loop that is always
        # late.
        while len(self._stalls) > 1_000:
            self._stalls.popleft()
