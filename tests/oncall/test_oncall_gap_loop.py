"""A step for which nobody is on call is followed by the next one with somebody at once, and is due
again until somebody is on call.
"""

from typing import Any

from leadline.storage.core.instant import DAY, HOUR, MINUTE, Instant
from leadline.storage.oncall.rules.escalation import TargetKind
from leadline.storage.oncall.rules.weekly_hours import window_of
from leadline.storage.oncall.transactions.edit_escalation_policies import (
    PolicyDraft,
    StepDraft,
    create_policy,
)
from leadline.storage.oncall.transactions.edit_schedules import ScheduleDraft, create_schedule
from tests.alerting.test_alert_processor_loop import Story
from tests.support.worlds.world import World

_PAGES = """
select e.step, e.paged from incident_pages e join incidents i
  on i.org = e.org and i.id = e.incident order by e.at, e.step
"""


async def test_a_gap_takes_the_next_step_without_its_delay(world: World) -> None:
    story = Story(world)
    on_call, backup, last = [await story.channel(name) for name in ("day", "backup", "last")]
    async with world.pool.transaction("schedule") as tx:
        hours: dict[str, Any] = {
            "windows": (window_of("mon 00:00-00:01"),),
            "ends_at": Instant(world.now - DAY),
        }
        draft = ScheduleDraft("day", 3_600, world.now, [str(on_call)], **hours)
        schedule = await create_schedule(tx, world.editor, world.project_uid, draft)
    given = (
        (0, TargetKind.SCHEDULE, schedule.uid),
        (0, TargetKind.SCHEDULE, schedule.uid),
        (300, TargetKind.SCHEDULE, schedule.uid),
        (600, TargetKind.CHANNEL, backup),
        (3_600, TargetKind.CHANNEL, last),
    )
    steps = [StepDraft(after, [(kind, str(uid))]) for after, kind, uid in given]
    async with world.pool.transaction("policy") as tx:
        policy = await create_policy(
            tx, world.editor, world.project_uid, PolicyDraft("night", steps)
        )
    row = await world.monitor(name="Shop", interval_seconds=3_600)
    await story.climbs(row, policy.id)
    await story.is_now(row, False)
    await story.run_pass()
    assert [paged for _, paged in await world.rows(_PAGES)] == [[], [], [], ["backup"]]
    # The later step keeps its distance from the start of the escalation.
    ((escalate_at, started_at),) = await world.rows(
        "select escalate_at, coalesce(escalation_started_at, created_at) from incidents"
    )
    assert escalate_at - started_at == HOUR


async def test_who_comes_on_call_is_paged_for_an_outage_of_the_gap(world: World) -> None:
    story = Story(world)
    on_call = await story.channel("day")
    begins = Instant(world.now + 10 * MINUTE)
    async with world.pool.transaction("schedule") as tx:
        draft = ScheduleDraft("day", 3_600, world.now, [str(on_call)], starts_at=begins)
        schedule = await create_schedule(tx, world.editor, world.project_uid, draft)
    steps = [StepDraft(after, [(TargetKind.SCHEDULE, str(schedule.uid))]) for after in (0, 1_800)]
    async with world.pool.transaction("policy") as tx:
        policy = await create_policy(tx, world.editor, world.project_uid, PolicyDraft("day", steps))
    row = await world.monitor(name="Shop", interval_seconds=3_600)
    await story.climbs(row, policy.id)
    await story.is_now(row, False)
    for _ in range(9):
        await story.run_pass()
        world.now = Instant(world.now + MINUTE)
    # One entry for the gap, and a step that is due again.
    assert await world.rows(_PAGES) == [(1, [])]
    for _ in range(3):
        await story.run_pass()
        world.now = Instant(world.now + MINUTE)
    assert await world.rows(_PAGES) == [(1, []), (1, ["day"])]
    world.now = Instant(world.now + 20 * MINUTE)
    await story.run_pass()
    assert await world.rows(_PAGES) == [(1, []), (1, ["day"]), (2, ["day"])]
