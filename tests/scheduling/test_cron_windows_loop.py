"""Monitors with a cron expression, in ticker, sealer and push deadlines: no window vanishes."""

import pytest

from leadline.daemon.loops.push_deadline_checker import PushDeadlineChecker
from leadline.storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.monitors.queries.monitors import next_due_of, select_standings, status_of
from leadline.storage.results.event_bus import Bus
from leadline.storage.results.transactions.record_results import record_results
from tests.scheduling.test_ledger_complete_loop import due_windows, edit, run_until
from tests.support.worlds.world import START, World


async def test_every_due_instant_has_a_verdict_through_an_edit_and_an_outage(
    world: World,
) -> None:
    row = await world.monitor(schedule="*/10 * * * *", timezone="Europe/Berlin")
    assert row.interval_seconds == 600
    await run_until(world, Instant(START + 15 * MINUTE))
    await edit(world, row, schedule="5,35 * * * *", timezone="Asia/Kathmandu")
    # The scheduler is away for an hour.
    world.now = Instant(world.now + HOUR)
    await run_until(world, Instant(world.now + 10 * MINUTE))
    due = [at for at in await due_windows(world, row, world.now) if at <= world.now - 130 * SECOND]
    ledger = await world.ledger(row)
    assert [at for at, _, _ in ledger] == due
    assert {verdict for _, verdict, _ in ledger} == {"missed"}
    minutes = [(at - START) // MINUTE for at in due]
    # Kathmandu is 5:45 ahead, so minute 5 and 35 are minute 20 and 50 in UTC.
    start = START % HOUR // MINUTE
    assert {(start + m) % 60 for m in minutes if m > 16} == {20, 50}


async def test_an_interval_returns_when_the_schedule_is_cleared(world: World) -> None:
    row = await world.monitor(schedule="0 3 * * 1-5")
    await edit(world, row, schedule="", interval_seconds=300)
    await run_until(world, Instant(START + 20 * MINUTE))
    assert len(await world.ledger(row)) == 3


async def test_a_silent_job_fails_after_the_grace_of_each_due_instant(world: World) -> None:
    row = await world.monitor(type="push", schedule="*/30 * * * *", grace_seconds=120)
    beat = Instant(START + SECOND)
    world.now = beat
    async with world.pool.transaction("beat") as tx:
        await record_results(tx, [world.result(row, beat, True)])
    await world.listen(Instant(START - DAY), Instant(START + 2 * HOUR))
    half = 30 * MINUTE
    first = Instant(START - START % half + half)
    checker = PushDeadlineChecker(world.pool, Bus(), lambda: world.now, lambda: None)
    world.now = Instant(START + 2 * HOUR)
    await checker.pass_once()
    failures = [ts for ts, up, _ in await world.beats(row) if not up]
    expected = [Instant(first + n * half + 2 * MINUTE) for n in range(4)]
    assert failures == [at for at in expected if at < world.now]
    async with world.pool.transaction("look", read_only=True) as tx:
        standing = (await select_standings(tx, [row.key]))[row.key]
    assert status_of(standing, "push", Instant(world.now - MINUTE)).value == "down"
    due = next_due_of(standing, world.now)
    assert due is not None
    assert due % half == 0
    assert world.now < due <= world.now + half


async def test_a_process_of_an_earlier_version_prevents_a_schedule(world: World) -> None:
    await world.listen(START, START)
    async with world.pool.transaction("old") as tx:
        await tx.execute("update presences set knows_schedules = false")
    with pytest.raises(Refused, match="schedule"):
        await world.monitor(schedule="0 * * * *")
    row = await world.monitor()
    world.now = Instant(START + MINUTE)
    await edit(world, row, schedule="0 * * * *")
