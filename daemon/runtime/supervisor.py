"""Supervisor, which starts, restarts and stops the children of a process.

A process declares its children in one tuple of `Child` records. One nursery runs all of them, each
in its own cancel scope. The stop ends them phase by phase. A child that fails is restarted a
bounded number of times, or ends the process, as its record declares.
"""

import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import trio

from . import limits
from .sd_notify import keep_alive

log = logging.getLogger("leadline.supervisor")

P = TypeVar("P")


class ChildReturned(Exception):
    """A child returned before its stop phase."""


class TooManyFailures(Exception):
    """The restart budget is exhausted; the last failure is the cause."""


@dataclass(slots=True)
class LoopHeartbeats:
    """Instant of the last pass of each loop, from which the watchdog detects stalled loops."""

    last: dict[str, float] = field(default_factory=dict)
    pauses: dict[str, float] = field(default_factory=dict)

    def expect(self, name: str, pause_seconds: float) -> None:
        """Registers a loop that must beat once per pause."""
        self.pauses[name] = pause_seconds
        self.beat(name)

    def beat(self, name: str, pause_seconds: float | None = None) -> None:
        """Records progress. The next beat is due within `pause_seconds`, None for as before."""
        self.last[name] = trio.current_time()
        if pause_seconds is not None:
            self.pauses[name] = pause_seconds

    def stale(self) -> list[str]:
        """Returns the loops that have not finished a pass within their time limit."""
        now = trio.current_time()
        return [
            name
            for name, at in self.last.items()
            if now - at > self.pauses.get(name, 0) + limits.WATCHDOG_STALE_SECONDS
        ]


@dataclass(frozen=True, slots=True)
class StopPhase:
    """Step of the stop.

    `seconds` bounds the time in which its children can end by themselves. Then the supervisor
    cancels the others.
    """

    name: str
    seconds: float = 0.0


class ChildTask:
    """Running task of a child, as seen by the child."""

    def __init__(
        self, name: str, task_status: trio.TaskStatus[object], heartbeats: LoopHeartbeats
    ) -> None:
        self.name = name
        self.is_started = False
        self.heartbeats = heartbeats
        self._task_status = task_status

    def started(self, value: object = None) -> None:
        """Reports that the child is ready. A restarted child repeats the report without effect."""
        if not self.is_started:
            self.is_started = True
            self._task_status.started(value)

    def beat(self, pause_seconds: float | None = None) -> None:
        """Reports that the loop begins or has finished a pass, and when it reports again."""
        self.heartbeats.beat(self.name, pause_seconds)


async def keep_watchdog(task: ChildTask) -> None:
    """Reports to systemd that the process is alive, as long as none of its loops is stale."""
    await keep_alive(lambda: not task.heartbeats.stale())


RunChild = Callable[[ChildTask], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Child(Generic[P]):
    """Declaration of a child. `P` is the type of the components of the process."""

    name: str
    phase: StopPhase
    # Returns what the child runs, or None if this process does not have it.
    bind: Callable[[P], RunChild | None]
    # Part of the process that the child belongs to; a child without one runs in every process.
    part: str = ""
    # Returns the limiter of the concurrent work of the child.
    limiter: Callable[[P], trio.CapacityLimiter] | None = None
    # Asks the child to end by itself within the limit of its phase. Without it the supervisor
    # cancels the child immediately.
    close: Callable[[P], None] | None = None
    # True if the supervisor must wait at the start until the child calls `started`.
    reports_start: bool = False
    # True if a failure restarts the child; otherwise a failure ends the process.
    restarts: bool = False
    # Pause between two beats, without the tolerance of the watchdog; None if it does not beat.
    pass_seconds: float | None = None


@dataclass(slots=True)
class _Running:
    """Started child, bound to the components of its process."""

    name: str
    phase: StopPhase
    run: RunChild
    close: Callable[[], None] | None
    limiter: trio.CapacityLimiter | None
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    ended: trio.Event = field(default_factory=trio.Event)
    is_closing: bool = False


class Supervisor:
    """Supervisor of a process, created by `supervising`.

    Failures of all children share one budget: many children that fail once are as serious as one
    child that fails often.
    """

    def __init__(self, nursery: trio.Nursery, body: trio.CancelScope) -> None:
        self._nursery = nursery
        self._body = body
        self._body_ended = trio.Event()
        self._children: list[_Running] = []
        self._failures: deque[float] = deque()
        self.heartbeats = LoopHeartbeats()
        self.restarts = 0

    async def start(self, children: Iterable[Child[P]], parts: P) -> dict[str, object]:
        """Starts children in their order. Returns their reported values by name."""
        reported: dict[str, object] = {}
        for child in children:
            run = child.bind(parts)
            if run is not None:
                reported[child.name] = await self._start(child, parts, run)
        return reported

    async def _start(self, child: Child[P], parts: P, run: RunChild) -> object:
        close = child.close
        running = _Running(
            child.name,
            child.phase,
            run,
            None if close is None else lambda: close(parts),
            None if child.limiter is None else child.limiter(parts),
        )
        if child.pass_seconds is not None:
            self.heartbeats.expect(child.name, child.pass_seconds)
        self._children.append(running)
        return await self._nursery.start(self._run, child, running)

    async def _run(
        self, child: Child[P], running: _Running, *, task_status: trio.TaskStatus[object]
    ) -> None:
        task = ChildTask(child.name, task_status, self.heartbeats)
        try:
            with running.scope:
                if not child.reports_start:
                    task.started()
                await (self._keep if child.restarts else _run_once)(running, task)
        except BaseException as error:
            running.ended.set()
            # If the child has not started yet, `start` raises the error.
            if task.is_started and not _is_cancellation(error):
                await self._end_body(child.name, error)  # noqa: ASYNC102 - shields itself
            raise
        finally:
            running.ended.set()

    async def _end_body(self, name: str, error: BaseException) -> None:
        """Cancels the body of `supervising`, and waits until it has ended the other children.

        The body ends them in the order of their phases. The nursery would cancel all together,
        so it gets the error only afterwards.
        """
        error.add_note(f"raised by the child {name}")
        if isinstance(error, Exception) and not isinstance(error, TooManyFailures):
            _log_failure(name, error)
        self._body.cancel()
        with trio.CancelScope(shield=True):
            await self._body_ended.wait()

    async def _keep(self, running: _Running, task: ChildTask) -> None:
        while not running.is_closing:
            try:
                await _run_once(running, task)
            # Any failure: each one is logged, and their number is bounded.
            except Exception as error:
                self._count(running.name, error)

    def _count(self, name: str, error: Exception) -> None:
        now = trio.current_time()
        self._failures.append(now)
        while self._failures and now - self._failures[0] > limits.RESTARTS_WITHIN_SECONDS:
            self._failures.popleft()
        self.restarts += 1
        _log_failure(name, error)
        if len(self._failures) > limits.RESTARTS_MOST:
            raise TooManyFailures(name) from error

    @asynccontextmanager
    async def stopping_after(self, phases: Sequence[StopPhase]) -> AsyncIterator[None]:
        """Ends the children of these phases after the body, one phase after the other.

        After an exception or a cancellation the children get no time to end by themselves.
        """
        try:
            yield
            for phase in phases:
                await self._end(phase)
        finally:
            with trio.CancelScope(shield=True):
                for phase in phases:
                    await self._cancel(phase)

    def _left_in(self, phase: StopPhase) -> list[_Running]:
        return [
            running
            for running in self._children
            if running.phase == phase and not running.ended.is_set()
        ]

    async def _end(self, phase: StopPhase) -> None:
        with trio.move_on_after(phase.seconds):
            for running in self._left_in(phase):
                running.is_closing = True
                if running.close is None:
                    running.scope.cancel()
                else:
                    running.close()
            await _await_end(self._left_in(phase))
        for running in self._left_in(phase):
            if running.close is not None:
                _log_unfinished(running)
        await self._cancel(phase)

    async def _cancel(self, phase: StopPhase) -> None:
        left = self._left_in(phase)
        for running in left:
            running.is_closing = True
            running.scope.cancel()
        await _await_end(left)


@asynccontextmanager
async def supervising() -> AsyncIterator[Supervisor]:
    """Opens the nursery of the children and yields their supervisor.

    A failure of a child cancels the body, and is raised after the body has ended. Children that
    still run after the body are cancelled.
    """
    async with trio.open_nursery() as nursery:
        body = trio.CancelScope()
        supervisor = Supervisor(nursery, body)
        try:
            with body:
                yield supervisor
        finally:
            supervisor._body_ended.set()
            nursery.cancel_scope.cancel()


async def _run_once(running: _Running, task: ChildTask) -> None:
    await running.run(task)
    if not running.is_closing:
        raise ChildReturned(running.name)


def _is_cancellation(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return error.split(trio.Cancelled)[1] is None
    return isinstance(error, trio.Cancelled)


async def _await_end(children: Iterable[_Running]) -> None:
    for running in children:
        await running.ended.wait()


def _log_failure(name: str, error: Exception) -> None:
    log.error("component failed", exc_info=error, extra={"part": name})


def _log_unfinished(running: _Running) -> None:
    extra: dict[str, object] = {"part": running.name, "seconds": running.phase.seconds}
    if running.limiter is not None:
        extra["at_once"] = running.limiter.borrowed_tokens
    log.warning("component did not stop in time", extra=extra)
