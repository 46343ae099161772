"""During a global silence no new problem is announced. A problem that lasts is announced after the
silence, and the recipients of an earlier announcement are notified of its end at any time."""

import random
from collections.abc import AsyncIterator
from uuid import UUID

import pytest
import trio

from leadline.storage.accounts.rules.access import CredentialKind, Principal
from leadline.storage.alerting.transactions.process_outages import OutageCounts, process_outages
from leadline.storage.core.instant import HOUR, MINUTE, SECOND, Instant
from leadline.storage.incidents.transactions.edit_incidents import IncidentDraft, create_incident
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.notifications.rules.global_silence import LOOK_US, GlobalSilence
from leadline.storage.notifications.transactions.put_global_silence import put_global_silence
from leadline.storage.oncall.rules.escalation import TargetKind
from leadline.storage.oncall.transactions.edit_escalation_policies import (
    PolicyDraft,
    StepDraft,
    replace_policy,
)
from tests.support.run.effort import varied
from tests.support.worlds.world import World

from ..alerting.test_alert_processor_loop import Story
from ..alerting.test_alert_processor_random_loop import Model, Play, expect_everything_ended
from ..objectives.test_service_evaluator_burns_loop import on_sealed, watched
from ..support.worlds.paging_world import EVERY, PagingWorld, paging_world

pytestmark = pytest.mark.template("paging_template")

ADMIN = Principal(CredentialKind.SESSION, is_global_admin=True, label="admin")
ONSETS = {
    "incident.opened",
    "incident.reminder",
    "incident.escalated",
    "monitor.down",
    "monitor.reminder",
    "budget.burning",
    "budget.reminder",
}


@pytest.fixture
async def story(dsn: str) -> AsyncIterator[PagingWorld]:
    async with paging_world(dsn) as story:
        yield story


async def silence(story: Story, for_us: int | None = None) -> Instant | None:
    """Starts a silence without an end, or one of `for_us` microseconds; returns its end."""
    until = None if for_us is None else Instant(story.world.now + for_us)
    async with story.world.pool.transaction("silence") as tx:
        await put_global_silence(tx, ADMIN, GlobalSilence(enabled=True, until=until))
    return until


async def lift(story: Story) -> None:
    async with story.world.pool.transaction("lift") as tx:
        await put_global_silence(tx, ADMIN, GlobalSilence())


async def test_an_outage_that_lasts_is_announced_after_the_silence(
    story: PagingWorld,
) -> None:
    lasting, brief = await story.world.monitor(name="lasting"), await story.world.monitor()
    await story.channel("ops", lasting, brief)
    await silence(story)
    await story.is_now(lasting, False)
    await story.is_now(brief, False)
    await story.steps(20 * SECOND)
    assert await story.held() == ["silenced", "silenced"]
    await story.is_now(brief, True)
    await story.steps(20 * SECOND)
    assert await story.notifications() == []
    assert await story.incidents() == []
    await lift(story)
    await story.steps(20 * SECOND)
    assert await story.notifications() == [("ops", "incident.opened")]
    assert await story.incidents() == [("lasting is down", "investigating", 1)]
    began = await story.world.rows(
        "select i.started_at = o.began_at from incidents i join outages o on o.incident = i.id"
    )
    assert began == [(True,)], "the incident does not begin with its outage"


async def test_a_silence_ends_at_its_end(story: PagingWorld) -> None:
    row = await story.world.monitor()
    await story.channel("ops", row)
    await silence(story, MINUTE)
    await story.is_now(row, False)
    await story.steps(50 * SECOND)
    assert await story.notifications() == []
    await story.steps(20 * SECOND)
    assert await story.notifications() == [("ops", "incident.opened")]


async def test_a_silenced_outage_is_not_renotified_and_its_end_is_sent(story: PagingWorld) -> None:
    row = await story.world.monitor(interval_seconds=60, renotify_seconds=60)
    await story.channel("ops", row)
    await story.is_now(row, False)
    await story.steps(20 * SECOND)
    await silence(story)
    for _ in range(5):
        await story.steps(30 * SECOND)
        await story.is_now(row, False)
    assert await story.notifications() == [("ops", "incident.opened")]
    await story.is_now(row, True)
    await story.steps(20 * SECOND)
    assert await story.notifications() == [("ops", "incident.opened"), ("ops", "incident.resolved")]


async def test_a_cause_counts_beyond_the_silence(story: PagingWorld) -> None:
    """The upstream recovers during the silence, so its earlier state must not decide the
    announcement."""
    database = await story.world.monitor(name="database")
    row = await story.world.monitor(name="shop", depends_on=[database.uid])
    await story.channel("ops", row)
    await story.is_now(database, False)
    await story.is_now(row, False)
    await story.steps(10 * SECOND)
    assert await story.held() == [None, "dependency"]
    await silence(story)
    await story.is_now(database, True)
    await story.step(SECOND)
    assert await story.held() == ["rechecking"], "the outage is not rechecked"
    await lift(story)
    await story.is_now(row, True)
    await story.steps(20 * SECOND)
    assert await story.notifications() == []


async def test_no_recheck_is_repeated_during_a_silence(story: PagingWorld) -> None:
    database = await story.world.monitor(name="database")
    row = await story.world.monitor(name="shop", depends_on=[database.uid])
    await story.is_now(database, True)
    await silence(story)
    await story.is_now(row, False)
    await story.steps(30 * SECOND)
    asked = story.asked
    for _ in range(6):
        await story.is_now(row, False)
        await story.steps(20 * SECOND)
    assert story.asked == asked


async def test_a_service_opens_no_episode_and_pages_when_it_ends(story: PagingWorld) -> None:
    row = await story.world.monitor()
    ops = await story.channel("ops")
    service = await story.service(row, policy=await story.policy((0, ops)))
    await silence(story)
    for _ in range(3):
        await story.is_now(row, False)
        await story.steps(MINUTE)
    assert (await story.live(service))[2] == "silenced"
    assert await story.notifications() == []
    assert await story.incidents() == []
    await lift(story)
    await story.is_now(row, False)
    await story.steps(MINUTE)
    assert await story.notifications() == [("ops", "incident.escalated")]
    assert [title for title, _, _ in await story.incidents()] == ["Shop is down"]


async def test_a_silenced_service_is_not_renotified_and_its_end_is_sent(story: PagingWorld) -> None:
    row = await story.world.monitor()
    ops = await story.channel("ops")
    policy = await story.policy((0, ops))
    await story.service(row, policy=policy, renotify_seconds=60, confirm_evaluations=1)
    await story.is_now(row, False)
    await story.steps(30 * SECOND)
    assert await story.notifications() == [("ops", "incident.escalated")]
    await silence(story)
    await story.is_now(row, False)
    await story.steps(3 * MINUTE)
    assert await story.notifications() == [("ops", "incident.escalated")]
    await story.is_now(row, True)
    await story.steps(MINUTE)
    assert (await story.notifications())[1:] == [("ops", "incident.resolved")]


async def test_an_undelivered_page_of_a_service_does_not_break_the_silence(
    story: PagingWorld,
) -> None:
    """The page does not arrive within five minutes, so the member pages after the silence."""
    row = await story.world.monitor()
    ops = await story.channel("ops")
    await story.channel("own", row)
    await story.service(row, policy=await story.policy((0, ops)), confirm_evaluations=1)
    await story.is_now(row, False)
    await story.steps(30 * SECOND)
    assert await story.notifications() == [("ops", "incident.escalated")]
    await silence(story)
    for _ in range(7):
        await story.is_now(row, False)
        await story.steps(MINUTE)
    assert await story.notifications() == [("ops", "incident.escalated")]
    await lift(story)
    await story.is_now(row, False)
    await story.steps(MINUTE)
    assert (await story.notifications())[1:] == [("own", "incident.opened")]


async def test_a_burn_alert_waits_for_the_end_of_the_silence_and_its_resolution_does_not(
    story: PagingWorld,
) -> None:
    service = await watched(story, after_seconds=600, bad=False)
    await silence(story)
    await on_sealed(story, service, 8, bad=True)
    assert await story.notifications() == []
    await lift(story)
    await story.step(EVERY)
    assert await story.notifications() == [("ops", "budget.burning")]
    await silence(story)
    await on_sealed(story, service, 6, bad=False)
    assert (await story.notifications())[1:] == [("ops", "budget.recovered")]


@pytest.mark.parametrize("seed", varied([0], range(5)))
async def test_an_escalation_is_delayed_and_never_shortened_by_silences(
    story: PagingWorld, seed: int
) -> None:
    """The time between two steps is never less than the policy requires, so that the first
    recipient can answer. No step is later than the silences explain."""
    chance = random.Random(seed)
    row = await story.world.monitor(interval_seconds=60)
    after = [0, 120, 300, 420]
    channels = [await story.channel(f"step{n}") for n in range(4)]
    policy = await story.policy(*zip(after, channels, strict=True))
    await story.climbs(row, policy)
    await story.is_now(row, False)
    await story.run_pass()
    began = silent_until = story.world.now
    silent_us = 0
    came: list[int] = [0]
    while len(came) < len(after):
        now = story.world.now
        assert now - began < HOUR, "the escalation did not reach its last step"
        if now >= silent_until and chance.random() < 0.02:
            lasts = chance.randrange(1, 200) * SECOND
            silent_until = Instant(now + lasts)
            await silence(story, lasts)
        silent_us += SECOND if now < silent_until else 0
        if now % (30 * SECOND) < SECOND:
            await story.is_now(row, False)
        await story.step(SECOND)
        sent = await story.notifications()
        if len(sent) > len(came):
            assert story.world.now >= silent_until, "paged while it is silent"
            assert len(sent) == len(came) + 1, "two steps were taken together"
            n = len(came)
            came.append(story.world.now - began)
            slack = 2 * SECOND
            assert came[n] - came[n - 1] >= (after[n] - after[n - 1]) * SECOND - slack
            assert came[n] <= after[n] * SECOND + silent_us + slack


async def test_an_escalation_continues_soon_after_the_silence(story: PagingWorld) -> None:
    row = await story.world.monitor()
    ops, boss = await story.channel("ops"), await story.channel("boss")
    await story.climbs(row, await story.policy((0, ops), (60, boss)))
    await story.is_now(row, False)
    await story.steps(30 * SECOND)
    await silence(story)
    await story.steps(MINUTE)
    assert len(await story.notifications()) == 1
    await lift(story)
    await story.steps(LOOK_US)
    assert (await story.notifications())[1:] == [("boss", "incident.escalated")]


async def rename(story: PagingWorld, policy: int, *steps: tuple[int, UUID]) -> None:
    """Replaces a policy by one with the same steps and another name."""
    query = "select uid from escalation_policies where id = %(id)s"
    ((uid,),) = await story.world.rows(query, id=policy)
    drafts = [StepDraft(after, [(TargetKind.CHANNEL, str(channel))]) for after, channel in steps]
    async with story.world.pool.transaction("rename") as tx:
        draft = PolicyDraft(f"renamed at {story.world.now}", drafts)
        await replace_policy(tx, story.world.editor, uid, draft)


async def test_a_policy_that_is_edited_during_a_silence_delays_no_step(story: PagingWorld) -> None:
    """The silence ends before the second step is due, so it explains no delay."""
    row = await story.world.monitor()
    ops, boss = await story.channel("ops"), await story.channel("boss")
    steps = [(0, ops), (600, boss)]
    policy = await story.policy(*steps)
    await story.climbs(row, policy)
    await story.is_now(row, False)
    await story.run_pass()
    assert len(await story.notifications()) == 1
    await silence(story, 5 * MINUTE)
    for _ in range(3):
        await story.steps(30 * SECOND)
        await rename(story, policy, *steps)
    await story.steps(500 * SECOND)
    assert len(await story.notifications()) == 1
    await story.steps(15 * SECOND)
    assert (await story.notifications())[1:] == [("boss", "incident.escalated")]


async def test_an_incident_that_is_opened_by_hand_pages_when_it_ends(story: PagingWorld) -> None:
    row = await story.world.monitor()
    ops = await story.channel("ops")
    await story.climbs(row, await story.policy((0, ops)))
    await silence(story, 3 * MINUTE)
    async with story.world.pool.transaction("by_hand") as tx:
        draft = IncidentDraft(title="It burns", body="", monitor=row.uid)
        await create_incident(tx, story.world.editor, story.world.project_uid, draft)
    await story.steps(2 * MINUTE)
    assert await story.notifications() == []
    await story.steps(MINUTE + SECOND)
    assert await story.notifications() == [("ops", "incident.escalated")]


class Silent(Model):
    """As that of outages, where everything may be silenced."""

    silent_until: Instant | None = None

    @property
    def is_silent(self) -> bool:
        return self.silent_until is not None and self.now < self.silent_until

    def may_notify(self, n: int) -> bool:
        return not self.is_silent and super().may_notify(n)


class SilentPlay(Play):
    def __init__(self, model: Silent, seed: int) -> None:
        super().__init__(model, seed)
        self.silent = model

    async def step(self) -> None:
        if self.chance.random() < 0.1:
            await self._silence_or_lift()
        await super().step()

    async def _silence_or_lift(self) -> None:
        if self.silent.is_silent:
            await lift(self.story)
            self.silent.silent_until = None
        else:
            lasts = self.chance.choice([5 * SECOND, MINUTE, 10 * MINUTE])
            self.silent.silent_until = await silence(self.story, lasts)
        self.silent.evaluate()

    async def run_pass(self) -> None:
        before = len([event for _, event in await self.story.notifications() if event in ONSETS])
        await super().run_pass()
        after = len([event for _, event in await self.story.notifications() if event in ONSETS])
        assert after == before or not self.silent.is_silent, (
            "a new problem was announced during a silence"
        )


@pytest.mark.parametrize("seed", varied([0], range(6)))
async def test_a_random_history(world: World, seed: int) -> None:
    story, chance = Story(world), random.Random(seed)
    rows: list[MonitorRow] = []
    edges: dict[int, set[int]] = {}
    for n in range(4):
        edges[n] = {other for other in range(n) if chance.random() < 0.4}
        wanted = [rows[other].uid for other in sorted(edges[n])]
        rows.append(
            await world.monitor(
                depends_on=wanted,
                interval_seconds=30,
                renotify_seconds=60,
                auto_incident=chance.random() < 0.7,
            )
        )
    await story.channel("ops", *rows)
    model = Silent(story, rows, edges)
    play = SilentPlay(model, seed)
    for _ in range(120):
        await play.step()
    if model.is_silent:
        await play._silence_or_lift()
    for n in sorted(model.paused):
        await play.pause(n)
    for n in sorted(model.maintained):
        await play.maintain(n)
    for n in range(4):
        await play.result(n, up=True)
    await story.later(10 * SECOND)
    await expect_everything_ended(world, reminded=True)


async def test_a_silence_applies_from_its_commit(story: PagingWorld) -> None:
    row = await story.world.monitor()
    await story.channel("ops", row)
    await story.is_now(row, False)
    found: list[OutageCounts] = []

    async def drive() -> None:
        async with story.world.pool.transaction("drive") as other:
            found.append(await process_outages(other, [row.key]))

    async with story.world.pool.transaction("silence") as tx:
        until = Instant(story.world.now + HOUR)
        await put_global_silence(tx, ADMIN, GlobalSilence(enabled=True, until=until))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(drive)
    assert [done.announced for done in found] == [1], "an uncommitted silence suppressed an outage"
    await story.is_now(row, True)
    await story.steps(10 * SECOND)
    await story.is_now(row, False)
    await story.steps(20 * SECOND)
    assert [event for _, event in await story.notifications()] == [
        "incident.opened",
        "incident.resolved",
    ]
