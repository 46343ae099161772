"""The recorder copies a large batch of runs, and stores it under locks if it is rejected."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
import trio

from leadline.daemon.loops import result_recorder
from leadline.daemon.loops.result_recorder import Recorder
from leadline.storage.core.instant import HOUR, MINUTE, SECOND, Instant
from leadline.storage.engine.pools import Tx
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.results.event_bus import Bus
from leadline.storage.results.rules.incoming_result import (
    IncomingResult,
    StoreOutcome,
    StoreResult,
)
from leadline.storage.results.transactions.record_steady import (
    COPIED_LEAST,
    copy_steady,
    record_steady,
)
from tests.support.worlds.world import START, World

HANGS_SECONDS = 30
MONITORS = 4
WINDOWS = COPIED_LEAST // MONITORS


def run_of(world: World, row: MonitorRow, due: int) -> IncomingResult:
    """Returns a run of the window due at an instant, in µs, that is not late."""
    return world.result(
        row,
        Instant(due + SECOND),
        True,
        dues=(Instant(due),),
        windowed=True,
        covered_until=Instant(due + 60 * MINUTE),
    )


def batch_of(world: World, rows: Sequence[MonitorRow]) -> list[IncomingResult]:
    dues = [START + n * MINUTE for n in range(1, WINDOWS + 1)]
    return [run_of(world, row, due) for due in dues for row in rows]


class Recording:
    """A recorder whose batch is full with COPIED_LEAST results, and the copies that it makes."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = world
        self.patch = monkeypatch
        # Results of each call of `copy_steady`, and of those that returned.
        self.begun: list[int] = []
        self.copied: list[int] = []
        # How long the transaction waits for a lock.
        self.waits_us = 0

    async def record(
        self,
        rows: Sequence[MonitorRow],
        arrivals: Sequence[IncomingResult],
        taken: Sequence[IncomingResult] = (),
    ) -> list[StoreResult]:
        """Records a result of each monitor, which is steady then, and the arrivals as one batch.

        Before the batch, another process stores the results of `taken`.
        """
        recorder = Recorder(self.world.pool, Bus(), lambda: self.world.now)
        async with trio.open_nursery() as nursery:
            await nursery.start(recorder.run)
            with trio.fail_after(HANGS_SECONDS):
                await recorder.record_all([run_of(self.world, row, START) for row in rows])
                await self._store(recorder, taken)
                # The batch is not complete before it is full, however slow this host is.
                self.patch.setattr(result_recorder, "LINGER_SECONDS", HANGS_SECONDS)
                self.patch.setattr(recorder._queue, "_batch_most", len(arrivals))
                self.patch.setattr(result_recorder, "copy_steady", self._copy)
                found = await recorder.record_all(arrivals)
            nursery.cancel_scope.cancel()
        return found

    async def _store(self, recorder: Recorder, taken: Sequence[IncomingResult]) -> None:
        for each in taken:
            version = recorder._standings[each.key].version
            async with self.world.pool.statement("other") as tx:
                steady = msgspec.structs.replace(each, version=version)
                assert await record_steady(tx, [steady]) == [True]

    async def _copy(self, tx: Tx, arrivals: Sequence[IncomingResult]) -> list[bool]:
        self.begun.append(len(arrivals))
        self.world.now = Instant(self.world.now + self.waits_us)
        found = await copy_steady(tx, arrivals)
        self.copied.append(sum(found))
        return found


async def stored(world: World, row: MonitorRow) -> tuple[list[Instant], list[tuple[Instant, str]]]:
    beats, runs = await world.beats(row), await world.ledger(row)
    return [ts for ts, _, _ in beats], [(due, verdict) for due, verdict, _ in runs]


DUES = [Instant(START + n * MINUTE) for n in range(WINDOWS + 1)]
WHOLE = ([Instant(due + SECOND) for due in DUES], [(due, "covered") for due in DUES])


async def test_a_full_batch_of_runs_is_copied(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.now = START
    rows = [await world.monitor() for _ in range(MONITORS)]
    recording = Recording(world, monkeypatch)
    found = await recording.record(rows, batch_of(world, rows))
    assert recording.begun == recording.copied == [COPIED_LEAST]
    assert [each.fate for each in found] == [StoreOutcome.LIVE] * COPIED_LEAST
    for row in rows:
        assert await stored(world, row) == WHOLE


async def test_a_verdict_holds_at_the_instant_at_which_the_window_is_settled(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.now = START
    rows = [await world.monitor() for _ in range(MONITORS)]
    recording = Recording(world, monkeypatch)
    recording.waits_us = 2 * HOUR
    arrivals = batch_of(world, rows)
    arrivals[0] = msgspec.structs.replace(arrivals[0], covered_until=Instant(START - 1))
    await recording.record(rows, arrivals)
    assert recording.copied == [COPIED_LEAST]
    settled = await world.rows(
        "select verdict::text, settled_at <= due_at + interval '1 hour', count(*)"
        " from ledger group by 1, 2 order by 1"
    )
    assert settled == [
        ("covered", True, MONITORS + COPIED_LEAST - 1),
        ("covered_late", True, 1),
    ]


async def test_a_taken_window_leaves_its_result_to_the_locked_path(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.now = START
    rows = [await world.monitor() for _ in range(MONITORS)]
    arrivals = batch_of(world, rows)
    again = msgspec.structs.replace(arrivals[0], ts=Instant(arrivals[0].ts + SECOND))
    recording = Recording(world, monkeypatch)
    found = await recording.record(rows, [again, *arrivals[1:]], taken=arrivals[:1])
    assert (recording.begun, recording.copied) == ([COPIED_LEAST], [COPIED_LEAST - 1])
    assert [each.fate for each in found] == [StoreOutcome.DUPLICATE] + [StoreOutcome.LIVE] * (
        COPIED_LEAST - 1
    )
    for row in rows:
        assert await stored(world, row) == WHOLE


@pytest.mark.parametrize(
    "given",
    [{"latency_ms": 2**31}, {"code": 2**31}, {"msg": "\ud800"}, {"condition": "\ud800"}],
    ids=str,
)
async def test_only_a_value_that_cannot_be_stored_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]
) -> None:
    world.now = START
    rows = [await world.monitor() for _ in range(MONITORS)]
    arrivals = batch_of(world, rows)
    bad = arrivals.pop()
    recording = Recording(world, monkeypatch)
    found = await recording.record(rows, [*arrivals, msgspec.structs.replace(bad, **given)])
    assert (recording.begun, recording.copied) == ([COPIED_LEAST], [])
    assert [each.fate for each in found] == [StoreOutcome.LIVE] * len(arrivals) + [
        StoreOutcome.REFUSED
    ]
    assert found[-1].reason
    for row in rows[:-1]:
        assert await stored(world, row) == WHOLE
    assert await stored(world, rows[-1]) == (WHOLE[0][:-1], WHOLE[1][:-1])
