"""The CPU of the event loop is divided fairly: no organization waits for the excess of another."""

import math
import time

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.check import cpu_share
from leadline.probes.check.cpu_share import SLICE_NS, SLICE_NS_MOST, CpuShare, FairQueue

ORGS = st.integers(1, 4)
COSTS = st.integers(1, 50)


@given(st.lists(st.tuples(ORGS, COSTS), max_size=60))
def test_every_step_is_returned_once_in_the_order_of_its_organization(
    steps: list[tuple[int, int]],
) -> None:
    queue: FairQueue[tuple[int, int]] = FairQueue()
    for number, (org, _) in enumerate(steps):
        queue.push(org, (org, number))
    popped = []
    while queue:
        org, number = queue.pop()
        queue.charge(org, steps[number][1])
        popped.append((org, number))
    assert sorted(popped, key=lambda step: step[1]) == [
        (org, number) for number, (org, _) in enumerate(steps)
    ]
    for org in {org for org, _ in steps}:
        numbers = [number for other, number in popped if other == org]
        assert numbers == sorted(numbers)


@given(st.lists(COSTS, min_size=1, max_size=40), st.integers(1, 50), st.integers(0, 30))
def test_a_cheap_organization_waits_for_its_share_only(
    costly: list[int], cheap: int, ahead: int
) -> None:
    """Between two steps of the one, the other uses at most the same CPU and one step more."""
    queue: FairQueue[tuple[int, int]] = FairQueue()
    for cost in costly:
        queue.push(1, (1, cost))
    for _ in range(min(ahead, len(costly) - 1)):
        org, cost = queue.pop()
        queue.charge(org, cost)
    for _ in range(20):
        queue.push(2, (2, cheap))
    used = {1: 0, 2: 0}
    while {1, 2} <= set(queue._waiting):
        org, cost = queue.pop()
        queue.charge(org, cost)
        used[org] += cost
        assert abs(used[1] - used[2]) <= max(*costly, cheap)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("push"), ORGS),
            st.tuples(st.just("pop"), ORGS),
            st.tuples(st.just("remove"), ORGS),
            st.tuples(st.just("charge"), ORGS),
        ),
        max_size=80,
    )
)
def test_the_queue_agrees_with_a_list(moves: list[tuple[str, int]]) -> None:
    queue: FairQueue[int] = FairQueue()
    model: list[tuple[int, int]] = []
    used: dict[int, int] = {}
    for number, (move, org) in enumerate(moves):
        waiting = {other for other, _ in model}
        if move == "push":
            if org not in waiting:
                least = min((used.get(other, 0) for other in waiting), default=0)
                used[org] = max(used.get(org, 0), least)
            queue.push(org, number)
            model.append((org, number))
        elif move == "pop" and model:
            step = queue.pop()
            owner = next(other for other, each in model if each == step)
            assert used.get(owner, 0) == min(used.get(other, 0) for other in waiting)
            assert step == next(each for other, each in model if other == owner)
            model.remove((owner, step))
            if not model:
                used.clear()
        elif move == "remove" and org in waiting:
            step = [each for other, each in model if other == org][-1]
            queue.remove(org, step)
            model.remove((org, step))
            if not model:
                used.clear()
        elif move == "charge":
            queue.charge(org, number + 1)
            if model:
                used[org] = used.get(org, 0) + number + 1
        assert len(queue) == len(model)


def test_a_step_that_does_not_wait_cannot_be_removed() -> None:
    queue: FairQueue[int] = FairQueue()
    with pytest.raises(ValueError, match="waits"):
        queue.remove(1, 1)
    with pytest.raises(ValueError, match="empty"):
        queue.pop()


async def test_a_step_waits_only_while_the_slice_is_used() -> None:
    share = CpuShare()
    share.join()
    await trio.lowlevel.checkpoint()
    assert not share.is_full
    share.charge(1, share._slice_ns)
    assert share.is_full
    await trio.lowlevel.checkpoint()
    await trio.lowlevel.checkpoint()
    assert not share.is_full


async def test_the_slice_follows_the_rest_of_a_pass_up_to_its_limit() -> None:
    share = CpuShare()
    share.after_io_wait(0)
    share.before_io_wait(0)
    assert share._slice_ns == SLICE_NS
    for rest_ns, slice_ns in ((2 * SLICE_NS, 2 * SLICE_NS), (10 * SLICE_NS_MOST, SLICE_NS_MOST)):
        share.after_io_wait(0)
        share._began_ns -= rest_ns
        share._cpu_ns -= rest_ns
        share.before_io_wait(0)
        assert slice_ns <= share._slice_ns <= max(slice_ns, SLICE_NS_MOST)


def test_a_pass_that_only_waits_for_a_core_does_not_lengthen_the_slice() -> None:
    """Otherwise costly targets would delay all others most where other programs are busy."""
    share = CpuShare()
    share.after_io_wait(0)
    # As if other programs had the core: time passes, and this thread uses none.
    time.sleep(10 * SLICE_NS / 1e9)
    share.before_io_wait(0)
    assert share._slice_ns < 2 * SLICE_NS


def test_cpu_of_short_passes_lengthens_no_slice_beyond_the_elapsed_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    elapsed_ns, cpu_ns = 0, 0
    monkeypatch.setattr(cpu_share, "perf_counter_ns", lambda: elapsed_ns)
    monkeypatch.setattr(cpu_share, "thread_time_ns", lambda: cpu_ns)
    share = CpuShare()
    for step_ns, spent_ns, slice_ns in (
        # Ten short passes, whose CPU is not read, and a long one that mostly waited for a core.
        *[(SLICE_NS // 2, SLICE_NS // 2, SLICE_NS)] * 10,
        (2 * SLICE_NS, SLICE_NS // 2, 2 * SLICE_NS),
        # The next one begins with its own CPU.
        (9 * SLICE_NS, 4 * SLICE_NS, 4 * SLICE_NS),
        (9 * SLICE_NS, SLICE_NS // 2, SLICE_NS),
    ):
        share.after_io_wait(0)
        elapsed_ns += step_ns
        cpu_ns += spent_ns
        share.before_io_wait(0)
        assert share._slice_ns == slice_ns


async def test_each_pass_admits_a_slice_of_the_steps_that_wait() -> None:
    share, admitted = CpuShare(), list[int]()
    share.join()

    async def step(org: int, cost_ns: int) -> None:
        await share.turn(org, cost_ns)
        share.charge(org, cost_ns, cost_ns)
        admitted.append(org)

    async with trio.open_nursery() as nursery:
        for _ in range(30):
            nursery.start_soon(step, 1, SLICE_NS)
        await trio.lowlevel.checkpoint()
        # The costly steps of the first organization do not delay the second one by more than two.
        nursery.start_soon(step, 2, 1)
        await trio.lowlevel.checkpoint()
    assert sorted(admitted) == [1] * 30 + [2]
    assert admitted.index(2) <= 5
    assert not share._queue._waiting


async def test_a_cancelled_step_leaves_the_queue() -> None:
    share = CpuShare()
    share.join()
    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(share.turn, 1, SLICE_NS)
        await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert len(share._queue) == 0


def test_a_share_serves_a_second_event_loop() -> None:
    share = CpuShare()

    async def main() -> None:
        share.join()
        share.join()
        with trio.move_on_after(math.inf) as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(share.turn, 1, SLICE_NS)
                await trio.lowlevel.checkpoint()
                scope.cancel()

    trio.run(main)
    trio.run(main)
    assert len(share._queue) == 0
