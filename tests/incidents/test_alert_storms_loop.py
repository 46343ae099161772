"""A storm of external alerts of one service becomes one page with a count, and loses no alert."""

import json
import random
from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import MINUTE, SECOND, Instant, to_datetime
from leadline.storage.incidents.rules.alert_storm import GATHER_US, STORM_US, count_line, leads
from leadline.storage.incidents.rules.answer_link import AnswerAction
from leadline.storage.incidents.rules.incident import (
    IncidentImpact,
    IncidentSource,
    IncidentStatus,
)
from leadline.storage.incidents.transactions.write_incident import Opening, open_incident
from leadline.storage.mutes.transactions import MuteDraft, create_mute
from leadline.storage.oncall.rules.escalation import TargetKind
from leadline.storage.oncall.tables.escalation_policies import (
    lock_policy,
    look_at_incidents_again,
)
from tests.incidents.test_answers_loop import Desk
from tests.support.run import effort
from tests.support.worlds.world import World

NOW = Instant(1_767_225_600_000_000)


@given(
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2 * STORM_US),
    st.booleans(),
    st.booleans(),
)
def test_an_alert_leads_until_it_is_taken_up_or_the_storm_is_over(
    resolved: bool, taken: bool, covered: bool, age: int, due: bool, told: bool
) -> None:
    def found(paged_at: Instant | None) -> bool:
        return leads(
            is_resolved=resolved,
            is_taken_up=taken,
            is_covered=covered,
            paged_at=paged_at,
            is_awaited=due,
            is_told=told,
            now=NOW,
        )

    free = not (resolved or taken or covered)
    assert found(Instant(NOW - age)) is (free and age < STORM_US and (told or due))
    assert found(None) is (free and due)


def test_the_line_counts() -> None:
    assert count_line(0) == ""
    assert [count_line(n).split()[1] for n in (1, 49)] == ["1", "49"]


class Storm(Desk):
    """Alerts of services that share a policy with two steps, at 0 and 10 minutes."""

    async def starts(self) -> None:
        self.key = await self.policy(
            (0, await self.channel("one")), (600, await self.channel("two"))
        )
        self.services = [await self.service(name) for name in ("shop", "mill")]
        self.numbers = 0

    async def service(self, slug: str) -> int:
        async with self.world.pool.transaction("service") as tx:
            key: int = await tx.value(
                "insert into services (org, uid, project, slug, name, escalation_policy,"
                " created_at, updated_at) values (%(org)s, gen_random_uuid(), %(project)s,"
                " %(slug)s, %(slug)s, %(policy)s, now(), now()) returning id",
                org=self.world.org,
                project=self.world.project,
                slug=slug,
                policy=self.key,
            )
        return key

    async def alerts(
        self,
        many: int,
        service: int = 0,
        *,
        after_us: int = 0,
        impact: IncidentImpact = IncidentImpact.MAJOR,
        **labels: str,
    ) -> list[UUID]:
        found = []
        async with self.world.pool.transaction("alerts") as tx:
            for _ in range(many):
                self.numbers += 1
                row = await open_incident(
                    tx,
                    Opening(
                        org=self.world.org,
                        project=self.world.project,
                        monitor=None,
                        service=self.services[service],
                        title=f"a{self.numbers}",
                        status=IncidentStatus.INVESTIGATING,
                        impact=impact,
                        labels=labels,
                        source=IncidentSource.API,
                        body="",
                        started_at=tx.now,
                        author=None,
                        external_key=f"k{self.numbers}",
                        escalation_policy=self.key,
                        page_after_us=after_us,
                    ),
                )
                found.append(row.uid)
        return found

    async def pages(self) -> list[tuple[str, str]]:
        """Returns (title, last line) of the pages, in order."""
        rows = await self.world.rows(
            "select payload::text from outbox where event = 'incident.escalated' order by id"
        )
        pages = [json.loads(text) for (text,) in rows]
        return [(page["title"], page["lines"][-1]) for page in pages]

    async def open_and_unpaged(self) -> list[tuple[str, str | None]]:
        """Returns (title, title of the leader) of open alerts that neither page nor wait to."""
        rows = await self.world.rows(
            "select i.title, l.title from incidents i left join incidents l on l.org = i.org"
            " and l.id = i.merged_into and l.status <> 'resolved' where i.status <> 'resolved'"
            " and i.last_escalated_at is null and i.escalate_at is null order by i.id"
        )
        return [(title, leader) for title, leader in rows]

    async def open_and_untold(self) -> list[str]:
        """Returns the titles of open alerts of which no page tells, and none is to come.

        A page tells of its own alert and of the alerts that its incident covers, if they are
        older than the page.
        """
        rows = await self.world.rows(
            "select i.title from incidents i left join incidents l on l.org = i.org"
            " and l.id = i.merged_into and l.status <> 'resolved' where i.status <> 'resolved'"
            " and i.acknowledged_at is null and i.last_escalated_at is null"
            " and i.escalate_at is null and not coalesce(l.last_escalated_at >= i.created_at"
            " or (l.escalate_at is not null and l.acknowledged_at is null"
            " and l.snoozed_until is null and not l.is_postponed), false) order by i.id"
        )
        return [title for (title,) in rows]

    async def mutes(self, minutes: int, team: str, *, after_us: int = 0) -> None:
        async with self.world.pool.transaction("mute") as tx:
            starts_at = Instant(tx.now + after_us)
            draft = MuteDraft(
                matchers=f'team="{team}"',
                reason="known",
                starts_at=starts_at,
                ends_at=Instant(starts_at + minutes * MINUTE),
            )
            await create_mute(tx, self.world.editor, self.world.project_uid, draft)


@pytest.fixture
async def storm(world: World) -> Storm:
    story = Storm(world)
    await story.starts()
    return story


async def test_a_storm_is_one_page_with_a_count(storm: Storm) -> None:
    await storm.alerts(50)
    await storm.alerts(1, service=1)
    await storm.run_pass()
    assert await storm.pages() == [
        ("a1", "And 49 more alerts of the service."),
        ("a51", "Escalation step 1."),
    ]
    # Later alerts are covered too, and the next step has the new count.
    await storm.later(MINUTE)
    await storm.alerts(5)
    await storm.later(9 * MINUTE)
    assert [title for title, _ in await storm.pages()] == ["a1", "a51", "a1", "a51"]
    assert (await storm.pages())[2][1] == "And 54 more alerts of the service."


async def test_the_page_waits_for_the_other_alerts_of_its_request(storm: Storm) -> None:
    for _ in range(3):
        await storm.alerts(1, after_us=GATHER_US)
        await storm.later(SECOND)
    assert await storm.pages() == []
    await storm.later(GATHER_US)
    assert await storm.pages() == [("a1", "And 2 more alerts of the service.")]
    await storm.later(GATHER_US)
    assert len(await storm.pages()) == 1


async def test_after_the_storm_and_after_an_answer_a_new_alert_pages(storm: Storm) -> None:
    (first,) = await storm.alerts(1)
    await storm.run_pass()
    await storm.answers(first, AnswerAction.ACKNOWLEDGE)
    await storm.alerts(1)
    await storm.run_pass()
    assert [title for title, _ in await storm.pages()] == ["a1", "a2"]
    await storm.later(STORM_US + SECOND)
    await storm.alerts(1)
    await storm.run_pass()
    assert [title for title, _ in await storm.pages()] == ["a1", "a2", "a3"]


async def test_the_covered_alerts_page_if_their_leader_is_resolved(storm: Storm) -> None:
    first, *_ = await storm.alerts(3)
    await storm.run_pass()
    assert await storm.open_and_unpaged() == [("a2", "a1"), ("a3", "a1")]
    await storm.answers(first, AnswerAction.RESOLVE)
    await storm.later(GATHER_US + SECOND)
    assert (await storm.pages())[1:] == [("a2", "And 1 more alert of the service.")]
    assert await storm.open_and_unpaged() == [("a3", "a2")]


@pytest.mark.parametrize("how", ["acknowledge", "snooze", "reassign"])
async def test_an_alert_after_the_last_page_is_not_lost_if_its_leader_is_answered(
    storm: Storm, how: str
) -> None:
    first, _ = await storm.alerts(2)
    await storm.run_pass()
    await storm.later(3 * MINUTE)
    await storm.alerts(2)
    await storm.later(SECOND)
    assert len(await storm.pages()) == 1
    match how:
        case "acknowledge":
            await storm.answers(first, AnswerAction.ACKNOWLEDGE)
        case "snooze":
            await storm.snoozes(first, 60)
        case _:
            user, ada = await storm.person("Ada")
            await storm.method(user, "email", "work")
            await storm.reassigns(first, TargetKind.PERSON, ada)
    await storm.later(GATHER_US + SECOND)
    # The page of the first told of the second.
    assert [page for page in await storm.pages() if page[0] != "a1"] == [
        ("a3", "And 1 more alert of the service.")
    ]


async def test_a_leader_without_a_further_step_covers_no_later_alert(storm: Storm) -> None:
    async with storm.world.pool.transaction("shorten") as tx:
        await tx.execute("delete from escalation_targets where step > 1")
        await tx.execute("update escalation_policies set after_seconds = '{0}'")
    await storm.alerts(3)
    await storm.run_pass()
    await storm.later(MINUTE)
    assert await storm.open_and_unpaged() == [("a2", "a1"), ("a3", "a1")]
    await storm.alerts(1)
    await storm.later(SECOND)
    assert [title for title, _ in await storm.pages()] == ["a1", "a4"]


@pytest.mark.parametrize("minutes", [2, 4])
async def test_a_mute_of_the_leader_loses_no_alert(storm: Storm, minutes: int) -> None:
    await storm.alerts(1, team="x")
    await storm.run_pass()
    for at in (2, 4):
        await storm.later(MINUTE)
        if at == minutes:
            await storm.mutes(60, "x")
        await storm.later(MINUTE)
        if at == 2:
            await storm.alerts(1, team="y")
            await storm.later(SECOND)
    # At once, and at the latest when the next step would have told of it.
    await storm.later(7 * MINUTE)
    assert [title for title, _ in await storm.pages()] == ["a1", "a2"]


async def test_a_mute_of_the_leader_releases_the_untold_alerts_at_once(storm: Storm) -> None:
    await storm.alerts(1, team="x")
    await storm.run_pass()
    await storm.later(MINUTE)
    await storm.alerts(2, team="y")
    await storm.later(SECOND)
    assert [title for title, _ in await storm.pages()] == ["a1"]
    await storm.mutes(60, "x")
    await storm.later(SECOND)
    await storm.later(GATHER_US + SECOND)
    assert (await storm.pages())[1:] == [("a2", "And 1 more alert of the service.")]


@pytest.mark.parametrize("is_earlier", [True, False])
async def test_a_mute_that_starts_later_releases_the_untold_alerts_at_its_start(
    storm: Storm, *, is_earlier: bool
) -> None:
    """The mute is created before the covered alerts or after them."""
    await storm.alerts(1, team="x")
    await storm.run_pass()
    if is_earlier:
        await storm.mutes(60, "x", after_us=3 * MINUTE)
    await storm.later(MINUTE)
    await storm.alerts(2, team="y")
    if not is_earlier:
        await storm.mutes(60, "x", after_us=2 * MINUTE)
    await storm.later(2 * MINUTE - SECOND)
    assert [title for title, _ in await storm.pages()] == ["a1"]
    assert len(await storm.open_and_unpaged()) == 2
    # The next step of the leader would be seven minutes later.
    await storm.later(GATHER_US + 2 * SECOND)
    assert (await storm.pages())[1:] == [("a2", "And 1 more alert of the service.")]
    assert await storm.world.rows("select awaits_start from mutes") == [(False,)]


async def test_a_mute_of_others_that_starts_later_changes_nothing(storm: Storm) -> None:
    await storm.alerts(3, team="x")
    await storm.run_pass()
    before = await storm.world.rows(
        "select id, escalate_at, escalation_step from incidents order by id"
    )
    await storm.mutes(60, "z", after_us=2 * MINUTE)
    await storm.later(4 * MINUTE)
    assert (
        await storm.world.rows("select id, escalate_at, escalation_step from incidents order by id")
        == before
    )
    assert len(await storm.pages()) == 1


async def test_a_released_alert_begins_at_its_first_step(storm: Storm) -> None:
    first, _ = await storm.alerts(2)
    await storm.run_pass()
    await storm.later(60 * MINUTE)
    await storm.answers(first, AnswerAction.RESOLVE)
    await storm.later(GATHER_US + SECOND)
    rows = await storm.world.rows(
        "select p.step from incident_pages p join incidents i on i.org = p.org"
        " and i.id = p.incident where i.title = 'a2' order by p.id"
    )
    assert rows == [(1,)]


async def test_a_leader_that_pages_no_person_covers_no_page(storm: Storm) -> None:
    async with storm.world.pool.transaction("tickets") as tx:
        await tx.execute("update notification_channels set takes_tickets = name = 'two'")
    await storm.alerts(2, impact=IncidentImpact.MINOR)
    await storm.alerts(2)
    await storm.run_pass()
    # Each ticket is filed.
    assert await storm.paged() == ["two", "two", "one"]
    assert [title for title, _ in await storm.pages()] == ["a1", "a2", "a3"]


async def test_a_storm_of_minor_alerts_is_one_page_too(storm: Storm) -> None:
    await storm.alerts(20, impact=IncidentImpact.MINOR)
    await storm.alerts(1)
    await storm.run_pass()
    assert await storm.pages() == [
        ("a1", "And 19 more alerts of the service."),
        ("a21", "Escalation step 1."),
    ]


async def test_a_muted_leader_covers_no_other_alert(storm: Storm) -> None:
    await storm.mutes(60, "x")
    await storm.alerts(1, team="x")
    await storm.run_pass()
    await storm.alerts(2, team="y")
    await storm.later(SECOND)
    assert await storm.pages() == [("a2", "And 1 more alert of the service.")]


async def test_the_resolution_of_a_storm_pages_nobody(storm: Storm) -> None:
    found = await storm.alerts(4)
    await storm.run_pass()
    for one in found:
        await storm.answers(one, AnswerAction.RESOLVE)
        await storm.run_pass()
    await storm.later(2 * GATHER_US)
    assert len(await storm.pages()) == 1


async def test_an_edit_of_the_policy_pages_no_covered_alert(storm: Storm) -> None:
    await storm.alerts(3)
    await storm.run_pass()
    await storm.later(STORM_US + SECOND)
    async with storm.world.pool.transaction("edit") as tx:
        ((uid,),) = await tx.rows("select uid from escalation_policies")
        row = await lock_policy(tx, uid)
        assert row is not None
        await look_at_incidents_again(tx, row)
    await storm.later(SECOND)
    assert [title for title, _ in await storm.pages()] == ["a1"]


async def test_a_covered_alert_that_is_reassigned_pages(storm: Storm) -> None:
    _, second = await storm.alerts(2)
    await storm.run_pass()
    ((uid,),) = await storm.world.rows("select uid from escalation_policies")
    await storm.reassigns(second, TargetKind.POLICY, uid)
    assert [title for title, _ in await storm.pages()] == ["a1", "a2"]
    assert await storm.open_and_unpaged() == []


async def test_the_page_at_the_opening_tells_of_all_alerts_of_the_night(storm: Storm) -> None:
    opens = to_datetime(storm.world.now) + timedelta(minutes=5)
    hours = f"mon,tue,wed,thu,fri,sat,sun {opens:%H:%M}-{opens + timedelta(hours=2):%H:%M}"
    async with storm.world.pool.transaction("hours") as tx:
        await tx.execute("update services set support_hours = array[%(h)s]::text[]", h=hours)
    await storm.alerts(3, impact=IncidentImpact.MINOR)
    for _ in range(3):
        await storm.later(MINUTE)
    await storm.alerts(2, impact=IncidentImpact.MINOR)
    assert await storm.pages() == []
    for _ in range(16):
        await storm.later(15 * SECOND)
    assert await storm.pages() == [("a1", "And 4 more alerts of the service.")]


@pytest.mark.parametrize("seed", effort.varied(range(2), range(20)))
async def test_no_alert_is_lost_in_a_random_history(storm: Storm, seed: int) -> None:
    chance = random.Random(seed)
    open_: list[UUID] = []
    acts = ["alerts", "alerts", "alerts", "resolve", "acknowledge", "snooze", "mute", "wait"]
    for _ in range(20):
        match chance.choice(acts):
            case "alerts":
                team = chance.choice("xy")
                open_ += await storm.alerts(chance.randint(1, 4), chance.randint(0, 1), team=team)
            case "mute":
                after_us = chance.choice([0, 0, chance.randint(1, 400) * SECOND])
                await storm.mutes(chance.randint(1, 20), "x", after_us=after_us)
            case "snooze" if open_:
                await storm.snoozes(chance.choice(open_), chance.randint(1, 20))
            case "resolve" if open_:
                one = open_.pop(chance.randrange(len(open_)))
                await storm.answers(one, AnswerAction.RESOLVE)
            case "acknowledge" if open_:
                await storm.answers(chance.choice(open_), AnswerAction.ACKNOWLEDGE)
            case _:
                storm.world.now = Instant(storm.world.now + chance.randint(1, 400) * SECOND)
        storm.world.now = Instant(storm.world.now + SECOND)
        await storm.run_pass()
        assert await storm.open_and_untold() == []
