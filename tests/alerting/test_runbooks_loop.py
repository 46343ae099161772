"""Runbooks in every page: of an outage, an escalation, a recovery, an episode and a burn rule."""

from collections.abc import AsyncIterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from leadline.storage.core.instant import HOUR, MINUTE
from leadline.storage.objectives.rules import BurnRule, BurnSeverity
from leadline.storage.objectives.tables import burn_rules
from leadline.storage.objectives.tables.burn_rules import BurnTarget
from leadline.storage.services.transactions.set_runbook import put_runbook
from tests.support.worlds.outbox_world import OutboxWorld
from tests.support.worlds.paging_world import PagingWorld, paging_world

pytestmark = pytest.mark.template("paging_template")

MONITOR = "https://wiki.example/monitor"
SERVICE = "https://wiki.example/service"
RULE = "https://wiki.example/burn"


@pytest.fixture
async def story(dsn: str) -> AsyncIterator[PagingWorld]:
    async with paging_world(dsn) as story:
        yield story


async def pages(story: PagingWorld) -> list[Any]:
    return await story.world.rows(
        "select event, payload->>'runbook_url' from outbox o"
        " join destinations d on d.org = o.org and d.id = o.destination"
        " where d.channel is not null order by o.id"
    )


async def test_an_outage_with_an_incident_names_the_runbook_of_the_monitor(
    story: PagingWorld,
) -> None:
    row = await story.world.monitor(name="Shop", runbook_url=MONITOR)
    ops, night = await story.channel("ops", row), await story.channel("night")
    del ops
    await story.climbs(row, await story.policy((60, night)))
    await OutboxWorld(story.world).webhook()
    await story.is_now(row, False)
    await story.later(2 * MINUTE)
    await story.is_now(row, True)
    await story.run_pass()
    assert await pages(story) == [
        ("incident.opened", MONITOR),
        ("incident.escalated", MONITOR),
        ("incident.resolved", MONITOR),
        ("incident.resolved", MONITOR),
    ]
    sent = await story.world.rows(
        "select payload->'incident'->>'runbook_url' from outbox o"
        " join destinations d on d.org = o.org and d.id = o.destination"
        " where d.webhook is not null order by o.id"
    )
    assert sent == [(MONITOR,), (MONITOR,)]


async def test_an_outage_without_an_incident_names_the_runbook(story: PagingWorld) -> None:
    row = await story.world.monitor(runbook_url=MONITOR, auto_incident=False)
    await story.channel("ops", row)
    await story.is_now(row, False)
    await story.run_pass()
    assert await pages(story) == [("monitor.down", MONITOR)]


async def test_a_monitor_without_a_runbook_names_none(story: PagingWorld) -> None:
    row = await story.world.monitor()
    await story.channel("ops", row)
    await story.is_now(row, False)
    await story.run_pass()
    assert await pages(story) == [("incident.opened", "")]


async def test_an_episode_names_the_runbook_of_the_service(story: PagingWorld) -> None:
    member = await story.world.monitor(name="Member", runbook_url=MONITOR)
    night = await story.channel("night")
    policy = await story.policy((0, night))
    service = await story.service(member, policy=policy, owns_paging=True)
    async with story.world.pool.transaction("runbook") as tx:
        await put_runbook(tx, story.world.editor, story.world.project_uid, service.uid, SERVICE)
    await story.is_now(member, False)
    await story.steps(5 * MINUTE)
    assert ("incident.escalated", SERVICE) in await pages(story)


async def test_a_change_of_a_rules_runbook_keeps_its_firing_state(story: PagingWorld) -> None:
    service = await story.service()
    rule = BurnRule(HOUR, 5 * MINUTE, Fraction(10), BurnSeverity.PAGE)
    other = BurnRule(2 * HOUR, 5 * MINUTE, Fraction(3), BurnSeverity.TICKET)
    aim = BurnTarget(org=service.org, window="30d", service=service.id)

    async def put(*rules: BurnRule) -> bool:
        async with story.world.pool.transaction("put") as tx:
            return await burn_rules.replace_rules(tx, aim, list(rules))

    async def rows() -> list[Any]:
        return await story.world.rows(
            "select uid, runbook_url, firing from burn_rules order by place"
        )

    assert await put(rule, other)
    async with story.world.pool.transaction("fire") as tx:
        await tx.execute("update burn_rules set firing = true")
    (first, _, _), (second, _, _) = await rows()
    assert await put(other, replace(rule, runbook_url=RULE))
    assert await rows() == [(second, "", True), (first, RULE, True)]
    assert not await put(other, replace(rule, runbook_url=RULE))
    assert await put(other, replace(rule, threshold=Fraction(11), runbook_url=RULE))
    assert [(url, firing) for _, url, firing in await rows()] == [("", True), (RULE, False)]
