"""Runs of push monitors: overruns, and a model of starts and ends in any order."""

from random import Random
from typing import Any

import pytest

from leadline.daemon.loops.push_deadline_checker import PushDeadlineChecker
from leadline.storage.core.instant import DAY, MINUTE, SECOND, Instant
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.results.event_bus import Bus
from leadline.storage.results.queries.push_runs import PushRunRow, select_push_runs
from leadline.storage.results.queries.push_targets import PushTarget, select_push_target
from leadline.storage.results.rules.push_request import Push, PushKind
from leadline.storage.results.rules.push_run import (
    CLOCK_SKEW_US,
    OPEN_RUNS_MOST,
    REPEAT_LONGEST_US,
    RUNS_KEPT,
)
from leadline.storage.results.tables.push_runs import drop_push_runs
from leadline.storage.results.transactions.record_push_event import end_run, record_mark
from leadline.storage.results.transactions.record_results import record_results
from tests.support.run.effort import varied
from tests.support.worlds.world import REGIONS, START, World

LIMIT = 5 * MINUTE


async def job(world: World, **settings: Any) -> MonitorRow:
    return await world.monitor(
        type="push", interval_seconds=3_600, grace_seconds=3_600, max_run_seconds=300, **settings
    )


async def target_of(world: World, row: MonitorRow) -> PushTarget:
    async with world.pool.transaction("find", read_only=True) as tx:
        assert row.push_token_hash is not None
        found = await select_push_target(tx, row.push_token_hash)
    assert found is not None
    return found


async def start(world: World, row: MonitorRow, at: int, run: str = "") -> bool:
    target = await target_of(world, row)
    async with world.pool.transaction("start") as tx:
        return await record_mark(tx, target, Push(PushKind.START, True, run=run), Instant(at))


async def end(
    world: World, row: MonitorRow, at: int, run: str = "", *, up: bool = True
) -> int | None:
    """Ends the run and stores the result, as a push does. Returns the duration."""
    target = await target_of(world, row)
    said = Push(PushKind.HEARTBEAT, up, run=run, code=0 if up else 1)
    async with world.pool.transaction("end") as tx:
        duration = await end_run(tx, target, said, Instant(at))
    async with world.pool.transaction("result") as tx:
        await record_results(tx, [world.result(row, Instant(at), up)])
    return duration


async def check(world: World, at: int, *, listened: bool = True) -> int:
    world.now = Instant(at)
    if listened:
        # One process listens throughout. Several that did not end in order leave time unheard.
        async with world.pool.transaction("forget") as tx:
            await tx.execute("delete from presences")
        await world.listen(START, world.now)
    return await PushDeadlineChecker(world.pool, Bus(), lambda: world.now, lambda: None).pass_once()


async def runs(world: World, row: MonitorRow) -> list[PushRunRow]:
    async with world.pool.transaction("runs", read_only=True) as tx:
        return await select_push_runs(tx, row.key, RUNS_KEPT)


async def test_a_run_that_is_open_at_its_deadline_is_one_failure(world: World) -> None:
    row = await job(world)
    await end(world, row, START + SECOND)
    assert await world.state(row) == ("up", 0)
    await start(world, row, START + MINUTE, "a")
    assert await check(world, START + MINUTE + LIMIT - 1) == 0
    assert await check(world, START + MINUTE + LIMIT + SECOND) == 1
    assert await check(world, START + MINUTE + LIMIT + MINUTE) == 0
    assert await world.state(row) == ("down", 1)
    assert (await world.beats(row))[-1] == (START + MINUTE + LIMIT, False, "push_overrun")
    assert await end(world, row, START + MINUTE + 2 * LIMIT, "a") == 2 * LIMIT
    assert await world.state(row) == ("up", 0)
    (run,) = await runs(world, row)
    assert (run.judged, run.outcome, run.duration_ms) == ("overrun", "succeeded", 600_000)


async def test_an_overrun_that_is_judged_after_its_time_was_sealed_is_a_failure(
    world: World,
) -> None:
    row = await job(world)
    await end(world, row, START + SECOND)
    await start(world, row, START + MINUTE, "a")
    async with world.pool.transaction("fence") as tx:
        through = Instant(START + 20 * MINUTE)
        await tx.execute("update shards set sealed_through = at(%(to)s)", to=through)
    assert await check(world, through) == 1
    assert await world.state(row) == ("down", 1)
    deadline = START + MINUTE + LIMIT
    assert (await world.beats(row))[-1] == (deadline, False, "push_overrun")
    assert [from_ for (from_,) in await world.rows("select from_at from repairs")] == [deadline]


async def test_overlapping_runs_are_kept_apart(world: World) -> None:
    row = await job(world)
    await start(world, row, START, "a")
    await start(world, row, START + MINUTE, "b")
    assert await end(world, row, START + 2 * MINUTE, "a") == 2 * MINUTE
    assert await check(world, START + 20 * MINUTE) == 1
    assert (await world.beats(row))[-1] == (START + MINUTE + LIMIT, False, "push_overrun")


async def test_an_end_after_the_deadline_and_before_the_judgement_is_an_overrun(
    world: World,
) -> None:
    """The run ended late, so it has overrun. Its later success is the state."""
    row = await job(world)
    await start(world, row, START, "a")
    await end(world, row, START + LIMIT + 1, "a")
    assert await check(world, START + LIMIT + SECOND) == 1
    assert [msg for _, _, msg in await world.beats(row)] == ["push_overrun", None]
    assert await world.state(row) == ("up", 0)


async def test_a_run_that_ends_at_its_deadline_is_in_time(world: World) -> None:
    row = await job(world)
    await start(world, row, START, "a")
    await end(world, row, START + LIMIT, "a")
    assert await check(world, START + LIMIT + SECOND) == 0


@pytest.mark.parametrize(
    ("heard", "judged"),
    [
        ([(0, 20)], "overrun"),
        ([(0, 3), (4, 20)], "not_listening"),
        ([(2, 20)], "not_listening"),
        ([], None),
    ],
)
async def test_an_end_that_can_be_lost_is_no_overrun(
    world: World, heard: list[tuple[int, int]], judged: str | None
) -> None:
    row = await job(world)
    await start(world, row, START + MINUTE, "a")
    for begin, until in heard:
        await world.listen(Instant(START + begin * MINUTE), Instant(START + until * MINUTE))
    count = await check(world, START + 20 * MINUTE, listened=False)
    assert count == (1 if judged == "overrun" else 0)
    assert [run.judged for run in await runs(world, row)] == [judged]
    assert len(await world.beats(row)) == count


async def test_no_limit_applies_in_a_pause(world: World) -> None:
    row = await job(world)
    await start(world, row, START + MINUTE, "a")
    world.now = Instant(START + 2 * MINUTE)
    async with world.pool.transaction("pause") as tx:
        await edit_monitor(tx, world.editor, row.uid, {"enabled": False}, world.keyring, REGIONS)
    assert await check(world, START + 20 * MINUTE) == 0
    assert [run.judged for run in await runs(world, row)] == ["paused"]
    assert await world.beats(row) == []


async def test_no_limit_applies_in_maintenance(world: World) -> None:
    row = await job(world)
    await start(world, row, START + MINUTE, "a")
    async with world.pool.transaction("maintenance") as tx:
        await tx.execute(
            "insert into maintenances (org, uid, project, starts_at, ends_at, created_at)"
            " values (%(org)s, gen_random_uuid(), %(project)s, at(%(from_)s), at(%(until)s),"
            " at(%(from_)s))",
            org=world.org,
            project=world.project,
            from_=Instant(START + 2 * MINUTE),
            until=Instant(START + 3 * MINUTE),
        )
    assert await check(world, START + 20 * MINUTE) == 0
    assert [run.judged for run in await runs(world, row)] == ["maintenance"]


async def test_a_changed_limit_applies_to_later_runs(world: World) -> None:
    row = await job(world)
    await start(world, row, START, "a")
    async with world.pool.transaction("edit") as tx:
        given = {"max_run_seconds": 0}
        await edit_monitor(tx, world.editor, row.uid, given, world.keyring, REGIONS)
    await start(world, row, START + 1, "b")
    assert await check(world, START + 20 * MINUTE) == 1
    assert {run.run: run.judged for run in await runs(world, row)} == {"a": "overrun", "b": None}


async def test_a_repeated_end_has_the_duration_of_its_run(world: World) -> None:
    """The sender repeats a request whose answer was lost."""
    row = await job(world)
    await start(world, row, START, "a")
    assert await end(world, row, START + MINUTE, "a") == MINUTE
    assert await end(world, row, START + 2 * MINUTE, "a") == MINUTE
    assert await end(world, row, START + 3 * MINUTE) is None


async def test_a_reused_run_id_has_no_duration_of_an_earlier_day(world: World) -> None:
    """The start of today was lost."""
    row = await job(world)
    await start(world, row, START, "nightly")
    ended = START + MINUTE
    assert await end(world, row, ended, "nightly") == MINUTE
    assert await end(world, row, ended + REPEAT_LONGEST_US, "nightly") == MINUTE
    assert await end(world, row, ended + REPEAT_LONGEST_US + 1, "nightly") is None


@pytest.mark.parametrize("run", ["", "a"])
async def test_a_start_that_is_handled_after_its_result_is_no_overrun(
    world: World, run: str
) -> None:
    row = await job(world)
    await end(world, row, START + SECOND, run)
    await end(world, row, START + SECOND, "other")
    assert await start(world, row, START, run)
    await check(world, START + 20 * MINUTE)
    (only,) = await runs(world, row)
    assert (only.judged, only.outcome, only.duration_ms) == ("ended", "succeeded", 1_000)
    assert all(up for _, up, _ in await world.beats(row))


async def test_a_start_after_a_result_is_a_new_run(world: World) -> None:
    row = await job(world)
    await end(world, row, START, "a")
    await start(world, row, START, "a")
    await end(world, row, START + LIMIT + SECOND, "b")
    await start(world, row, START, "b")
    assert await check(world, START + 20 * MINUTE) == 2
    assert [run.judged for run in await runs(world, row)] == ["overrun", "overrun"]


async def test_a_late_start_within_an_ended_run_is_ended_too(world: World) -> None:
    """The result was received after the second start and ended the first run."""
    row = await job(world)
    await start(world, row, START, "a")
    await end(world, row, START + 3 * SECOND, "a")
    await start(world, row, START + 2 * SECOND, "a")
    assert await check(world, START + 20 * MINUTE) == 0
    assert [run.duration_ms for run in await runs(world, row)] == [1_000, 3_000]


async def test_a_run_can_be_shorter_than_the_difference_of_two_clocks(world: World) -> None:
    row = await job(world)
    await start(world, row, START + CLOCK_SKEW_US, "a")
    assert await end(world, row, START, "a") == 0
    await start(world, row, START + CLOCK_SKEW_US, "b")
    assert await end(world, row, START - 1, "b") is None
    # This result was received before the second run of its id and is handled after its start.
    await start(world, row, START, "c")
    await start(world, row, START + 2 * SECOND, "c")
    await end(world, row, START + SECOND, "c")
    assert await check(world, START + 20 * MINUTE) == 2
    found = [(run.run, run.judged) for run in await runs(world, row)]
    assert found == [("c", "overrun"), ("b", "overrun"), ("a", "ended"), ("c", "ended")]


async def test_an_undecided_run_is_not_deleted(world: World) -> None:
    """The retention can be shorter than the longest run."""
    row = await job(world)
    await start(world, row, START, "open")
    await start(world, row, START + 1, "ended")
    await end(world, row, START + 2, "ended")
    async with world.pool.transaction("drop") as tx:
        assert await drop_push_runs(tx, Instant(START + DAY)) == 1
    await check(world, START + DAY)
    assert [run.judged for run in await runs(world, row)] == ["overrun"]
    async with world.pool.transaction("drop") as tx:
        assert await drop_push_runs(tx, Instant(START + DAY)) == 1


async def test_open_runs_are_bounded_and_old_ones_deleted(world: World) -> None:
    row = await job(world)
    for at in range(OPEN_RUNS_MOST):
        assert await start(world, row, START + at, f"r{at}")
    assert not await start(world, row, START + MINUTE, "one-more")
    assert await start(world, row, START + MINUTE, "r0")
    assert await start(world, row, START + MINUTE, "r0"), "a repeated try"
    for at in range(1, OPEN_RUNS_MOST):
        await end(world, row, START + MINUTE + at, f"r{at}")
    for at in range(5):
        assert await start(world, row, START + 2 * MINUTE + at)
    found = await runs(world, row)
    assert len(found) == RUNS_KEPT
    assert [run.run for run in found if run.outcome is None] == ["", "r0"]


async def test_a_start_of_long_ago_is_not_the_start_of_a_result(world: World) -> None:
    row = await world.monitor(type="push", interval_seconds=3_600)
    await start(world, row, START)
    world.now = Instant(START + 8 * DAY)
    assert await end(world, row, world.now) is None


@pytest.mark.parametrize("seed", varied(range(6), range(60)))
async def test_any_order_of_starts_and_ends_agrees_with_a_model(world: World, seed: int) -> None:
    """The model keeps the open run of each id. Each step is two minutes after the one before."""
    chance = Random(seed)
    words = ("start", "up", "down", "check")
    steps = [(chance.choice(words), chance.choice(("", "a", "b"))) for _ in range(12)]
    row = await job(world)
    model: dict[str, int] = {}
    judged: set[tuple[str, int]] = set()
    ended: dict[tuple[str, int], int] = {}
    at = world.now = START
    last: dict[str, tuple[int, int]] = {}
    for word, run in [*steps, ("check", "")]:
        at = world.now = Instant(at + 2 * MINUTE)
        if word == "start":
            if run in model:
                ended[run, model[run]] = at
            await start(world, row, at, run)
            model[run] = at
            last.pop(run, None)
        elif word in ("up", "down"):
            expected = None
            if run in model:
                begun = model.pop(run)
                ended[run, begun] = at
                last[run] = (begun, at)
                expected = at - begun
            elif run and run in last and at - last[run][1] <= REPEAT_LONGEST_US:
                expected = last[run][1] - last[run][0]
            assert await end(world, row, at, run, up=word == "up") == expected
        else:
            late = {
                (run, begun)
                for run, begun in [*model.items(), *ended]
                if begun + LIMIT <= at and ended.get((run, begun), at + 1) > begun + LIMIT
            }
            assert await check(world, at) == len(late - judged)
            judged |= late
    beats = [ts for ts, _, msg in await world.beats(row) if msg == "push_overrun"]
    assert len(beats) == len(judged)
