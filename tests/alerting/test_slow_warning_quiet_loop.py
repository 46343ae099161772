"""When a slow warning waits, and what its state survives."""

import pytest

from leadline.daemon.loops.mailers import slow_teller
from leadline.daemon.loops.mailers.warning_teller import WarningTeller
from leadline.daemon.process.children import Beating
from leadline.storage.alerting.tables.slow_warnings import RESULTS_MOST
from leadline.storage.alerting.transactions.tell_slow import SlowDecision, SlowOutcome, tell_slow
from leadline.storage.core.instant import DAY, HOUR, MINUTE, Instant
from leadline.storage.engine.pools import Tx
from leadline.storage.monitors.rules.monitor import MonitorDraft
from leadline.storage.regional.rules import RegionSpread
from leadline.storage.regional.transactions import create_any
from leadline.storage.retirement.transactions.delete_monitor import delete_monitor
from tests.alerting.test_alert_processor_loop import Story
from tests.alerting.test_slow_warning_loop import (
    ENDED,
    WARNED,
    checked,
    execute,
    since,
    slow_monitor,
    teller_of,
    told,
)
from tests.support.worlds.world import World

SILENCE = (
    "insert into settings (name, value, updated_at)"
    """ values ('alerting', '{"enabled": true}'::jsonb, now())"""
)
BOTH = [("warnings", WARNED), ("warnings", ENDED)]
REGIONS = ("core", "attic", "cellar")


@pytest.fixture
def story(world: World) -> Story:
    return Story(world)


async def mute(story: Story, monitor: int) -> None:
    world = story.world
    async with world.pool.transaction("mute") as tx:
        await tx.execute(
            "insert into mutes (org, uid, project, monitor, starts_at, ends_at, created_at, reason,"
            " author_label) values (%(org)s, gen_random_uuid(), %(project)s, %(monitor)s,"
            " at(%(start)s), at(%(end)s), at(%(start)s), 'planned', 'Ann')",
            org=world.org,
            project=world.project,
            monitor=monitor,
            start=world.now - MINUTE,
            end=world.now + DAY,
        )


@pytest.mark.parametrize("hours", [12, 24])
async def test_long_intervals_warn_also_after_restarts(story: Story, hours: int) -> None:
    row = await slow_monitor(story, interval_seconds=hours * 3_600)
    kept = teller_of(story)
    for count in range(3):
        story.world.now = Instant(story.world.now + hours * HOUR)
        await story.is_now(row, True, latency_ms=9_000)
        if count < 2:
            assert await kept.pass_once() + await teller_of(story).pass_once() == 0
    other = teller_of(story) if hours == 12 else kept
    assert await other.pass_once() == 1


async def test_a_warning_waits_for_the_end_of_the_global_silence(story: Story) -> None:
    row, teller = await slow_monitor(story), teller_of(story)
    await execute(story, SILENCE)
    await checked(story, row, 600, 600, 600)
    assert (await teller.pass_once(), await told(story)) == (0, [])
    await execute(story, "delete from settings where name = 'alerting'")
    await checked(story, row, 600)
    assert (await teller.pass_once(), await told(story)) == (1, BOTH[:1])
    await execute(story, SILENCE)
    await checked(story, row, 100, 100, 100)
    assert (await teller.pass_once(), await told(story)) == (1, BOTH)


async def test_no_warning_begins_in_maintenance(story: Story) -> None:
    row, teller = await slow_monitor(story), teller_of(story)
    await story.maintain(row, 10 * MINUTE)
    await checked(story, row, 600, 600, 600)
    assert (await teller.pass_once(), await told(story)) == (0, [])
    story.world.now = Instant(story.world.now + HOUR)
    await checked(story, row, 600)
    assert (await teller.pass_once(), await told(story)) == (1, BOTH[:1])


@pytest.mark.parametrize("is_muted", [True, False])
async def test_what_quiets_a_regional_monitor_quiets_its_members(
    story: Story, is_muted: bool
) -> None:
    world = story.world
    await story.channel("warnings")
    await execute(story, "update notification_channels set takes_warnings = true")
    draft = MonitorDraft(
        type="http",
        name="Shop",
        target="https://shop.example/",
        interval_seconds=3_600,
        slow_above_ms=500,
        slow_runs=1,
    )
    async with world.pool.transaction("create") as tx:
        spread, regions = RegionSpread(REGIONS), frozenset(REGIONS)
        await create_any(tx, world.editor, world.project_uid, draft, spread, world.keyring, regions)
    [(composite,)] = await world.rows("select id from monitors where regional_of = id")
    story.world.now = Instant(world.now + MINUTE)
    async with world.pool.transaction("results") as tx:
        await tx.execute(
            "insert into heartbeats (org, monitor, ts, up, latency_ms)"
            " select org, id, at(%(now)s), true, 900 from monitors where id <> regional_of",
            now=world.now,
        )
    if is_muted:
        await mute(story, composite)
    assert await teller_of(story).pass_once() == (0 if is_muted else 3)


async def test_a_deleted_monitor_ends_its_warning(story: Story) -> None:
    row, teller = await slow_monitor(story), teller_of(story)
    await checked(story, row, 600, 600, 600)
    await teller.pass_once()
    async with story.world.pool.transaction("delete") as tx:
        await delete_monitor(tx, story.world.editor, row.uid)
    assert await told(story) == BOTH
    assert await teller.pass_once() == 0


async def test_a_mute_holds_back_no_end_and_no_other_monitor(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_teller, "BATCH_MOST", 1)
    row, teller = await slow_monitor(story, slow_runs=1), teller_of(story)
    given = {"slow_above_ms": 500, "slow_runs": 1, "interval_seconds": 3_600}
    others = [await story.world.monitor(name=name, **given) for name in ("Api", "Mail")]
    for one in (row, *others):
        await checked(story, one, 600)
    assert await teller.pass_once() == 3
    await mute(story, row.id)
    await execute(story, "update monitors set slow_above_ms = 0")

    async def busy(tx: Tx, decision: SlowDecision) -> SlowOutcome:
        return SlowOutcome.LATER if decision.key == row.key else await tell_slow(tx, decision)

    with monkeypatch.context() as patch:
        patch.setattr(slow_teller, "tell_slow", busy)
        assert await teller.pass_once() == 2
    assert await teller.pass_once() == 1


async def test_a_pass_stores_some_changes_and_the_next_one_the_others(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_teller, "CHANGES_MOST", 2)
    teller, beats = WarningTeller(story.world.pool, lambda: story.world.now), list[int]()
    assert isinstance(teller, Beating)
    teller.beat_with(lambda: beats.append(1))
    given = {"slow_above_ms": 500, "slow_runs": 1, "interval_seconds": 3_600}
    for number in range(5):
        await checked(story, await story.world.monitor(name=f"Shop {number}", **given), 600)
    assert [await teller.pass_once() for _ in range(4)] == [2, 2, 1, 0]
    await execute(story, "update monitors set slow_above_ms = 0")
    assert [await teller.pass_once() for _ in range(4)] == [2, 2, 1, 0]
    assert len(beats) >= 10


async def test_another_threshold_starts_a_new_streak(story: Story) -> None:
    row, teller = await slow_monitor(story), teller_of(story)
    await checked(story, row, 600, 600)
    await teller.pass_once()
    await execute(story, "update monitors set slow_above_ms = 5000")
    await checked(story, row, 6_000, 6_000)
    assert await teller.pass_once() == 0
    await checked(story, row, 6_000)
    assert await teller.pass_once() == 1


async def test_results_count_after_the_clock_is_set_back(story: Story) -> None:
    row, teller = await slow_monitor(story), teller_of(story)
    now = story.world.now
    story.world.now = Instant(now + 3 * DAY)
    await checked(story, row, 100)
    await teller.pass_once()
    story.world.now = now
    await teller.pass_once()
    await checked(story, row, 600, 600)
    assert await teller.pass_once() == 0
    await checked(story, row, 600)
    assert await teller.pass_once() == 1


async def test_a_paused_monitor_is_not_shown_as_slow(story: Story) -> None:
    row, teller = await slow_monitor(story), teller_of(story)
    await checked(story, row, 600, 600, 600)
    await teller.pass_once()
    await story.edit(row, enabled=False)
    assert await since(story, row) is None
    await story.edit(row, enabled=True)
    assert await since(story, row) is not None


def test_the_results_of_a_batch_block_the_event_loop_briefly() -> None:
    assert slow_teller.BATCH_MOST * RESULTS_MOST <= 4_000
