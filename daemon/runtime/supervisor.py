"""Starts, restarts and stops the children of a process.

A process declares its children in one tuple of `Child` records. One nursery runs all of them, each
in a cancel scope of its own. The stop ends them phase by phase. A child that fails is restarted a
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
    """The budget of restarts is used up; the last failure is the cause."""


@dataclass(slots=True)
class LoopHeartbeats:
    """When each loop last finished a pass: the watchdog's proof that they move."""

    last: dict[str, float] = field(default_factory=dict)
    pauses: dict[str, float] = field(default_factory=dict)

    def expect(self, name: str, pause_seconds: float) -> None:
        """From now on this loop is to beat once a pause."""
        self.pauses[name] = pause_seconds
        self.beat(name)

    def beat(self, name: str) -> None:
        self.last[name] = trio.current_time()

    def stale(self) -> list[str]:
        """The loops that have not finished a pass in their time."""
        now = trio.current_time()
        return [
            name
            for name, at in self.last.items()
            if now - at > self.pauses.get(name, 0) + limits.WATCHDOG_STALE_SECONDS
        ]


@dataclass(frozen=True, slots=True)
class StopPhase:
    """A step of the stop. `seconds` bounds how long its children take to end by themselves; the
    supervisor cancels those that have not ended by then."""

    name: str
    seconds: float = 0.0


class ChildTask:
    """The running task of one child, as the child sees it."""

    def __init__(
        self, name: str, task_status: trio.TaskStatus[object], heartbeats: LoopHeartbeats
    ) -> None:
        self.name = name
        self.is_started = False
        self.heartbeats = heartbeats
        self._task_status = task_status

    def started(self, value: object = None) -> None:
        """Reports that the child is ready. A restarted child reports it again without effect."""
        if not self.is_started:
            self.is_started = True
            self._task_status.started(value)

    def beat(self) -> None:
        """Reports that the loop has finished a pass."""
        self.heartbeats.beat(self.name)


async def keep_watchdog(task: ChildTask) -> None:
    """Reports to systemd that the process is alive, as long as no loop of it is stale."""
    await keep_alive(lambda: not task.heartbeats.stale())


RunChild = Callable[[ChildTask], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Child(Generic[P]):
    """The declaration of a child. `P` is the type of the parts of the process."""

    name: str
    phase: StopPhase
    # Returns what the child runs, or None if this process does not have it.
    bind: Callable[[P], RunChild | None]
    # The part of the process that the child belongs to; every process has a child without one.
    part: str = ""
    # Returns the limiter of the work that the child does at once.
    limiter: Callable[[P], trio.CapacityLimiter] | None = None
    # Asks the child to end by itself within the bound of its phase; without it the supervisor
    # cancels the child at once.
    close: Callable[[P], None] | None = None
    # The supervisor waits at the start until the child calls `started`.
    reports_start: bool = False
    # A failure restarts the child; without it a failure ends the process.
    restarts: bool = False
    # The watchdog expects a beat at least this often; None for a child that does not beat.
    pass_seconds: float | None = None


@dataclass(slots=True)
class _Running:
    """A started child, with the parts of its process bound."""

    name: str
    phase: StopPhase
    run: RunChild
    close: Callable[[], None] | None
    limiter: trio.CapacityLimiter | None
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    ended: trio.Event = field(default_factory=trio.Event)
    is_closing: bool = False


class Supervisor:
    """Made by `supervising`. It counts failures over all children: a process in which every child
    fails once is as ill as one in which a single child fails as often."""

    def __init__(self, nursery: trio.Nursery, body: trio.CancelScope) -> None:
        self._nursery = nursery
        self._body = body
        self._body_ended = trio.Event()
        self._children: list[_Running] = []
        self._failures: deque[float] = deque()
        self.heartbeats = LoopHeartbeats()
        self.restarts = 0

    async def start(self, children: Iterable[Child[P]], parts: P) -> dict[str, object]:
        """Starts children in their order. Returns what each reported as it started, by name."""
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
            # Before the child has started, `start` raises the error.
            if task.is_started and not _is_cancellation(error):
                await self._end_body(child.name, error)  # noqa: ASYNC102 - shields itself
            raise
        finally:
            running.ended.set()

    async def _end_body(self, name: str, error: BaseException) -> None:
        """Cancels the body of `supervising` and waits until it has ended the other children in
        their order. The nursery, which would cancel all of them at once, gets the error only then.
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
            # The one place where any failure is caught: it is logged whole, counted, and bounded.
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
        """Ends the children of these phases after the body, one phase after the other. After an
        exception or a cancellation it gives them no time to end by themselves."""
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
    """The one nursery of a process. A failure of a child cancels the body, and is raised once the
    body has ended. Children that are left after the body are cancelled."""
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
