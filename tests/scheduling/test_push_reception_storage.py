"""A push that Leadline could not receive or could not store is not a silence of the sender."""

import pytest
import trio
import trio.testing
from uuid_utils.compat import uuid7

from leadline.daemon.loops.presence_renewer import (
    LONG_STALL_US,
    PresenceRenewer,
    ProcessIdentity,
    ReceptionGaps,
)
from leadline.daemon.loops.result_recorder import Recorder
from leadline.probes.check.loop_lag import LoopLag
from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.core.refusal import Unavailable
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.tables.monitors import touch_states
from leadline.storage.results.event_bus import Bus
from leadline.storage.results.transactions.record_missed_pushes import record_missed_pushes
from leadline.storage.results.transactions.record_results import record_results
from leadline.storage.scheduling.tables import presences
from tests.support.worlds.blocked import until_blocked
from tests.support.worlds.world import START, World


class Ears:
    """A process that listens: it renews its presence, loses pushes, and ends."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.stalled_us = 0
        self.recorder = Recorder(
            world.pool, Bus(), lambda: world.now, stalled_within=lambda _: self.stalled_us
        )
        self.lag = LoopLag()
        gaps = ReceptionGaps(self.lag, lambda: self.recorder.lost)
        who = ProcessIdentity(uuid7(), "here", ["api"], (), "0", accepts_pushes=True)
        self.attendance = PresenceRenewer(
            world.pool,
            who,
            lambda: world.now,
            self.recorder.committed_through,
            gaps.count,
        )

    async def listen(self, until_seconds: int) -> None:
        until = Instant(START + until_seconds * SECOND)
        await self.attendance.pass_once()
        while self.world.now < until:
            self.world.now = Instant(min(self.world.now + 5 * SECOND, until))
            await self.attendance.pass_once()


@pytest.fixture
async def job(world: World) -> MonitorRow:
    """A job that must report within 70 s and did so at the start."""
    row = await world.monitor(type="push", interval_seconds=60, grace_seconds=10)
    async with world.pool.transaction("beat") as tx:
        await record_results(tx, [world.result(row, START, True)])
    return row


async def missed(world: World, row: MonitorRow) -> list[int]:
    """After how many seconds silence was found."""
    async with world.pool.transaction("judge") as tx:
        await record_missed_pushes(tx, [row.key], [row.shard])
    beats = await world.beats(row)
    return [(ts - START) // SECOND for ts, up, _ in beats if not up]


async def test_silence_that_was_wholly_listened_to_is_missed(world: World, job: MonitorRow) -> None:
    await Ears(world).listen(100)
    assert await missed(world, job) == [70]


async def test_a_push_that_the_store_would_not_take_is_not_the_senders_silence(
    world: World, job: MonitorRow
) -> None:
    ears = Ears(world)
    await ears.listen(65)
    with pytest.raises(Unavailable), ears.recorder.receiving():
        raise Unavailable("database unavailable")
    await ears.listen(130)
    assert await missed(world, job) == []
    await ears.listen(160)
    assert await missed(world, job) == [65 + 15 + 70]


@pytest.mark.parametrize(
    ("stalled_us", "found"), [(LONG_STALL_US, [70]), (LONG_STALL_US + 1, []), (9 * SECOND, [])]
)
async def test_a_push_that_waited_for_a_frozen_process_is_not_the_senders_silence(
    world: World,
    job: MonitorRow,
    monkeypatch: pytest.MonkeyPatch,
    stalled_us: int,
    found: list[int],
) -> None:
    ears = Ears(world)
    await ears.listen(65)
    with monkeypatch.context() as frozen:
        frozen.setattr(LoopLag, "is_watched", True)
        frozen.setattr(ears.lag, "stalled_since", lambda _: stalled_us)
        await ears.listen(75)
    await ears.listen(100)
    assert await missed(world, job) == found


@pytest.mark.parametrize(("stalled_seconds", "found"), [(0, [70]), (1, [70]), (4, [])])
@pytest.mark.parametrize("later", [False, True])
async def test_a_push_that_is_read_after_a_stall_is_as_punctual_as_before_it(
    world: World, job: MonitorRow, stalled_seconds: int, found: list[int], later: bool
) -> None:
    """It is read 72 s after the last one, and its deadline was after 70 s."""
    ears = Ears(world)
    await ears.listen(68)
    world.now = Instant(world.now + 4 * SECOND)
    ears.stalled_us = stalled_seconds * SECOND
    with ears.recorder.receiving() as received:
        await ears.attendance.pass_once()
        assert received == world.now
        assert ears.attendance.renewed_through is not None
        assert ears.attendance.renewed_through <= received - ears.recorder.waited_us()
        push = world.result(job, received, True, waited_us=ears.recorder.waited_us())
    if later:
        # The deadline is judged before the push is stored.
        assert await missed(world, job) == found
    async with world.pool.transaction("push") as tx:
        await record_results(tx, [push])
    ears.stalled_us = 0
    await ears.listen(100)
    assert await missed(world, job) == found
    await ears.listen(150)
    assert await missed(world, job) == [*found, 72 + 70]


@pytest.mark.parametrize(("seconds", "found"), [(0, [70, 130]), (5, [])])
async def test_a_sender_that_hangs_up_on_us_because_we_were_slow_was_not_silent(
    world: World, job: MonitorRow, seconds: int, found: list[int]
) -> None:
    ears = Ears(world)
    await ears.listen(65)
    with trio.CancelScope() as sender, ears.recorder.receiving():
        world.now = Instant(world.now + seconds * SECOND)
        sender.cancel()
        await trio.lowlevel.checkpoint()
    await ears.listen(130)
    assert await missed(world, job) == found


async def test_listening_does_not_pass_a_push_that_waits_to_be_stored(
    world: World, job: MonitorRow
) -> None:
    ears = Ears(world)
    async with trio.open_nursery() as nursery:
        world.now = Instant(START + 65 * SECOND)
        with trio.CancelScope() as sender, ears.recorder.receiving() as received:
            # The result waits in the queue, because no recorder runs yet.
            nursery.start_soon(
                ears.recorder.hand_over, world.result(job, received, True), lambda _answer: None
            )
            await trio.testing.wait_all_tasks_blocked()
            sender.cancel()
            await trio.lowlevel.checkpoint()
        world.now = Instant(START + 80 * SECOND)
        assert ears.recorder.committed_through() < received
        await nursery.start(ears.recorder.run)
        ears.recorder.close()
    assert ears.recorder.committed_through() == world.now


async def test_pushes_sent_during_a_stop_are_not_a_silence(world: World, job: MonitorRow) -> None:
    before, after = Ears(world), Ears(world)
    await before.listen(65)
    before.recorder.stop_hearing()
    # Running probes and queued results delay the end of the process.
    await before.listen(78)
    await before.attendance.delete_presence()
    await after.listen(140)
    assert await missed(world, job) == []
    await after.listen(149)
    assert await missed(world, job) == [78 + 70]


async def test_an_unclean_end_just_before_a_heartbeat_is_remembered_after_it(
    world: World, job: MonitorRow
) -> None:
    async with world.pool.transaction("killed") as tx:
        await presences.begin_presence(
            tx,
            uuid7(),
            Instant(START - 5 * SECOND),
            "there",
            ["api"],
            [],
            "0",
            accepts_pushes=True,
        )
    await world.listen(Instant(START - SECOND), Instant(START + 100 * SECOND))
    world.now = Instant(START + 100 * SECOND)
    # Until ten seconds after the heartbeat senders may have been sent to the dead one.
    assert await missed(world, job) == [80]


async def test_a_result_gets_an_answer_when_the_recorder_is_cancelled(
    world: World, job: MonitorRow
) -> None:
    recorder = Recorder(world.pool, Bus(), lambda: world.now)
    answers: list[str] = []

    async def hold_state(task_status: trio.TaskStatus[None]) -> None:
        async with world.pool.transaction("edit") as tx:
            await touch_states(tx, [job.key])
            task_status.started()
            await trio.sleep_forever()

    # The recorder waits for the state, so that the database cannot be faster than the cancellation.
    async with trio.open_nursery() as nursery:
        await nursery.start(hold_state)
        await nursery.start(recorder.run)
        await recorder.hand_over(
            world.result(job, Instant(START + SECOND), True),
            lambda answer: answers.append(answer.fate),
        )
        await until_blocked(world.pool)
        nursery.cancel_scope.cancel()
    assert answers == ["refused"]
