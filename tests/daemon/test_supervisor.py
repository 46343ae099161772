"""The supervisor against a model: when children are cancelled, when they end, what is reported."""

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from leadline.daemon.runtime import limits
from leadline.daemon.runtime.supervisor import (
    Child,
    ChildReturned,
    ChildTask,
    StopPhase,
    TooManyFailures,
    supervising,
)
from tests.support.run.effort import examples

SUPERVISOR_LOG = "leadline.supervisor"


class Broken(Exception):
    pass


@dataclass(frozen=True)
class Plan:
    """The behaviour of a child. `fails_after` has the seconds of each run until it fails; later
    runs do not fail. No two instants of a history are equal, since every duration has a bit of its
    own."""

    name: str
    phase: int
    finish: float
    cleanup: float
    fails_after: tuple[float, ...]
    closes: bool
    restarts: bool
    # The kind of failure: an exception, a return, or KeyboardInterrupt.
    failure: str
    fails_in_cleanup: bool


@dataclass
class History:
    """The events of a run, or those that the model expects."""

    cancelled: dict[str, float] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    # The names in the log: of failures, and of children that did not end in time.
    failed: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    # The children whose errors ended the process.
    raised: set[str] = field(default_factory=set)


@dataclass
class Running:
    plan: Plan
    stage: str = "runs"
    due: float = inf
    runs: int = 0

    def begin(self, now: float) -> None:
        delays = self.plan.fails_after
        self.due = now + delays[self.runs] if self.runs < len(delays) else inf
        self.runs += 1


class Model:
    """Moves from one instant to the next. It has no tasks and no scopes."""

    def __init__(self, plans: list[Plan], bounds: list[float], stop_at: float) -> None:
        self.children = [Running(plan) for plan in plans]
        self.bounds = bounds
        self.now = 0.0
        self.stop_at = stop_at
        self.phase = -1
        self.bound_at = inf
        self.is_abort = False
        self.failures: deque[float] = deque()
        self.history = History()
        for child in self.children:
            child.begin(0.0)

    def run(self) -> History:
        while self.phase < len(self.bounds):
            first = min(self.children, key=lambda child: child.due, default=None)
            self.now = min(first.due if first else inf, self.stop_at, self.bound_at)
            if first is not None and first.due == self.now:
                self.move(first)
            elif self.now == self.stop_at:
                self.stop_at = inf
                self.enter(0)
            else:
                self.pass_bound()
            while 0 <= self.phase < len(self.bounds) and not self.left():
                self.enter(self.phase + 1)
        return self.history

    def left(self) -> list[Running]:
        return [c for c in self.children if c.plan.phase == self.phase and c.stage != "ended"]

    def enter(self, phase: int) -> None:
        self.phase, self.bound_at = phase, inf
        left = self.left()
        for child in left:
            if child.plan.closes and not self.is_abort:
                child.stage, child.due = "finishes", self.now + child.plan.finish
            else:
                self.cancel(child)
        if left and not self.is_abort:
            self.bound_at = self.now + self.bounds[phase]

    def pass_bound(self) -> None:
        self.bound_at = inf
        for child in self.left():
            if child.plan.closes:
                self.history.unfinished.append(child.plan.name)
            self.cancel(child)

    def cancel(self, child: Running) -> None:
        if child.stage != "cleans up":
            child.stage, child.due = "cleans up", self.now + child.plan.cleanup
            self.history.cancelled[child.plan.name] = self.now

    def move(self, child: Running) -> None:
        plan, is_over = child.plan, child.stage != "runs"
        if child.stage == "finishes" or (is_over and not plan.fails_in_cleanup):
            self.end(child)
        elif plan.failure == "interrupt" and not is_over:
            self.fail_for_good(child)
        else:
            self.history.failed.append(plan.name)
            if not plan.restarts or self.is_over_budget():
                self.fail_for_good(child)
            elif is_over:
                self.end(child)
            else:
                child.begin(self.now)

    def is_over_budget(self) -> bool:
        self.failures.append(self.now)
        recent = [at for at in self.failures if self.now - at <= limits.RESTARTS_WITHIN_SECONDS]
        return len(recent) > limits.RESTARTS_MOST

    def end(self, child: Running) -> None:
        child.stage, child.due = "ended", inf
        self.history.ended[child.plan.name] = self.now

    def fail_for_good(self, child: Running) -> None:
        self.end(child)
        self.history.raised.add(child.plan.name)
        if not self.is_abort:
            self.is_abort, self.stop_at = True, inf
            self.enter(0)


class Peer:
    """The children of one history, as the supervisor runs them."""

    def __init__(self, plans: list[Plan]) -> None:
        self.closing = {plan.name: trio.Event() for plan in plans}
        self.runs = dict.fromkeys(self.closing, 0)
        self.history = History()

    def child(self, plan: Plan, phases: list[StopPhase]) -> "Child[Peer]":
        return Child(
            plan.name,
            phases[plan.phase],
            lambda peer: lambda task: peer.run(plan),
            close=(lambda peer: peer.closing[plan.name].set()) if plan.closes else None,
            restarts=plan.restarts,
        )

    async def run(self, plan: Plan) -> None:
        number = self.runs[plan.name]
        self.runs[plan.name] += 1
        delay = plan.fails_after[number] if number < len(plan.fails_after) else inf
        closing = self.closing[plan.name]
        try:
            with trio.move_on_after(delay):
                await closing.wait()
            if closing.is_set():
                await trio.sleep(plan.finish)
            elif plan.failure == "raise":
                raise Broken
            elif plan.failure == "interrupt":
                raise KeyboardInterrupt
        except trio.Cancelled:
            self.history.cancelled[plan.name] = trio.current_time()
            with trio.CancelScope(shield=True):
                await trio.sleep(plan.cleanup)
            if plan.fails_in_cleanup:
                raise Broken from None
            raise
        finally:
            self.history.ended[plan.name] = trio.current_time()


class Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(vars(record))

    def parts(self, text: str) -> list[str]:
        return [record["part"] for record in self.records if text in record["msg"]]


@contextmanager
def recorded() -> Iterator[Records]:
    records, logger = Records(), logging.getLogger(SUPERVISOR_LOG)
    logger.addHandler(records)
    logger.propagate = False
    try:
        yield records
    finally:
        logger.propagate = True
        logger.removeHandler(records)


def leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from leaves(one)
    else:
        yield error


def child_of(error: BaseException) -> str:
    (note,) = error.__notes__
    return note.removeprefix("raised by the child ")


async def supervise(plans: list[Plan], bounds: list[float], stop_at: float) -> History:
    phases = [StopPhase(f"phase {n}", seconds) for n, seconds in enumerate(bounds)]
    peer = Peer(plans)
    with recorded() as records:
        try:
            async with supervising() as supervisor, supervisor.stopping_after(phases):
                await supervisor.start([peer.child(plan, phases) for plan in plans], peer)
                await trio.sleep_until(stop_at)
        except BaseExceptionGroup as group:
            errors = list(leaves(group))
            assert all(
                isinstance(one, Broken | ChildReturned | TooManyFailures | KeyboardInterrupt)
                for one in errors
            )
            peer.history.raised = {child_of(one) for one in errors}
    peer.history.failed = records.parts("failed")
    peer.history.unfinished = records.parts("did not stop in time")
    return peer.history


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Plan], list[float], float]:
    bits = iter(range(1, 48))

    def seconds(most: int) -> float:
        # Sums of such numbers are exact, and those of different numbers differ.
        return draw(st.integers(0, most)) + 2.0 ** -next(bits)

    bounds = [seconds(4) if draw(st.booleans()) else 0.0 for _ in range(draw(st.integers(1, 4)))]
    plans = [
        Plan(
            name=f"child {n}",
            phase=draw(st.integers(0, len(bounds) - 1)),
            finish=seconds(6),
            cleanup=seconds(3),
            fails_after=tuple(seconds(12) for _ in range(draw(st.integers(0, 3)))),
            closes=draw(st.booleans()),
            restarts=draw(st.booleans()),
            failure=draw(st.sampled_from(["raise", "return", "interrupt"])),
            fails_in_cleanup=draw(st.sampled_from([False, False, False, True])),
        )
        for n in range(draw(st.integers(0, 6)))
    ]
    return plans, bounds, seconds(20)


@given(histories())
@settings(max_examples=examples(2_000))
def test_children_end_as_in_the_model(
    history: tuple[list[Plan], list[float], float],
) -> None:
    plans, bounds, stop_at = history
    found = trio.run(supervise, plans, bounds, stop_at, clock=MockClock(autojump_threshold=0))
    assert found == Model(plans, bounds, stop_at).run()
    assert set(found.ended) == {plan.name for plan in plans}
    for later in plans:
        for earlier in plans:
            if earlier.phase < later.phase and later.name in found.cancelled:
                assert found.ended[earlier.name] <= found.cancelled[later.name]


async def _fail_at_once(task: ChildTask) -> None:
    raise Broken


async def _wait(task: ChildTask) -> None:
    task.started(f"{task.name} is ready")
    await trio.sleep_forever()


def _never_bound(parts: None) -> None:
    return None


PHASE = StopPhase("only", 1.0)


async def test_a_start_that_fails_is_raised_by_start_and_not_logged() -> None:
    children: list[Child[None]] = [
        Child("first", PHASE, lambda _: _wait),
        Child("second", PHASE, lambda _: _fail_at_once, reports_start=True),
    ]
    with recorded() as records, pytest.raises(BaseExceptionGroup) as raised:
        async with supervising() as supervisor, supervisor.stopping_after([PHASE]):
            await supervisor.start(children, None)
    assert [type(one) for one in leaves(raised.value)] == [Broken]
    assert records.records == []


async def test_start_returns_what_the_children_report_and_leaves_out_those_without_parts() -> None:
    children: list[Child[None]] = [
        Child("waits", PHASE, lambda _: _wait, reports_start=True),
        Child("absent", PHASE, _never_bound, reports_start=True),
    ]
    async with supervising() as supervisor, supervisor.stopping_after([PHASE]):
        assert await supervisor.start(children, None) == {"waits": "waits is ready"}


async def test_a_restarted_child_reports_its_start_once() -> None:
    runs = 0
    restarted = trio.Event()

    async def run(task: ChildTask) -> None:
        nonlocal runs
        runs += 1
        task.started()
        if runs == 1:
            raise Broken
        restarted.set()
        await trio.sleep_forever()

    child: Child[None] = Child("twice", PHASE, lambda _: run, reports_start=True, restarts=True)
    with recorded():
        async with supervising() as supervisor, supervisor.stopping_after([PHASE]):
            await supervisor.start([child], None)
            await restarted.wait()
            assert supervisor.restarts == 1


async def test_a_child_that_overruns_is_logged_with_its_number_of_tasks(
    autojump_clock: MockClock,
) -> None:
    limiter = trio.CapacityLimiter(3)

    async def run(task: ChildTask) -> None:
        async with limiter:
            await trio.sleep_forever()

    child: Child[None] = Child(
        "stuck", PHASE, lambda _: run, limiter=lambda _: limiter, close=lambda _: None
    )
    with recorded() as records:
        async with supervising() as supervisor, supervisor.stopping_after([PHASE]):
            await supervisor.start([child], None)
    (record,) = records.records
    assert (record["part"], record["seconds"], record["at_once"]) == ("stuck", 1.0, 1)
