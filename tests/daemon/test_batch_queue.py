"""Batches contain each item once and in order, and no item waits beyond its instant."""

from dataclasses import dataclass, field

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from leadline.daemon.runtime.batch_queue import BatchQueue

MOST = 5


@dataclass
class Seen:
    """Items with the instant until which they may wait, and batches with the instants taken."""

    put: list[tuple[int, float, float]] = field(default_factory=list)
    batches: list[tuple[float, list[int]]] = field(default_factory=list)


async def _run(steps: list[tuple[float, float]], storing: float, collectors: int) -> Seen:
    queue, seen = BatchQueue[int](20, MOST), Seen()

    async def collect() -> None:
        while batch := await queue.collect():
            seen.batches.append((trio.current_time(), batch))
            await trio.sleep(storing)

    async with trio.open_nursery() as nursery:
        for _ in range(collectors):
            nursery.start_soon(collect)
        await trio.testing.wait_all_tasks_blocked()
        for number, (pause, linger) in enumerate(steps):
            await trio.sleep(pause)
            flush_at = trio.current_time() + linger
            seen.put.append((number, trio.current_time(), flush_at))
            await queue.put(number, flush_at)
        await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(100)
        queue.close()
    assert len(queue) == 0
    return seen


STEPS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.0, 0.1, 0.7]), st.sampled_from([0.0, 0.1, 1.0, 5.0])),
    max_size=40,
)


@given(STEPS)
@settings(max_examples=150)
def test_a_batch_goes_when_it_is_full_or_one_of_it_must(steps: list[tuple[float, float]]) -> None:
    seen = trio.run(_run, steps, 0.0, 1, clock=MockClock(autojump_threshold=0))
    assert [item for _, batch in seen.batches for item in batch] == list(range(len(steps)))
    for at, batch in seen.batches:
        items = [seen.put[number] for number in batch]
        must_go = min(flush_at for _, _, flush_at in items)
        full_at = items[-1][1] if len(batch) == MOST else float("inf")
        assert at == pytest.approx(min(must_go, full_at), abs=1e-6)
        assert len(batch) <= MOST


@given(STEPS, st.sampled_from([0.05, 0.5]), st.sampled_from([1, 2]))
@settings(max_examples=100)
def test_slow_collectors_lose_no_item(
    steps: list[tuple[float, float]], storing: float, collectors: int
) -> None:
    seen = trio.run(_run, steps, storing, collectors, clock=MockClock(autojump_threshold=0))
    assert sorted(item for _, batch in seen.batches for item in batch) == list(range(len(steps)))
    assert all(len(batch) <= MOST and batch == sorted(batch) for _, batch in seen.batches)


async def test_items_that_wait_do_not_wake_the_collector(autojump_clock: MockClock) -> None:
    queue, batches, steps = BatchQueue[int](20, MOST), list[list[int]](), 0

    async def collect() -> None:
        batches.append(await queue.collect())

    class Steps(trio.abc.Instrument):
        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            nonlocal steps
            steps += task.name.endswith(".collect")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(collect)
        await trio.testing.wait_all_tasks_blocked()
        await queue.put(0, trio.current_time() + 50)
        await trio.testing.wait_all_tasks_blocked()
        trio.lowlevel.add_instrument(counted := Steps())
        for number in range(1, MOST - 1):
            await queue.put(number, trio.current_time() + 50)
            await trio.testing.wait_all_tasks_blocked()
        assert (steps, batches) == (0, [])
        assert len(queue) == MOST - 1
        # One that may not wait takes the others with it.
        await queue.put(MOST - 1, trio.current_time())
        await trio.testing.wait_all_tasks_blocked()
        assert batches == [list(range(MOST))]
        trio.lowlevel.remove_instrument(counted)
    assert autojump_clock.current_time() < 50


async def test_a_queue_that_is_given_up_returns_what_it_has(autojump_clock: MockClock) -> None:
    queue = BatchQueue[int](20, MOST)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(queue.collect)
        await trio.testing.wait_all_tasks_blocked()
        for number in range(3):
            await queue.put(number, trio.current_time() + 50)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert autojump_clock.current_time() < 50
    await queue.put(3, 0.0)
    assert queue.drain() == [0, 1, 2, 3]
    assert len(queue) == 0
