"""A meter measures every step of a run, and changes nothing else about it."""

import threading
import time
from functools import partial
from time import perf_counter_ns, thread_time_ns

import pytest
import trio

from leadline.probes.check.cpu_meter import (
    REQUEST_NS_MOST,
    RUN_NS_MOST,
    CpuMeter,
    current_meter,
    held,
    metered,
    metered_child,
)
from leadline.probes.check.cpu_share import SLICE_NS, CpuShare
from leadline.probes.net.egress import make_reach
from leadline.probes.net.egress_policy import probe_policy


def burn(ns: int) -> None:
    until = thread_time_ns() + ns
    while thread_time_ns() < until:
        pass


@pytest.fixture
def meter() -> CpuMeter:
    return CpuMeter(CpuShare(), 1)


async def test_the_steps_of_a_run_are_added(meter: CpuMeter) -> None:
    async def work() -> str:
        for _ in range(4):
            burn(2_000_000)
            await trio.lowlevel.checkpoint()
        return "done"

    assert await metered(work(), meter) == "done"
    assert meter.used_ns >= 8_000_000
    assert current_meter() is None


async def test_the_time_of_an_interrupted_step_is_not_cpu(
    meter: CpuMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system may stop the process within a step, for example because other programs run."""
    interrupted_ns = 0
    monkeypatch.setattr(meter, "clock", lambda: perf_counter_ns() + interrupted_ns)

    async def work() -> None:
        nonlocal interrupted_ns
        burn(30_000_000)
        interrupted_ns = 2 * RUN_NS_MOST
        await trio.lowlevel.checkpoint()

    with trio.CancelScope() as meter.scope:
        await metered(work(), meter)
    assert not meter.scope.cancelled_caught
    assert 30_000_000 <= meter.used_ns < RUN_NS_MOST


async def test_children_and_threads_are_charged_to_the_run(meter: CpuMeter) -> None:
    reach = make_reach(probe_policy())

    async def child() -> None:
        burn(3_000_000)
        await trio.lowlevel.checkpoint()

    async def work() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(metered_child, child)
        await reach.in_thread(lambda: burn(5_000_000))

    await metered(work(), meter)
    assert meter.used_ns >= 8_000_000


async def test_an_abandoned_thread_is_charged_what_it_used(meter: CpuMeter) -> None:
    used, left = threading.Event(), threading.Event()

    def work() -> None:
        burn(5_000_000)
        used.set()
        left.wait()

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(metered_child, partial(meter.in_thread, work, None))
            await trio.to_thread.run_sync(used.wait)
            nursery.cancel_scope.cancel()

    try:
        await metered(run(), meter)
        assert meter.used_ns >= 5_000_000
    finally:
        left.set()


async def test_a_wait_for_a_thread_or_a_lock_is_a_delay_of_this_process(meter: CpuMeter) -> None:
    """A sleeping thread stands for one that gets no core."""
    lock = trio.Lock()

    async def run() -> None:
        await meter.in_thread(partial(time.sleep, 0.02), None)
        assert meter.held_up_us >= 19_000
        async with trio.open_nursery() as nursery:
            await nursery.start(hold)
            async with held(lock):
                assert meter.held_up_us >= 38_000

    async def hold(*, task_status: trio.TaskStatus[None]) -> None:
        async with lock:
            task_status.started()
            await trio.sleep(0.02)

    await metered(run(), meter)


async def test_exceptions_and_values_pass_unchanged(meter: CpuMeter) -> None:
    async def raises() -> None:
        await trio.lowlevel.checkpoint()
        raise LookupError("the work's own")

    async def receives() -> bytes:
        left, right = trio.testing.memory_stream_pair()
        await left.send_all(b"piece")
        return bytes(await right.receive_some(10))

    with pytest.raises(LookupError, match="own"):
        await metered(raises(), meter)
    assert await metered(receives(), meter) == b"piece"


@pytest.mark.parametrize("full", [False, True])
async def test_a_cancellation_reaches_the_work(meter: CpuMeter, full: bool) -> None:
    cleaned = []

    async def work() -> None:
        try:
            await trio.sleep_forever()
        finally:
            cleaned.append(trio.current_effective_deadline())

    meter.share.join()
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(metered, work(), meter)
            await trio.testing.wait_all_tasks_blocked()
            if full:
                meter.share.charge(1, SLICE_NS)
            scope.cancel()
    assert scope.cancelled_caught
    assert len(cleaned) == 1


async def test_a_cancellation_while_a_step_waits_reaches_the_work(meter: CpuMeter) -> None:
    """The wait ends, and the operation that the task was resumed from keeps its result."""
    reached: list[str] = []

    async def work() -> None:
        await trio.lowlevel.checkpoint()
        # The lock that this step has got is released, because the step is made.
        async with lock:
            reached.append("step")
            await trio.lowlevel.checkpoint()
        reached.append("never")

    lock = trio.Lock()
    meter.share.join()
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(meter.share.turn, 2, SLICE_NS)
            await trio.lowlevel.checkpoint()
            nursery.start_soon(metered, work(), meter)
            await trio.lowlevel.checkpoint()
            scope.cancel()
    assert "never" not in reached
    assert not lock.locked()


async def test_an_interrupt_while_a_step_waits_ends_the_work(
    meter: CpuMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = []

    async def work() -> None:
        try:
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()
        finally:
            ended.append(True)

    async def turn(_org: int, _cost_ns: int) -> None:
        await trio.lowlevel.checkpoint()
        raise KeyboardInterrupt

    task = metered(work(), meter)
    monkeypatch.setattr(meter.share, "turn", turn)
    monkeypatch.setattr(CpuShare, "is_full", property(lambda _: bool(meter.used_ns)))
    with pytest.raises(KeyboardInterrupt):
        await task
    assert ended == [True]


async def test_the_budget_cancels_the_scope_of_the_run(meter: CpuMeter) -> None:
    async def work() -> None:
        with trio.CancelScope() as scope:
            meter.scope = scope
            while True:
                meter.spend(RUN_NS_MOST // 4)
                await trio.lowlevel.checkpoint()

    await metered(work(), meter)
    assert meter.is_exhausted


def test_each_request_extends_the_budget(meter: CpuMeter) -> None:
    meter.allow_request()
    meter.spend(RUN_NS_MOST + REQUEST_NS_MOST)
    assert not meter.is_exhausted
    meter.spend(1)
    assert meter.is_exhausted


@pytest.mark.parametrize("org", [1, 2])
async def test_the_waits_of_a_run_are_added(meter: CpuMeter, org: int) -> None:
    async def busy() -> None:
        for _ in range(10):
            await meter.share.turn(org, SLICE_NS)
            burn(SLICE_NS)

    async def work() -> None:
        for _ in range(3):
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        meter.share.join()
        for _ in range(5):
            nursery.start_soon(busy)
        await trio.lowlevel.checkpoint()
        await metered(work(), meter)
        nursery.cancel_scope.cancel()
    assert meter.waited_us > 0


def test_without_a_run_a_child_is_not_measured() -> None:
    async def child() -> int:
        return 7

    async def main() -> int:
        return await metered_child(child)

    assert trio.run(main) == 7
