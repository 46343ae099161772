"""Stalls of the event loop, so that they are not reported as failures of the target.

A task wakes every `TICK_SECONDS`, and its lateness is the duration of the stall. While no run is in
progress it wakes every `REST_SECONDS`, because the wake-ups were half of the CPU of an idle daemon.
CLOCK_BOOTTIME, if the system has it, also counts time in suspend.
"""

import time
from bisect import bisect_left
from collections import deque

import trio

TICK_SECONDS = 0.05
REST_SECONDS = 0.5
# Smaller lateness is normal in a busy loop and is not recorded as a stall.
NOTED_US = 20_000
# Upper bounds of the histogram of lateness, µs.
LATENESS_US = (1_000, 2_500, 5_000, 10_000, 20_000, 50_000, 100_000, 500_000)
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class LoopLag:
    """Monitor of the event loop, one per process.

    `watch` must run in a nursery for as long as probes run. Each run calls `begin`, and `end` once.
    """

    def __init__(self) -> None:
        # (recorded at, duration), both µs. Durations decrease from left to right: an older stall
        # that is not longer than a newer one can never be the longest of a span.
        self._stalls: deque[tuple[int, int]] = deque()
        self._slept_at_us: int | None = None
        # Time until the watch task wakes, and its event while it rests.
        self._tick_us = int(TICK_SECONDS * 1_000_000)
        self._rest: trio.Event | None = None
        # Runs in progress, and whether one began since the last wake-up.
        self._runs = 0
        self._has_begun = False
        # Wake-ups per bucket of LATENESS_US, the last for later ones; and the sum of all lateness.
        self.lateness = [0] * (len(LATENESS_US) + 1)
        self.late_us = 0

    @property
    def is_watched(self) -> bool:
        return self._slept_at_us is not None

    @staticmethod
    def now_us() -> int:
        """Returns an instant of the running clock for `stalled_since`, in µs. Not a date."""
        return time.clock_gettime_ns(_CLOCK) // 1_000

    async def watch(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Records stalls and never returns. Until it runs, `stalled_since` raises."""
        started = False
        try:
            while True:
                is_resting = not (self._runs or self._has_begun)
                self._has_begun = False
                self._tick_us = int((REST_SECONDS if is_resting else TICK_SECONDS) * 1_000_000)
                self._slept_at_us = self.now_us()
                if not started:
                    started = True
                    task_status.started()
                await self._sleep(is_resting)
                self._note(self.now_us())
        finally:
            self._slept_at_us = self._rest = None

    async def _sleep(self, is_resting: bool) -> None:
        if not is_resting:
            await trio.sleep(TICK_SECONDS)
            return
        self._rest = trio.Event()
        with trio.move_on_after(REST_SECONDS):
            await self._rest.wait()
        self._rest = None

    def begin(self) -> int:
        """Ends the rest of the watch task. Returns the instant of a run for `stalled_since`."""
        now_us = self.now_us()
        self._runs += 1
        self._has_begun = True
        if self._rest is not None and self._slept_at_us is not None:
            # A stall before the run ends here, and the watch task will not see it.
            self._keep(now_us, now_us - self._slept_at_us - self._tick_us)
            # From here on the task is late: a stall now is one of this run.
            self._slept_at_us, self._tick_us = now_us, 0
            self._rest.set()
            self._rest = None
        return now_us

    def end(self) -> None:
        """Records the end of a run, after its last `stalled_since`."""
        self._runs -= 1

    def stalled_since(self, began_us: int) -> int:
        """Returns the longest single stall, in µs, between `began_us` and now.

        Raises: `RuntimeError` if `watch` is not running.
        """
        if self._slept_at_us is None:
            raise RuntimeError("LoopLag.watch is not running, so stalls are not recorded")
        now_us = self.now_us()
        # The watch task may not have run since the end of a current stall.
        worst_us = max(0, now_us - max(began_us, self._slept_at_us + self._tick_us))
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

    def stalled_within(self, us: int) -> int:
        """Returns the longest stall, in µs, that ended within the last `us`; 0 if `watch` does not
        run. A stall while the task rests can be longer by the rest.
        """
        if self._slept_at_us is None:
            return 0
        now_us = self.now_us()
        # The watch task may not have run since the end of a current stall.
        worst_us = max(0, now_us - self._slept_at_us - self._tick_us)
        for noted_at_us, stall_us in reversed(self._stalls):
            if noted_at_us < now_us - us:
                break
            worst_us = max(worst_us, stall_us)
        return worst_us

    def _note(self, now_us: int) -> None:
        assert self._slept_at_us is not None
        stall_us = now_us - self._slept_at_us - self._tick_us
        self.lateness[bisect_left(LATENESS_US, stall_us)] += 1
        self.late_us += max(stall_us, 0)
        self._keep(now_us, stall_us)

    def _keep(self, now_us: int, stall_us: int) -> None:
        if stall_us < NOTED_US:
            return
        while self._stalls and self._stalls[-1][1] <= stall_us:
            self._stalls.pop()
        self._stalls.append((now_us, stall_us))
        # Decreasing durations usually bound the queue. This bounds it for a loop that is always
        # late.
        while len(self._stalls) > 1_000:
            self._stalls.popleft()
