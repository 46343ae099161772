"""A process that is killed at any statement pages nobody twice within an attempt, and everybody.

The backend is terminated before the n-th statement, for every n. The kill of the whole daemon is in
`tests/journeys/test_killed_pages.py`.
"""

from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from leadline.storage.alerting.transactions.process_outages import process_outages
from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.engine.pools import Tx
from leadline.storage.incidents.rules.answer_link import AnswerAction
from leadline.storage.incidents.transactions.answer_incident import IncidentAnswer, answer_incident
from leadline.storage.incidents.transactions.escalate_incident import escalate_if_due
from leadline.storage.notifications.rules.delivery_retry import ROOMS, DeliveryOutcome
from leadline.storage.notifications.rules.personal_rules import PersonalRule
from leadline.storage.notifications.transactions.lease_deliveries import (
    LeasedDelivery,
    lease_deliveries,
)
from leadline.storage.notifications.transactions.settle_deliveries import settle_deliveries
from leadline.storage.oncall.rules.escalation import TargetKind
from tests.incidents.test_answers_loop import Desk
from tests.support.worlds.killed import killed_at_each_statement
from tests.support.worlds.world import World

_STATE = """
select (select json_agg(row_to_json(o) order by o.id) from outbox o)::text,
  (select json_agg(row_to_json(i) order by i.id) from incidents i)::text,
  (select json_agg(row_to_json(p) order by p.id) from incident_pages p)::text,
  (select json_agg(row_to_json(u)) from incident_updates u)::text,
  (select json_agg(row_to_json(t)) from outages t)::text,
  (select json_agg(row_to_json(c) order by c.id) from notification_channels c)::text
"""
_ATTEMPTS = "select id, status, attempts, lease is null from outbox order by id"

Work = Callable[[Tx], Awaitable[Any]]


class Night(Desk):
    """A channel, and two people with two methods each, who are paged at 0 and 10 minutes."""

    async def starts(self) -> None:
        self.people = [await self.person(name) for name in ("Ada", "Bob")]
        for user, _ in self.people:
            first, second = [await self.method(user, "webhook", name) for name in ("one", "two")]
            rules = [PersonalRule(first, 0), PersonalRule(second, 300)]
            await self.rules(user, page=rules)
        self.shop = await self.world.monitor(name="Shop")
        steps = [(600 * n, TargetKind.PERSON, uid) for n, (_, uid) in enumerate(self.people)]
        board = (0, TargetKind.CHANNEL, await self.channel("board"))
        await self.climbs(self.shop, await self.policy_of(board, *steps))

    async def killed(self, monkeypatch: pytest.MonkeyPatch, work: Work) -> int:
        async def state() -> Any:
            return await self.world.rows(_STATE)

        return await killed_at_each_statement(self.world, monkeypatch, work, state)

    async def names(self) -> list[str]:
        return sorted(f"{name} {event}" for name, event, _ in await self.messages())


@pytest.fixture
async def night(world: World) -> Night:
    found = Night(world)
    await found.starts()
    return found


async def test_the_opening_and_each_step(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    await night.is_now(night.shop, False)
    key = night.shop.key

    async def opens(tx: Tx) -> None:
        await process_outages(tx, [key])

    assert await night.killed(monkeypatch, opens) >= 20
    ((incident,),) = await night.world.rows("select uid from incidents")
    first = ["Ada (webhook: one)", "Ada (webhook: two)", "board"]
    told = await night.names()
    assert [line.rpartition(" ")[0] for line in told] == first
    # The step is not due yet, and then due once.
    for minutes, more in ((1, 0), (10, 2), (20, 0)):
        night.world.now = Instant(night.world.now + minutes * MINUTE)

        async def climbs(tx: Tx) -> None:
            await escalate_if_due(tx, incident)

        await night.killed(monkeypatch, climbs)
        told = [*told, *(f"Bob (webhook: {n}) incident.escalated" for n in ("one", "two")[:more])]
        assert await night.names() == sorted(told)


async def test_an_answer_withdraws_what_waits(
    night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    await night.is_now(night.shop, False)
    await night.run_pass()
    ((incident,),) = await night.world.rows("select uid from incidents")
    before = len(await night.messages())

    async def answers(tx: Tx) -> None:
        answer = IncidentAnswer(action=AnswerAction.ACKNOWLEDGE)
        await answer_incident(tx, night.world.editor, incident, answer)

    assert await night.killed(monkeypatch, answers) >= 5
    assert len(await night.messages()) == before - 1
    await night.later(30 * MINUTE)
    assert len(await night.messages()) == before - 1


async def test_the_leases_and_the_outcomes(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    await night.is_now(night.shop, False)
    await night.run_pass()
    leased: list[LeasedDelivery] = []

    async def leases(tx: Tx) -> None:
        nonlocal leased
        leased = list((await lease_deliveries(tx, ROOMS, 24)).deliveries)

    assert await night.killed(monkeypatch, leases) >= 3
    # The method with a delay waits.
    assert len(leased) == 2
    assert len({one.event.key for one in leased}) == 2
    again = leased
    await night.killed(monkeypatch, leases)
    assert leased == [], "a leased page is leased again"
    delivered = DeliveryOutcome()

    async def settles(tx: Tx) -> None:
        batch = [(one, delivered) for one in again]
        await settle_deliveries(tx, batch, 24, Random(1).random)

    assert await night.killed(monkeypatch, settles) >= 2
    states = await night.world.rows(_ATTEMPTS)
    assert sorted(states[n][1] for n in range(3)) == ["delivered", "delivered", "pending"]
    night.world.now = Instant(night.world.now + 5 * MINUTE + SECOND)
    await night.killed(monkeypatch, leases)
    assert len(leased) == 1
