"""Tickets go to the ticket destinations of the project and page no person."""

from typing import Any
from uuid import UUID

import pytest

from leadline.storage.core.instant import MINUTE, SECOND
from leadline.storage.incidents.queries.incidents import select_incident
from leadline.storage.incidents.rules.answer_link import AnswerAction
from leadline.storage.incidents.rules.incident import IncidentImpact
from leadline.storage.incidents.transactions.edit_incidents import (
    IncidentDraft,
    create_incident,
)
from leadline.storage.incidents.transactions.page_service_route import (
    PagingRoute,
    page_route,
    stream_of,
)
from leadline.storage.notifications.rules.notification import Notification
from leadline.storage.notifications.transactions.edit_channels import edit_channel
from leadline.storage.oncall.rules.escalation import TargetKind
from tests.incidents.test_answers_loop import Desk
from tests.support.worlds.world import World


class Tickets(Desk):
    """A project with an on-call person, whom each step pages, and a ticket destination."""

    async def opens(self, impact: IncidentImpact) -> UUID:
        key = await self.policy_of(
            (0, TargetKind.PERSON, self.ada), (300, TargetKind.PERSON, self.ada)
        )
        ((policy,),) = await self.world.rows(
            "select uid from escalation_policies where id = %(id)s", id=key
        )
        async with self.world.pool.transaction("open") as tx:
            draft = IncidentDraft(title="Slow", impact=impact, policy=policy)
            row = await create_incident(tx, self.world.editor, self.world.project_uid, draft)
        await self.run_pass()
        return row.uid

    async def hires(self) -> None:
        user, self.ada = await self.person("Ada")
        await self.method(user, "email", "work")

    async def takes_tickets(
        self, channel: UUID, *, takes: bool = True, enabled: bool = True
    ) -> None:
        async with self.world.pool.transaction("tickets") as tx:
            given: Any = (None, None, enabled, self.world.keyring, True)
            await edit_channel(tx, self.world.editor, channel, *given)


ADA = "Ada (email: work)"


@pytest.fixture
async def tickets(world: World) -> Tickets:
    story = Tickets(world)
    await story.hires()
    return story


@pytest.mark.parametrize("impact", list(IncidentImpact))
async def test_only_low_impact_goes_to_the_destinations(
    tickets: Tickets, impact: IncidentImpact
) -> None:
    await tickets.takes_tickets(await tickets.channel("desk"))
    await tickets.opens(impact)
    await tickets.later(6 * MINUTE)
    is_ticket = impact in (IncidentImpact.NONE, IncidentImpact.MINOR)
    assert await tickets.paged() == (["desk"] if is_ticket else [ADA, ADA])
    assert [step for step, _, _ in await tickets.timeline()] == ([-2] if is_ticket else [1, 2])


async def test_without_an_enabled_destination_people_are_paged(tickets: Tickets) -> None:
    desk = await tickets.channel("desk")
    await tickets.takes_tickets(desk, enabled=False)
    await tickets.opens(IncidentImpact.MINOR)
    assert await tickets.paged() == [ADA]
    # From now on it is a ticket: filed once, and the steps stop.
    await tickets.takes_tickets(desk)
    await tickets.later(6 * MINUTE)
    assert await tickets.paged() == [ADA, "desk"]


async def test_a_changed_policy_files_no_second_ticket(tickets: Tickets) -> None:
    await tickets.takes_tickets(await tickets.channel("desk"))
    await tickets.opens(IncidentImpact.MINOR)
    async with tickets.world.pool.transaction("again") as tx:
        await tx.execute("update incidents set escalate_at = at(%(now)s)", now=tickets.world.now)
    await tickets.later(MINUTE)
    assert await tickets.paged() == ["desk"]


async def test_a_snoozed_ticket_is_filed_again_and_a_reassigned_one_pages(
    tickets: Tickets,
) -> None:
    await tickets.takes_tickets(await tickets.channel("desk"))
    incident = await tickets.opens(IncidentImpact.MINOR)
    await tickets.snoozes(incident, 5)
    await tickets.later(5 * MINUTE + 2 * SECOND)
    assert await tickets.paged() == ["desk", "desk"]
    await tickets.reassigns(incident, TargetKind.PERSON, tickets.ada)
    assert await tickets.paged() == ["desk", "desk", ADA]


async def test_a_resolution_is_told_to_the_destinations(tickets: Tickets) -> None:
    await tickets.takes_tickets(await tickets.channel("desk"))
    incident = await tickets.opens(IncidentImpact.MINOR)
    await tickets.answers(incident, AnswerAction.RESOLVE)
    assert await tickets.notifications() == [
        ("desk", "incident.escalated"),
        ("desk", "incident.resolved"),
    ]


async def test_a_route_without_an_escalation_sends_tickets_to_the_destinations(
    tickets: Tickets,
) -> None:
    """Burn rules of severity ticket, and degraded services with a schedule, use it."""
    await tickets.takes_tickets(await tickets.channel("desk"))
    key = await tickets.policy((0, await tickets.channel("ops")))
    async with tickets.world.pool.transaction("open") as tx:
        draft = IncidentDraft(title="Slow")
        row = await create_incident(tx, tickets.world.editor, tickets.world.project_uid, draft)
        found = await select_incident(tx, row.uid)
        assert found is not None
        for severity in ("minor", "major"):
            page = Notification(
                event="budget.burning",
                status="down",
                severity=severity,
                title="Shop",
                lines=(),
                why="",
                since=tickets.world.now,
                path="/",
            )
            await page_route(tx, stream_of(found), PagingRoute(key, None), page)
    assert await tickets.paged() == ["desk", "ops"]
