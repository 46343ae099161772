"""While muted, a monitor, a service or an incident pages nobody; others page as usual. What lasts
is announced after the mute, and no figure changes."""

import random
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from leadline.storage.core.instant import HOUR, MINUTE, SECOND, Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.incidents.transactions.edit_incidents import IncidentDraft, create_incident
from leadline.storage.mutes.queries import mutes_of_incident, select_mutes_of
from leadline.storage.mutes.rules.mute import KEPT_US, MUTES_MOST
from leadline.storage.mutes.transactions import MuteDraft, create_mute, edit_mute, end_mute
from tests.support.run.effort import varied

from ..objectives.test_service_evaluator_burns_loop import on_sealed, watched
from ..support.worlds.paging_world import EVERY, PagingWorld, paging_world

pytestmark = pytest.mark.template("paging_template")


@pytest.fixture
async def story(dsn: str) -> AsyncIterator[PagingWorld]:
    async with paging_world(dsn) as story:
        yield story


async def mute(story: PagingWorld, for_us: int = HOUR, **given: Any) -> UUID:
    draft = MuteDraft(reason="known", ends_at=Instant(story.world.now + for_us), **given)
    async with story.world.pool.transaction("mute") as tx:
        world = story.world
        return (await create_mute(tx, world.editor, world.project_uid, draft)).uid


async def unmute(story: PagingWorld, uid: UUID) -> None:
    async with story.world.pool.transaction("unmute") as tx:
        await end_mute(tx, story.world.editor, uid)


@pytest.mark.parametrize("by", ["monitor", "tag", "name"])
async def test_a_muted_monitor_waits_and_another_pages(story: PagingWorld, by: str) -> None:
    muted = await story.world.monitor(name="muted", tags=["db", "prod"])
    other = await story.world.monitor(name="other", tags=["prod"])
    await story.channel("ops", muted, other)
    scope: dict[str, dict[str, Any]] = {
        "monitor": {"monitor": muted.uid},
        "tag": {"matchers": 'tag="db"'},
        "name": {"matchers": 'monitor=~"mut.*", tag!="web"'},
    }
    uid = await mute(story, **scope[by])
    await story.is_now(muted, False)
    await story.is_now(other, False)
    await story.steps(30 * SECOND)
    assert await story.held() == ["silenced", None]
    assert [title for title, _, _ in await story.incidents()] == ["other is down"]
    await unmute(story, uid)
    await story.step(1)
    assert [title for title, _, _ in await story.incidents()] == ["other is down", "muted is down"]
    began = await story.world.rows(
        "select bool_and(i.started_at = o.began_at) from incidents i"
        " join outages o on o.incident = i.id"
    )
    assert began == [(True,)]


async def test_a_mute_ends_by_itself_and_begins_at_its_start(story: PagingWorld) -> None:
    row = await story.world.monitor()
    await story.channel("ops", row)
    begins = Instant(story.world.now + MINUTE)
    await mute(story, 3 * MINUTE, monitor=row.uid, starts_at=begins)
    await story.is_now(row, False)
    await story.steps(10 * SECOND)
    assert await story.notifications() == [("ops", "incident.opened")]
    await story.is_now(row, True)
    await story.steps(70 * SECOND)
    await story.is_now(row, False)
    await story.steps(80 * SECOND)
    assert len(await story.notifications()) == 2
    await story.steps(40 * SECOND)
    assert (await story.notifications())[2:] == [("ops", "incident.opened")]


async def test_a_muted_outage_is_not_renotified_and_its_end_is_sent(story: PagingWorld) -> None:
    row = await story.world.monitor(interval_seconds=60, renotify_seconds=60)
    await story.channel("ops", row)
    await story.is_now(row, False)
    await story.steps(20 * SECOND)
    await mute(story, monitor=row.uid)
    for _ in range(5):
        await story.steps(30 * SECOND)
        await story.is_now(row, False)
    await story.is_now(row, True)
    await story.steps(20 * SECOND)
    assert await story.notifications() == [("ops", "incident.opened"), ("ops", "incident.resolved")]


async def test_a_muted_service_pages_when_the_mute_ends_and_its_members_do_not(
    story: PagingWorld,
) -> None:
    row = await story.world.monitor()
    ops = await story.channel("ops")
    await story.channel("own", row)
    service = await story.service(row, policy=await story.policy((0, ops)))
    uid = await mute(story, service=service.uid)
    for _ in range(8):
        await story.is_now(row, False)
        await story.steps(MINUTE)
    assert (await story.live(service))[2] in ("silenced", "held")
    assert await story.notifications() == []
    await unmute(story, uid)
    await story.step(1)
    assert await story.notifications() == [("ops", "incident.escalated")]


async def test_a_service_whose_failing_members_are_muted_pages_nobody(story: PagingWorld) -> None:
    row, other = await story.world.monitor(), await story.world.monitor()
    ops = await story.channel("ops")
    await story.service(row, other, policy=await story.policy((0, ops)), confirm_evaluations=1)
    await mute(story, monitor=row.uid)
    for _ in range(3):
        await story.is_now(row, False)
        await story.is_now(other, True)
        await story.steps(MINUTE)
    assert await story.notifications() == []
    await story.is_now(other, False)
    await story.steps(MINUTE)
    assert await story.notifications() == [("ops", "incident.escalated")]


async def test_a_muted_burn_alert_waits(story: PagingWorld) -> None:
    service = await watched(story, after_seconds=600, bad=False)
    uid = await mute(story, 366 * 24 * HOUR, service=service.uid)
    await on_sealed(story, service, 8, bad=True)
    assert await story.notifications() == []
    await unmute(story, uid)
    await story.step(EVERY)
    assert await story.notifications() == [("ops", "budget.burning")]


async def test_an_escalation_waits_for_the_end_of_the_mute(story: PagingWorld) -> None:
    row = await story.world.monitor()
    ops, boss = await story.channel("ops"), await story.channel("boss")
    await story.climbs(row, await story.policy((0, ops), (60, boss)))
    await story.is_now(row, False)
    await story.steps(30 * SECOND)
    uid = await mute(story, monitor=row.uid)
    await story.steps(MINUTE)
    assert len(await story.notifications()) == 1
    ((incident,),) = await story.world.rows("select uid from incidents")
    async with story.world.pool.transaction("see") as tx:
        assert [one.uid for one in await mutes_of_incident(tx, incident)] == [uid]
    await unmute(story, uid)
    await story.step(1)
    assert (await story.notifications())[1:] == [("boss", "incident.escalated")]


async def test_steps_after_a_mute_that_ends_early_keep_their_distance(story: PagingWorld) -> None:
    row = await story.world.monitor()
    ops, boss = await story.channel("ops"), await story.channel("boss")
    policy = await story.policy((0, ops), (60, boss), (90, ops))
    await story.climbs(row, policy)
    await story.is_now(row, False)
    await story.steps(30 * SECOND)
    both = [await mute(story, monitor=row.uid) for _ in range(2)]
    # Not due yet: the end of a mute pages nobody early.
    await unmute(story, both.pop())
    await story.step(1)
    assert len(await story.notifications()) == 1
    await story.steps(50 * SECOND)
    # Another mute is in force: the step waits on.
    both.append(await mute(story, monitor=row.uid))
    await unmute(story, both.pop(0))
    await story.step(1)
    assert len(await story.notifications()) == 1
    async with story.world.pool.transaction("shorten") as tx:
        until = Instant(story.world.now + 5 * SECOND)
        await edit_mute(tx, story.world.editor, both[0], None, until)
    await story.step(1)
    assert len(await story.notifications()) == 1
    await story.step(5 * SECOND - 1)
    assert (await story.notifications())[1:] == [("boss", "incident.escalated")]
    await story.step(30 * SECOND - 1)
    assert len(await story.notifications()) == 2
    await story.step(1)
    assert (await story.notifications())[2:] == [("ops", "incident.escalated")]


async def test_an_incident_that_is_opened_by_hand_pages_when_the_mute_ends(
    story: PagingWorld,
) -> None:
    row = await story.world.monitor()
    ops = await story.channel("ops")
    await story.climbs(row, await story.policy((0, ops)))
    await mute(story, 3 * MINUTE, monitor=row.uid)
    async with story.world.pool.transaction("by_hand") as tx:
        draft = IncidentDraft(title="It burns", body="", monitor=row.uid)
        await create_incident(tx, story.world.editor, story.world.project_uid, draft)
    await story.steps(2 * MINUTE)
    assert await story.notifications() == []
    await story.steps(MINUTE + SECOND)
    assert await story.notifications() == [("ops", "incident.escalated")]


@pytest.mark.parametrize("seed", varied([0, 1], range(6)))
async def test_a_random_history_pages_once_for_each_outage_that_outlasts_its_mutes(
    story: PagingWorld, seed: int
) -> None:
    """A model decides at each pass whether an outage may be announced."""
    chance = random.Random(seed)
    rows = [await story.world.monitor(name=f"m{n}", tags=[f"t{n % 2}"]) for n in range(4)]
    await story.channel("ops", *rows)
    down = [False] * 4
    untold: set[int] = set()
    expected: list[str] = []
    live: dict[UUID, tuple[set[int], Instant]] = {}
    for _ in range(60):
        n, step = chance.randrange(4), chance.random()
        now = story.world.now
        live = {uid: one for uid, one in live.items() if one[1] > now}
        if step < 0.25:
            scope: dict[str, Any] = {"monitor": rows[n].uid}
            covered = {n}
            if chance.random() < 0.5:
                scope, covered = {"matchers": f'tag="t{n % 2}"'}, {n % 2, n % 2 + 2}
            lasts = chance.choice([30, 90, 200]) * SECOND
            uid = await mute(story, lasts, **scope)
            live[uid] = (covered, Instant(now + lasts))
        elif step < 0.35 and live:
            uid = chance.choice(sorted(live))
            await unmute(story, uid)
            del live[uid]
        else:
            down[n] = not down[n]
            await story.is_now(rows[n], not down[n])
            (untold.add if down[n] else untold.discard)(n)
        for _ in range(3):
            await story.step(10 * SECOND)
            muted = {
                one for found, until in live.values() if until > story.world.now for one in found
            }
            told = [title.split()[0] for title, _, _ in await story.incidents()][len(expected) :]
            assert not {int(name[1:]) for name in told} & muted, "a muted monitor was announced"
            expected += told
            untold -= {int(name[1:]) for name in told}
    live.clear()
    async with story.world.pool.transaction("unmute") as tx:
        await tx.execute("update mutes set ends_at = starts_at")
    await story.steps(30 * SECOND)
    told = [title.split()[0] for title, _, _ in await story.incidents()][len(expected) :]
    assert {int(name[1:]) for name in told} == untold


async def test_mutes_are_bounded_and_old_ones_are_deleted(story: PagingWorld) -> None:
    row = await story.world.monitor()
    for _ in range(MUTES_MOST):
        await mute(story, MINUTE, monitor=row.uid)
    with pytest.raises(Refused) as refused:
        await mute(story, monitor=row.uid)
    assert refused.value.code == "mute_quota"
    story.world.now = Instant(story.world.now + MINUTE + KEPT_US + 1)
    uid = await mute(story, monitor=row.uid)
    async with story.world.pool.transaction("see") as tx:
        listed = await select_mutes_of(tx, story.world.org, story.world.project)
    assert [one.uid for one in listed] == [uid]


async def test_an_edit_extends_a_mute_and_an_ended_one_stays_ended(story: PagingWorld) -> None:
    row = await story.world.monitor()
    uid = await mute(story, MINUTE, monitor=row.uid)
    world = story.world
    until = Instant(world.now + HOUR)
    async with world.pool.transaction("edit") as tx:
        changed = await edit_mute(tx, world.editor, uid, " still  known ", until)
    assert (changed.reason, changed.ends_at) == ("still known", until)
    await unmute(story, uid)
    await unmute(story, uid)
    with pytest.raises(Refused) as refused:
        async with world.pool.transaction("edit") as tx:
            await edit_mute(tx, world.editor, uid, None, until)
    assert refused.value.code == "mute_ended"
    actions = await world.rows("select action from audit_entries where action like 'mute.%%'")
    assert actions == [("mute.create",), ("mute.update",), ("mute.end",)]
