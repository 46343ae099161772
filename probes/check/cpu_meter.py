"""CPU time of one run: measured step by step, shared between organizations, and limited.

A run that exceeds its budget is cancelled. Above a few milliseconds, the CPU clock of the thread
measures its steps, so that a busy host does not use up the budget.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from threading import get_ident
from time import clock_gettime_ns, perf_counter_ns, pthread_getcpuclockid, thread_time_ns
from typing import Any, Final, Generic, TypeVar

import trio

from .cpu_share import STEP_NS, CpuShare

# CPU of a run, and what each of its HTTP requests adds, ns.
RUN_NS_MOST: Final = 500_000_000
REQUEST_NS_MOST: Final = 50_000_000
# Until a run has used this much, its steps are measured by elapsed time: this clock needs no system
# call, and most runs end before. A longer step may have been interrupted, so it costs no more than
# the CPU that the thread has used since the last sample.
EXACT_FROM_NS: Final = 20_000_000

T = TypeVar("T")


class CpuMeter:
    """Meter of one run.

    `scope` is the cancel scope of the run. `waited_us` is the time in which steps of the run waited
    for their turn, and `held_up_us` that in which its threads waited for a core or for a lock. Both
    are delays of this process and not of the target. `was_cut` states that a wait for
    a thread or a lock was cancelled, in which the target had done its part.
    """

    __slots__ = (
        "_budget_ns",
        "_last_ns",
        "_used_ns",
        "clock",
        "held_up_us",
        "org",
        "scope",
        "share",
        "waited_us",
        "was_cut",
    )

    def __init__(self, share: CpuShare, org: int) -> None:
        self.share = share
        self.org = org
        self.scope: trio.CancelScope | None = None
        self.waited_us = 0
        self.held_up_us = 0
        self.was_cut = False
        share.sample_cpu()
        # Clock of the next step, ns.
        self.clock: Callable[[], int] = perf_counter_ns
        self._used_ns = 0
        self._budget_ns = RUN_NS_MOST
        self._last_ns = STEP_NS

    @property
    def used_ns(self) -> int:
        return self._used_ns

    @property
    def is_exhausted(self) -> bool:
        return self._used_ns > self._budget_ns

    def allow_request(self) -> None:
        """Extends the budget by that of one HTTP request."""
        self._budget_ns += REQUEST_NS_MOST

    def spend(self, ns: int) -> None:
        """Adds CPU of the run, also of another thread, and cancels the run at the budget."""
        self._used_ns += ns
        if self._used_ns > self._budget_ns and self.scope is not None:
            self.scope.cancel()

    async def in_thread(self, work: Callable[[], T], limiter: trio.CapacityLimiter | None) -> T:
        """Runs work that only computes in a thread, and charges its CPU to the run.

        A cancellation abandons the thread and charges what it has used until then.
        """
        measured = _ThreadWork(work)
        began_ns = perf_counter_ns()
        try:
            return await trio.to_thread.run_sync(measured, abandon_on_cancel=True, limiter=limiter)
        except trio.Cancelled:
            self.was_cut = True
            raise
        finally:
            spent_ns = measured.spent_ns()
            self.held_up_us += max(0, perf_counter_ns() - began_ns - spent_ns) // 1_000
            self.spend(spent_ns)

    async def turn(self) -> int:
        """Waits until the next step may begin, and returns the cost charged for it, in ns."""
        began_ns = perf_counter_ns()
        assumed_ns = self._last_ns
        try:
            await self.share.turn(self.org, assumed_ns)
        except trio.Cancelled:  # noqa: ASYNC103
            # The probe has to see the cancellation, at its own next checkpoint.
            assumed_ns = 0
        self.waited_us += (perf_counter_ns() - began_ns) // 1_000
        return assumed_ns

    def step(self, ns: int, assumed_ns: int) -> None:
        """Records a step on the event loop."""
        if ns > EXACT_FROM_NS and self.clock is not thread_time_ns:
            ns = min(ns, self.share.sample_cpu())
        self._last_ns = ns
        self.share.charge(self.org, ns, assumed_ns)
        self._used_ns += ns
        if self._used_ns > EXACT_FROM_NS:
            self.clock = thread_time_ns
            self.spend(0)


class _ThreadWork(Generic[T]):
    """Work for a thread. Other threads can read its CPU time while it runs and afterwards."""

    __slots__ = ("_began_ns", "_clock", "_spent_ns", "_work")

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._clock: int | None = None
        self._began_ns = 0
        self._spent_ns: int | None = None

    def __call__(self) -> T:
        self._began_ns = thread_time_ns()
        self._clock = pthread_getcpuclockid(get_ident())
        try:
            return self._work()
        finally:
            self._spent_ns = thread_time_ns() - self._began_ns

    def spent_ns(self) -> int:
        """Returns the CPU time of the thread so far, in ns; 0 before it begins."""
        if self._clock is None:
            return 0
        try:
            so_far_ns = clock_gettime_ns(self._clock) - self._began_ns
        except OSError:
            # The thread has ended, after it set `_spent_ns`.
            so_far_ns = 0
        return so_far_ns if self._spent_ns is None else self._spent_ns


_meter: ContextVar[CpuMeter | None] = ContextVar("meter", default=None)


def current_meter() -> CpuMeter | None:
    """Returns the meter of the run that the task belongs to, None outside of runs."""
    return _meter.get()


@asynccontextmanager
async def held(lock: trio.Lock) -> AsyncIterator[None]:
    """Holds a lock of this process. The time until then is not a delay of the target."""
    meter = _meter.get()
    began_ns = perf_counter_ns()
    try:
        await lock.acquire()
    except trio.Cancelled:
        if meter is not None:
            meter.was_cut = True
        raise
    finally:
        if meter is not None:
            meter.held_up_us += (perf_counter_ns() - began_ns) // 1_000
    try:
        yield
    finally:
        lock.release()


async def metered(work: Coroutine[Any, Any, T], meter: CpuMeter) -> T:
    """Runs `work` and measures its steps. Tasks and threads that it starts find the meter."""
    meter.share.join()
    token = _meter.set(meter)
    try:
        return await _Metered(work, meter)
    finally:
        _meter.reset(token)


async def metered_child(work: Callable[[], Awaitable[T]]) -> T:
    """Runs `work` in a task that a run has started, and charges it to that run."""

    async def call() -> T:
        return await work()

    meter = _meter.get()
    return await (call() if meter is None else _Metered(call(), meter))


class _Metered(Generic[T]):
    """Awaitable that advances a coroutine, and measures each step.

    A step is the code between two suspensions. A step waits for its turn before it begins, when
    the task has already been resumed: no operation is in progress then.
    """

    __slots__ = ("_meter", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], meter: CpuMeter) -> None:
        self._work = work
        self._meter = meter

    def __await__(self) -> Generator[Any, Any, T]:
        work, meter = self._work, self._meter
        share = meter.share
        value: Any = None
        error: BaseException | None = None
        while True:
            assumed_ns = 0
            if share.is_full:
                try:
                    assumed_ns = yield from meter.turn().__await__()
                except BaseException as raised:  # noqa: ASYNC103
                    # An interrupt: the work has to end too.
                    error = raised
            clock = meter.clock
            began_ns = clock()
            try:
                trap = work.send(value) if error is None else work.throw(error)
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                meter.step(clock() - began_ns, assumed_ns)
            try:
                value, error = (yield trap), None
            except BaseException as raised:  # noqa: ASYNC103
                error = raised
