"""`record_results` folds each result once, in the order of the instants, with any number of
recorders.
"""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from leadline.daemon.loops.result_recorder import Recorder
from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.rules.monitor_state import NOTHING_YET, fold_all
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.monitors.transactions.run_now import run_now
from leadline.storage.results.event_bus import Bus
from leadline.storage.results.rules.incoming_result import IncomingResult, StoreOutcome, StoreResult
from leadline.storage.results.transactions.record_results import record_results
from tests.support.worlds.blocked import until_blocked
from tests.support.worlds.world import REGIONS, START, World


async def record(world: World, *arrivals: IncomingResult) -> list[StoreResult]:
    async with world.pool.transaction("record") as tx:
        answers, _ = await record_results(tx, arrivals)
    return answers


async def test_failures_up_to_the_threshold_make_down_and_one_success_up(world: World) -> None:
    row = await world.monitor(failure_threshold=3)
    for n in range(3):
        assert await world.state(row) == ("pending", n)
        await record(world, world.result(row, Instant(START + n * MINUTE), False))
    assert await world.state(row) == ("down", 3)
    await record(world, world.result(row, Instant(START + 9 * MINUTE), True))
    assert await world.state(row) == ("up", 0)


async def test_a_windowed_result_settles_its_window_once(world: World) -> None:
    row = await world.monitor()
    due = Instant(START + MINUTE)
    given = {"dues": (due,), "windowed": True, "covered_until": Instant(due + MINUTE)}
    first, second = await record(
        world,
        world.result(row, due, True, **given),
        world.result(row, Instant(due + SECOND), False, **given),
    )
    assert (first.fate, second.fate) == (StoreOutcome.LIVE, StoreOutcome.DUPLICATE)
    assert await world.ledger(row) == [(due, "covered", None)]
    assert len(await world.beats(row)) == 1
    (third,) = await record(world, world.result(row, Instant(due + 2), False, **given))
    assert third.fate is StoreOutcome.DUPLICATE
    assert await world.state(row) == ("up", 0)


async def test_an_older_result_is_stored_and_moves_no_state(world: World) -> None:
    row = await world.monitor()
    await record(world, world.result(row, Instant(START + MINUTE), True))
    (answer,) = await record(world, world.result(row, START, False))
    assert answer.fate is StoreOutcome.LIVE
    assert await world.state(row) == ("up", 0)
    assert len(await world.beats(row)) == 2


async def test_two_results_of_one_instant_are_both_kept(world: World) -> None:
    row = await world.monitor(type="push")
    await record(world, world.result(row, START, True), world.result(row, START, True))
    await record(world, world.result(row, START, True))
    assert [ts - START for ts, _, _ in await world.beats(row)] == [0, 1, 2]


async def test_a_result_older_than_the_fence_is_history(world: World) -> None:
    row = await world.monitor()
    await record(world, world.result(row, Instant(START + 10 * MINUTE), True))
    async with world.pool.transaction("fence") as tx:
        await tx.execute(
            "update shards set sealed_through = at(%(to)s)", to=Instant(START + 20 * MINUTE)
        )
    instant = Instant(START + 12 * MINUTE)
    (answer,) = await record(world, world.result(row, instant, False))
    assert answer.fate is StoreOutcome.HISTORY
    assert await world.state(row) == ("up", 0)
    restated = await world.rows("select from_at, to_at from repairs")
    assert restated == [(instant, instant + 3 * MINUTE)]


async def test_a_missed_window_can_be_covered_late_once(world: World) -> None:
    row = await world.monitor()
    due = Instant(START + MINUTE)
    async with world.pool.transaction("miss") as tx:
        await tx.execute(
            "insert into expected_runs values (%(org)s, %(m)s, at(%(due)s), at(%(due)s), 'missed',"
            " 'never_claimed')",
            org=row.org,
            m=row.id,
            due=due,
        )
    given = {"dues": (due,), "windowed": True}
    await record(world, world.result(row, due, True, **given))
    assert await world.ledger(row) == [(due, "covered_late", None)]
    (again,) = await record(world, world.result(row, Instant(due + 5), True, **given))
    assert again.fate is StoreOutcome.DUPLICATE


async def test_a_monitor_that_is_gone_is_ignored(world: World) -> None:
    row = await world.monitor()
    async with world.pool.transaction("gone") as tx:
        await tx.execute("delete from monitors where id = %(m)s", m=row.id)
    (answer,) = await record(world, world.result(row, START, True))
    assert answer.fate is StoreOutcome.IGNORED


@pytest.mark.parametrize(("kind", "jobs"), [("http", [("confirm",)]), ("async_canary", [])])
async def test_a_canary_has_no_confirm_run_with_any_failure_threshold(
    world: World, kind: str, jobs: list[tuple[str]]
) -> None:
    """Each run of a canary is a real transaction, so a failure causes no extra run."""
    row = await world.monitor(failure_threshold=3, interval_seconds=3_600)
    async with world.pool.transaction("make_it_that_kind") as tx:
        await tx.execute("update monitors set type = %(t)s where id = %(id)s", t=kind, id=row.id)
    await world.forget_jobs()
    await record(world, world.result(row, world.now, False))
    assert await world.state(row) == ("pending", 1)
    assert await world.rows("select reason from jobs") == jobs


async def test_a_failure_below_the_threshold_is_confirmed_soon(world: World) -> None:
    row = await world.monitor(failure_threshold=2, interval_seconds=60, confirm_interval_seconds=10)
    async with world.pool.transaction("no extra") as tx:
        await tx.execute("delete from jobs")
    world.now = Instant(START + 61 * SECOND)
    await record(world, world.result(row, world.now, False))
    jobs = await world.rows("select reason, due_at from jobs")
    assert jobs in ([("confirm", world.now + 10 * SECOND)], [])
    await record(world, world.result(row, Instant(world.now + 1), False))
    assert (await world.state(row))[0] == "down"


async def test_a_push_after_its_deadline_finds_the_failure_that_came_before_it(
    world: World,
) -> None:
    row = await world.monitor(type="push", interval_seconds=60, grace_seconds=30)
    begun = Instant(START + MINUTE)
    await record(world, world.result(row, begun, True))
    late = Instant(begun + 100 * SECOND)
    await world.listen(START, Instant(late + SECOND))
    world.now = Instant(late + SECOND)
    await record(world, world.result(row, late, True))
    assert await world.beats(row) == [
        (begun, True, None),
        (begun + 90 * SECOND, False, "push_missed"),
        (late, True, None),
    ]
    flips = await world.rows("select old_status, new_status from status_changes order by id")
    assert flips == [("pending", "up"), ("up", "down"), ("down", "up")]


async def test_a_push_waits_while_its_deadline_cannot_be_judged(world: World) -> None:
    row = await world.monitor(type="push", interval_seconds=60, grace_seconds=30)
    await record(world, world.result(row, START, True))
    await world.listen(START, Instant(START + 85 * SECOND))
    world.now = Instant(START + 96 * SECOND)
    (answer,) = await record(world, world.result(row, Instant(START + 95 * SECOND), True))
    assert answer.fate is StoreOutcome.UNDECIDED
    assert len(await world.beats(row)) == 1


@pytest.mark.parametrize("seed", range(3))
async def test_six_writers_in_any_order_leave_the_state_of_the_newest_result(
    world: World, seed: int
) -> None:
    row = await world.monitor()
    chance = random.Random(seed)
    results = [
        world.result(row, Instant(START + n * SECOND), chance.random() < 0.5) for n in range(90)
    ]
    chance.shuffle(results)
    recorders = [Recorder(world.pool, Bus(), lambda: world.now) for _ in range(6)]
    async with trio.open_nursery() as nursery:
        for recorder in recorders:
            await nursery.start(recorder.run)
        async with trio.open_nursery() as bringing:
            for n, result in enumerate(results):
                bringing.start_soon(recorders[n % 6].record, result)
        for recorder in recorders:
            recorder.close()
    newest = max(results, key=lambda r: r.ts)
    status, _ = await world.state(row)
    assert status == ("up" if newest.up else "down")
    assert len(await world.beats(row)) == len(results)


async def test_in_order_the_recorder_folds_as_the_rule_does(world: World) -> None:
    row = await world.monitor(failure_threshold=3)
    chance = random.Random(5)
    results = [(Instant(START + n * SECOND), chance.random() < 0.4) for n in range(60)]
    recorder = Recorder(world.pool, Bus(), lambda: world.now)
    async with trio.open_nursery() as nursery:
        await nursery.start(recorder.run)
        for ts, up in results:
            answer = await recorder.record(world.result(row, ts, up))
            assert answer.fate is StoreOutcome.LIVE
        recorder.close()
    expected = fold_all(NOTHING_YET, results, 3)
    assert await world.state(row) == (expected.status, expected.failures)


async def test_an_expired_run_now_job_does_not_block_the_next_one(world: World) -> None:
    row = await world.monitor()

    async def ask_at(instant: Instant) -> None:
        world.now = instant
        async with world.pool.transaction("run_now") as tx:
            await run_now(tx, world.editor, row.uid)

    await ask_at(START)
    with pytest.raises(Refused, match="in_use"):
        await ask_at(Instant(START + MINUTE))
    await ask_at(Instant(START + 3 * MINUTE))


async def test_a_run_that_began_before_an_edit_is_still_live(world: World) -> None:
    row = await world.monitor()
    world.now = Instant(START + MINUTE)
    async with world.pool.transaction("edit") as tx:
        await edit_monitor(
            tx, world.editor, row.uid, {"target": "http://other/"}, world.keyring, REGIONS
        )
    before = world.result(row, Instant(START + 30 * SECOND), False, revision=row.revision)
    after = world.result(row, Instant(START + 61 * SECOND), False, revision=row.revision)
    answers = await record(world, before, after)
    assert [answer.fate for answer in answers] == [StoreOutcome.LIVE, StoreOutcome.OUTDATED]
    assert len(await world.beats(row)) == 1


async def test_a_push_of_a_monitor_that_was_just_paused_is_recorded_nowhere(world: World) -> None:
    row = await world.monitor(type="push")
    await record(world, world.result(row, START, True))
    async with world.pool.transaction("pause") as tx:
        await edit_monitor(tx, world.editor, row.uid, {"enabled": False}, world.keyring, REGIONS)
    (answer,) = await record(world, world.result(row, Instant(START + 1), True))
    assert answer.fate is StoreOutcome.PAUSED
    assert len(await world.beats(row)) == 1


# A window that is covered has its result, also where two runs began in one microsecond.


def windowed(world: World, row: MonitorRow, ts: Instant, minute: int) -> IncomingResult:
    due = Instant(START + minute * MINUTE)
    return world.result(
        row, ts, True, dues=(due,), windowed=True, covered_until=Instant(due + MINUTE)
    )


async def expect_a_result_for_each_window(world: World, row: MonitorRow, windows: int) -> None:
    assert [verdict for _, verdict, _ in await world.ledger(row)] == ["covered"] * windows
    assert len(await world.beats(row)) == windows + 1


@pytest.mark.parametrize("together", [True, False])
async def test_two_steady_results_of_one_instant_each_cover_their_window(
    world: World, together: bool
) -> None:
    row = await world.monitor()
    async with recording(world) as recorder:
        await recorder.record(world.result(row, START, True))
        instant = Instant(START + 3 * MINUTE)
        brought = [windowed(world, row, instant, minute) for minute in (1, 2, 3)]
        if together:
            async with trio.open_nursery() as nursery:
                for arrival in brought:
                    nursery.start_soon(recorder.record, arrival)
        else:
            for arrival in brought:
                answer = await recorder.record(arrival)
                assert answer.fate is StoreOutcome.LIVE
    await expect_a_result_for_each_window(world, row, 3)
    assert await world.state(row) == ("up", 0)


async def test_concurrent_results_of_one_instant_cover_both_windows(
    world: World,
) -> None:
    row = await world.monitor()
    async with recording(world) as one, recording(world) as other:
        await one.record(world.result(row, START, True))
        await other.record(world.result(row, Instant(START + 1), True))
        for minute in range(1, 21):
            instant = Instant(START + minute * MINUTE)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(one.record, windowed(world, row, instant, 2 * minute))
                nursery.start_soon(other.record, windowed(world, row, instant, 2 * minute + 1))
    assert [verdict for _, verdict, _ in await world.ledger(row)] == ["covered"] * 40
    assert len(await world.beats(row)) == 42


async def test_a_retry_after_a_rollback_is_not_taken_for_a_duplicate(world: World) -> None:
    """An equal result at the same instant belongs to another run if its window is still free."""
    row = await world.monitor()
    await record(world, world.result(row, START, True), windowed(world, row, START, 1))
    async with world.pool.transaction("record") as tx:
        await record_results(tx, [windowed(world, row, START, 2)], again=True)
    await expect_a_result_for_each_window(world, row, 2)


@asynccontextmanager
async def recording(world: World) -> AsyncIterator[Recorder]:
    recorder = Recorder(world.pool, Bus(), lambda: world.now)
    async with trio.open_nursery() as nursery:
        await nursery.start(recorder.run)
        yield recorder
        recorder.close()


async def test_a_recorder_that_waited_for_an_edit_uses_the_edited_row(world: World) -> None:
    """After the wait for the lock, the recorder reads the row and the terms that the edit wrote."""
    row = await world.monitor()
    world.now = Instant(START + MINUTE)
    late = world.result(row, Instant(START + 61 * SECOND), False, revision=row.revision)
    answers: list[StoreResult] = []
    edited, go_on = trio.Event(), trio.Event()

    async def edit() -> None:
        async with world.pool.transaction("edit") as tx:
            target = {"target": "http://other/", "failure_threshold": 3}
            await edit_monitor(tx, world.editor, row.uid, target, world.keyring, REGIONS)
            edited.set()
            await go_on.wait()

    async def bring() -> None:
        answers.extend(await record(world, late))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(edit)
        await edited.wait()
        nursery.start_soon(bring)
        await until_blocked(world.pool)
        assert answers == []
        go_on.set()
    assert [answer.fate for answer in answers] == [StoreOutcome.OUTDATED]
    assert await world.beats(row) == []
