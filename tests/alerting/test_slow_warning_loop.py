"""A slow monitor warns the channels that take warnings, and is never down for it."""

from typing import Any

import pytest

from leadline.daemon.loops.mailers import slow_teller
from leadline.daemon.loops.mailers.slow_teller import SlowTeller
from leadline.daemon.loops.mailers.warning_teller import WarningTeller
from leadline.storage.alerting.queries.open_warnings import NO_WARNINGS, select_warnings
from leadline.storage.alerting.rules import outage_text
from leadline.storage.alerting.transactions import tell_slow
from leadline.storage.core.instant import HOUR, MINUTE, Instant
from leadline.storage.core.key import MonitorKey
from leadline.storage.monitors.rows import MonitorRow
from tests.alerting.test_alert_processor_loop import Story
from tests.support.worlds.world import World

WARNED, ENDED = "monitor.warning", "monitor.warning_ended"


@pytest.fixture
def story(world: World) -> Story:
    return Story(world)


def teller_of(story: Story) -> SlowTeller:
    return SlowTeller(story.world.pool, lambda: story.world.now)


async def warned_monitor(story: Story, **fields: Any) -> MonitorRow:
    """A monitor of a project with a channel of the monitor, and one that takes warnings."""
    row = await story.world.monitor(name="Shop", **fields)
    await story.channel("pages", row)
    await story.channel("warnings")
    await execute(
        story, "update notification_channels set takes_warnings = true where name = 'warnings'"
    )
    return row


async def slow_monitor(story: Story, **given: int) -> MonitorRow:
    fields = {"slow_above_ms": 500, "slow_runs": 3, "interval_seconds": 3_600, **given}
    return await warned_monitor(story, **fields)


async def execute(story: Story, query: str) -> None:
    async with story.world.pool.transaction("change") as tx:
        await tx.execute(query)


async def checked(story: Story, row: MonitorRow, *latencies: int | None) -> None:
    """Records a check for each latency; None is a failed one."""
    for latency in latencies:
        story.world.now = Instant(story.world.now + MINUTE)
        await story.is_now(row, latency is not None, latency_ms=latency or 9_000)


async def told(story: Story) -> list[tuple[str, str]]:
    return sorted(await story.notifications())


async def since(story: Story, row: MonitorRow) -> Instant | None:
    async with story.world.pool.transaction("look", read_only=True) as tx:
        found = await select_warnings(tx, [row.key])
        return found.get(MonitorKey(row.key), NO_WARNINGS).slow


async def test_three_slow_checks_warn_once_and_three_fast_ones_end_it(story: Story) -> None:
    row, teller = await slow_monitor(story), teller_of(story)
    await checked(story, row, 100, 600, 600)
    assert await teller.pass_once() == 0
    await checked(story, row, 600)
    began = story.world.now
    assert await teller.pass_once() == 1
    assert await since(story, row) == began
    await checked(story, row, 600, 100, 100, 600, 100)
    assert await teller.pass_once() == 0
    await story.run_pass()
    assert await told(story) == [("warnings", WARNED)]
    await checked(story, row, 100, 100)
    assert await teller.pass_once() == 1
    assert await since(story, row) is None
    assert await told(story) == [("warnings", WARNED), ("warnings", ENDED)]
    assert (await story.world.state(row))[0] == "up"


async def test_a_second_process_and_a_restart_tell_nothing_again(story: Story) -> None:
    row = await slow_monitor(story)
    one, other = teller_of(story), teller_of(story)
    await checked(story, row, 600, 600)
    await one.pass_once()
    await checked(story, row, 600)
    assert await one.pass_once() + await other.pass_once() + await teller_of(story).pass_once() == 1
    await checked(story, row, 600)
    assert await other.pass_once() + await teller_of(story).pass_once() == 0
    await checked(story, row, 100, 100, 100)
    assert await teller_of(story).pass_once() + await one.pass_once() + await other.pass_once() == 1
    assert await told(story) == [("warnings", WARNED), ("warnings", ENDED)]


async def test_failed_and_missing_checks_neither_begin_nor_end_it(story: Story) -> None:
    row, teller = await slow_monitor(story), teller_of(story)
    await checked(story, row, 600, None, 600)
    story.world.now = Instant(story.world.now + HOUR)
    assert await teller.pass_once() == 0
    await checked(story, row, None, 600)
    assert await teller.pass_once() == 1
    await checked(story, row, None, None, None, None)
    story.world.now = Instant(story.world.now + HOUR)
    assert await teller.pass_once() == 0
    assert await since(story, row) is not None


async def test_a_monitor_without_a_threshold_is_not_read(story: Story) -> None:
    row, teller = await slow_monitor(story, slow_above_ms=0), teller_of(story)
    await checked(story, row, 60_000, 60_000, 60_000)
    assert await teller.pass_once() == 0
    assert await told(story) == []


async def test_a_push_with_a_duration_is_never_slow(story: Story) -> None:
    row, teller = await slow_monitor(story), teller_of(story)
    await execute(story, "update monitors set type = 'push'")
    await checked(story, row, 600, 600, 600)
    assert await teller.pass_once() == 0


async def test_a_warning_waits_for_the_end_of_a_mute(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, teller = await slow_monitor(story), teller_of(story)

    async def muted(*_: object) -> set[MonitorKey]:
        return {row.key}

    for module in (tell_slow, slow_teller):
        monkeypatch.setattr(module, "select_quiet", muted)
    await checked(story, row, 600, 600, 600)
    assert await teller.pass_once() == 0
    assert await told(story) == []
    monkeypatch.undo()
    assert await teller.pass_once() == 0
    await checked(story, row, 600)
    assert await teller.pass_once() == 1
    assert await told(story) == [("warnings", WARNED)]


async def test_a_fast_check_during_a_mute_cancels_the_warning(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, teller = await slow_monitor(story), teller_of(story)

    async def muted(*_: object) -> set[MonitorKey]:
        return {row.key}

    monkeypatch.setattr(slow_teller, "select_quiet", muted)
    await checked(story, row, 600, 600, 600)
    assert await teller.pass_once() == 0
    await checked(story, row, 100)
    assert await teller.pass_once() == 0
    monkeypatch.undo()
    await checked(story, row, 600, 600)
    assert await teller.pass_once() == 0
    await checked(story, row, 600)
    assert await teller.pass_once() == 1


async def test_the_loop_ends_the_last_warning_and_forgets_its_monitor(story: Story) -> None:
    """No monitor has a threshold then, so only the warning itself is a reason to look."""
    row, loop = await slow_monitor(story), WarningTeller(story.world.pool, lambda: story.world.now)
    await checked(story, row, 600, 600, 600)
    assert await loop.pass_once() == 1
    await execute(story, "update monitors set slow_above_ms = 0")
    assert await loop.pass_once() == 1
    assert await since(story, row) is None
    assert await loop.pass_once() == 0
    assert not loop._slow._states


async def test_a_removed_threshold_ends_the_warning(story: Story) -> None:
    row, teller = await slow_monitor(story), teller_of(story)
    await checked(story, row, 600, 600, 600)
    await teller.pass_once()
    await execute(story, "update monitors set slow_above_ms = 0")
    assert await teller.pass_once() == 1
    assert await teller.pass_once() == 0
    assert await told(story) == [("warnings", WARNED), ("warnings", ENDED)]
    assert await since(story, row) is None


async def test_a_failing_monitor_does_not_stop_the_others(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, teller = await slow_monitor(story), teller_of(story)
    broken = await story.world.monitor(
        name="Broken", slow_above_ms=500, slow_runs=1, interval_seconds=3_600
    )
    title = outage_text.slow_title

    def fail(name: str) -> str:
        if name == "Broken":
            raise RuntimeError("broken")
        return title(name)

    monkeypatch.setattr(tell_slow, "slow_title", fail)
    await checked(story, broken, 600)
    await checked(story, row, 600, 600, 600)
    assert await teller.pass_once() == 1
    assert await told(story) == [("warnings", WARNED)]
    monkeypatch.undo()
    await checked(story, broken, 600)
    assert await teller.pass_once() == 1
