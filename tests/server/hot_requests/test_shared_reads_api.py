"""Reads that concurrent requests share: pure of database, on Trio's mock clock."""

import random

import pytest
import trio
from trio.testing import MockClock

from leadline.http.wire.shared_reads import SharedReads
from tests.support.run.effort import examples


class Journal:
    """Reads that take time, fail or are cancelled. A read returns the instant at which it began."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.shared: SharedReads[tuple[str, float]] = SharedReads()
        self.active: dict[str, int] = {}
        self.own_reads = 0

    async def ask(self, key: str, fails: float) -> tuple[str, float]:
        async def read() -> tuple[str, float]:
            self.active[key] = self.active.get(key, 0) + 1
            self.own_reads += 1
            began = trio.current_time()
            try:
                await trio.sleep(self.random.uniform(0.1, 2))
                if self.random.random() < fails:
                    raise OSError("database unavailable")
                return key, began
            finally:
                self.active[key] -= 1

        return await self.shared.get(key, read)


@pytest.mark.parametrize("fails", [0.0, 0.3])
async def test_a_caller_gets_a_read_that_began_after_its_call(
    autojump_clock: MockClock, fails: float
) -> None:
    for seed in range(examples(20)):
        journal = Journal(seed)
        answered = 0

        async def call(journal: Journal, key: str, delay: float, patience: float) -> None:
            nonlocal answered
            await trio.sleep(delay)
            called = trio.current_time()
            with trio.move_on_after(patience):
                try:
                    found, began = await journal.ask(key, fails)
                except OSError:
                    return
                answered += 1
                assert found == key, "a caller gets no other key"
                assert began >= called, "a caller gets no read from before its call"
                assert fails or journal.active[key] <= 1, "one read of a key is active"

        async with trio.open_nursery() as nursery:
            for _ in range(40):
                key, delay = journal.random.choice("ab"), journal.random.uniform(0, 6)
                patience = journal.random.choice([0.3, 1_000, 1_000, 1_000])
                nursery.start_soon(call, journal, key, delay, patience)
        assert answered
        assert len(journal.shared) == 0, "no result and no key is kept"
        assert not any(journal.active.values())


async def test_sixteen_callers_cause_two_reads(autojump_clock: MockClock) -> None:
    journal = Journal(1)
    async with trio.open_nursery() as nursery:
        for _ in range(16):
            nursery.start_soon(journal.ask, "a", 0.0)
    assert (journal.own_reads, journal.shared.reads, journal.shared.shared) == (2, 2, 14)


async def test_who_waits_for_a_failed_read_reads_alone(autojump_clock: MockClock) -> None:
    journal = Journal(1)
    failures = []

    async def call() -> None:
        with pytest.raises(OSError, match="unavailable") as caught:
            await journal.ask("a", 1.0)
        failures.append(caught.value)

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(call)
    assert len({id(failure) for failure in failures}) == 5, "nobody gets the failure of another"
    assert await journal.ask("a", 0.0)
