"""Burn alerts: they are sent once, and a monitor is suppressed if its service watches the
budget."""

from collections.abc import AsyncIterator
from dataclasses import replace
from fractions import Fraction

import pytest

from leadline.storage.accounts.rules.access import CredentialKind, Membership, Principal, Role
from leadline.storage.alerting.queries.alerting_state import (
    select_alerting_state,
    select_delegations,
)
from leadline.storage.core.instant import HOUR, MINUTE, SECOND, Instant
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.notifications.tables.outbox_settlements import purge_threads
from leadline.storage.objectives.rules import BurnRule, BurnSeverity
from leadline.storage.objectives.tables import (
    burn_rules,
    monitor_targets,
)
from leadline.storage.objectives.tables import (
    service_targets as targets,
)
from leadline.storage.objectives.tables.burn_rules import BurnTarget
from leadline.storage.objectives.transactions.set_monitor_objective import set_monitor_objective
from leadline.storage.objectives.transactions.set_service_objective import put_burn_alerting
from leadline.storage.retirement.transactions.delete_monitor import delete_monitor
from leadline.storage.retirement.transactions.delete_service import delete_service

from ..support.worlds.paging_world import EVERY, PagingWorld, Service, paging_world

pytestmark = pytest.mark.template("paging_template")

OBJECTIVE = 990_000
# No evaluated range is a complete hour of the clock, which would be read from its sum.
AGED = 2 * HOUR + 7 * MINUTE
RULE = BurnRule(HOUR, 5 * MINUTE, Fraction(10), BurnSeverity.PAGE)
OF_MONITOR = BurnRule(10 * MINUTE, MINUTE, Fraction(10), BurnSeverity.TICKET)


@pytest.fixture
async def story(dsn: str) -> AsyncIterator[PagingWorld]:
    async with paging_world(dsn) as story:
        yield story


async def watch(story: PagingWorld, service: Service, *rules: BurnRule) -> None:
    async with story.world.pool.transaction("watch") as tx:
        await targets.put_service_target(tx, service.key, "30d", OBJECTIVE)
        await targets.set_service_burn(tx, service.key, "30d", enabled=True)
        aim = BurnTarget(org=service.org, window="30d", service=service.id)
        await burn_rules.replace_rules(tx, aim, list(rules))


async def watch_monitor(story: PagingWorld, row: MonitorRow, *rules: BurnRule) -> None:
    async with story.world.pool.transaction("watch") as tx:
        key = row.key
        await monitor_targets.put_monitor_target(tx, key, "30d", OBJECTIVE, burn_enabled=True)
        aim = BurnTarget(org=row.org, window="30d", monitor=row.id)
        await burn_rules.replace_rules(tx, aim, list(rules))


async def seal(story: PagingWorld, service: Service, minutes: int, *, bad: bool) -> None:
    """Seals `minutes` more minutes, up to now."""
    until = Instant(story.world.now - story.world.now % MINUTE)
    from_ = Instant(until - minutes * MINUTE)
    us = 60_000_000
    await story.set(
        "insert into service_minutes (org, service, from_at, until_at, epoch, good_us, bad_us,"
        " unknown_us, excluded_us, healthy_us, degraded_us, down_us, health_unknown_us) values"
        " (%(org)s, %(service)s, at(%(from_)s), at(%(until)s), 1, %(good)s, %(bad)s, 0, 0,"
        " %(good)s, 0, %(bad)s, 0)",
        org=service.org,
        service=service.id,
        from_=from_,
        until=until,
        good=0 if bad else us,
        bad=us if bad else 0,
    )
    await story.set(
        "update services set sealed_through = at(%(until)s), materialization_start ="
        " coalesce(materialization_start, at(%(from_)s)) where id = %(id)s",
        until=until,
        from_=from_,
        id=service.id,
    )


async def on_sealed(story: PagingWorld, service: Service, minutes: int, *, bad: bool) -> None:
    """Advances the clock and seals each minute."""
    for _ in range(minutes):
        await story.step(EVERY)
        await story.step(EVERY)
        await seal(story, service, 1, bad=bad)
    await story.step(EVERY)


async def watched(story: PagingWorld, *, bad: bool, after_seconds: int = 0) -> Service:
    """A service that pages `ops`, two hours old, with a burn rule and one evaluation."""
    row, ops = await story.world.monitor(), await story.channel("ops")
    service = await story.service(row, policy=await story.policy((after_seconds, ops)))
    story.world.now = Instant(story.world.now + AGED)
    await seal(story, service, 120, bad=bad)
    await watch(story, service, RULE)
    await story.step(EVERY)
    return service


async def verdicts(story: PagingWorld) -> list[tuple[bool, str]]:
    return await story.world.rows("select firing, last_verdict from burn_rules order by id")


async def test_a_rule_of_a_service_sends_one_alert_and_one_resolution(
    story: PagingWorld,
) -> None:
    service = await watched(story, after_seconds=600, bad=False)
    assert await verdicts(story) == [(False, "clear")]
    await on_sealed(story, service, 8, bad=True)
    assert await verdicts(story) == [(True, "firing")]
    assert await story.notifications() == [("ops", "budget.burning")]
    await on_sealed(story, service, 6, bad=False)
    assert await verdicts(story) == [(False, "clear")]
    assert await story.notifications() == [("ops", "budget.burning"), ("ops", "budget.recovered")]
    assert await story.incidents() == [], "a budget opens no incident"


async def test_a_firing_rule_is_renotified_if_configured(story: PagingWorld) -> None:
    row = await story.world.monitor()
    ops = await story.channel("ops")
    schedule = await story.on_call(ops)
    service = await story.service(row, schedule=schedule, renotify_seconds=240)
    story.world.now = Instant(story.world.now + AGED)
    await seal(story, service, 120, bad=True)
    await watch(story, service, RULE)
    await on_sealed(story, service, 9, bad=True)
    assert (
        await story.notifications()
        == [("ops", "budget.burning")] + [("ops", "budget.reminder")] * 2
    )


async def test_an_unknown_burn_rate_neither_fires_nor_clears(story: PagingWorld) -> None:
    service = await watched(story, bad=True)
    assert await verdicts(story) == [(True, "firing")]
    await story.steps(11 * MINUTE, EVERY)
    assert await verdicts(story) == [(True, "unevaluated")]
    assert await story.notifications() == [("ops", "budget.burning")]
    async with story.world.pool.transaction("state", read_only=True) as tx:
        state = await select_alerting_state(tx, service.key, story.world.now)
    assert (state.burn.armed, state.burn.reason) == (False, "rule_unevaluated")


async def failing(story: PagingWorld, row: MonitorRow, us: int) -> None:
    until = story.world.now + us
    while story.world.now < until:
        story.world.now = Instant(story.world.now + 20 * SECOND)
        await story.is_now(row, False)
    await story.set("update shards set settled_through = at(%(now)s)", now=story.world.now)


async def test_a_monitor_without_a_service_sends_its_own_burn_alert(
    story: PagingWorld,
) -> None:
    row = await story.world.monitor(auto_incident=False)
    await story.channel("own", row)
    await watch_monitor(story, row, OF_MONITOR)
    await failing(story, row, 15 * MINUTE)
    await story.run_pass()
    await story.step(EVERY)
    assert await verdicts(story) == [(True, "firing")]
    found = await story.notifications()
    assert [event for _, event in found if event.startswith("budget")] == ["budget.burning"]


async def test_a_monitor_is_quiet_of_its_budget_while_a_service_watches_its_own(
    story: PagingWorld,
) -> None:
    row = await story.world.monitor(auto_incident=False)
    await story.channel("own", row)
    ops = await story.channel("ops")
    service = await story.service(row, policy=await story.policy((0, ops)))
    await watch_monitor(story, row, OF_MONITOR)
    await failing(story, row, 130 * MINUTE)
    await seal(story, service, 120, bad=False)
    await watch(story, service, RULE)
    await story.step(EVERY)
    await story.set("update burn_rules set evaluated_at = null, firing = false, notified_at = null")
    await story.set("delete from outbox")
    await story.step(EVERY)
    assert await verdicts(story) == [(True, "firing"), (False, "clear")]
    assert [one for one in await story.notifications() if one[1].startswith("budget")] == []
    async with story.world.pool.transaction("state", read_only=True) as tx:
        found = await select_delegations(tx, [row.key], story.world.now)
    assert [one.name for one in found[row.key].burn.owners] == ["Shop"]
    # The sealed time of the service does not advance, so its verdict is stale.
    await failing(story, row, 12 * MINUTE)
    await story.run_pass()
    await story.step(EVERY)
    assert [one for one in await story.notifications() if one[1].startswith("budget")] == [
        ("own", "budget.burning")
    ]


async def test_the_recipients_of_a_burn_alert_are_kept_until_it_clears(
    story: PagingWorld,
) -> None:
    service = await watched(story, bad=True)
    await story.set("delete from outbox")
    later = Instant(story.world.now + 30 * 24 * HOUR)
    async with story.world.pool.transaction("purge_expired_rows") as tx:
        assert await purge_threads(tx, later) == 0
    await on_sealed(story, service, 6, bad=False)
    assert await story.notifications() == [("ops", "budget.recovered")]
    await story.set("delete from outbox")
    async with story.world.pool.transaction("purge_expired_rows") as tx:
        assert await purge_threads(tx, later) == 1


def admin_of(story: PagingWorld) -> Principal:
    return Principal(
        CredentialKind.SESSION, (Membership(story.world.org, None, Role.ORG_ADMIN),), label="admin"
    )


async def edit_rules(
    story: PagingWorld, service: Service, *rules: BurnRule, enabled: bool = True
) -> None:
    (project,) = (await story.world.rows("select uid from projects"))[0]
    async with story.world.pool.transaction("edit") as tx:
        await put_burn_alerting(
            tx, admin_of(story), project, service.uid, "30d", rules, enabled=enabled
        )


@pytest.mark.parametrize("change", ["edited", "switched off", "deleted"])
async def test_the_recipients_of_a_removed_rule_of_a_service_are_notified_once(
    story: PagingWorld, change: str
) -> None:
    service = await watched(story, bad=True)
    assert await story.notifications() == [("ops", "budget.burning")]
    await edit_rules(story, service, RULE)
    assert len(await story.notifications()) == 1, "an equal rule sent a notification"
    if change == "edited":
        await edit_rules(story, service, replace(RULE, threshold=Fraction(200)))
    elif change == "switched off":
        await edit_rules(story, service, RULE, enabled=False)
    else:
        (project,) = (await story.world.rows("select uid from projects"))[0]
        async with story.world.pool.transaction("delete") as tx:
            await delete_service(tx, admin_of(story), project, service.uid)
    told = [("ops", "budget.burning"), ("ops", "budget.recovered")]
    assert await story.notifications() == told
    await story.steps(2 * MINUTE, EVERY)
    assert await story.notifications() == told
    if change == "switched off":
        await edit_rules(story, service, RULE)
        await story.steps(2 * MINUTE, EVERY)
        assert await story.notifications() == [*told, ("ops", "budget.burning")]


@pytest.mark.parametrize("change", ["edited", "switched off", "deleted", "aimed at"])
async def test_the_recipients_of_a_removed_rule_of_a_monitor_are_notified_once(
    story: PagingWorld, change: str
) -> None:
    row = await story.world.monitor(auto_incident=False)
    await story.channel("own", row)
    await watch_monitor(story, row, OF_MONITOR)
    await failing(story, row, 15 * MINUTE)
    await story.run_pass()
    await story.step(EVERY)
    admin = admin_of(story)
    rules: dict[str, list[BurnRule] | None] = {
        "edited": [replace(OF_MONITOR, threshold=Fraction(200))],
        "switched off": None,
        "aimed at": None,
    }
    async with story.world.pool.transaction("change") as tx:
        if change == "deleted":
            await delete_monitor(tx, admin, row.uid)
        else:
            enabled = change != "switched off"
            given = rules[change]
            await set_monitor_objective(
                tx, admin, row.uid, "30d", 99.0, given, burn_enabled=enabled
            )
    told = [event for _, event in await story.notifications() if event.startswith("budget")]
    gone = ["budget.recovered"] if change != "aimed at" else []
    assert told == ["budget.burning", *gone]


async def test_a_threshold_that_is_met_exactly_is_reached(story: PagingWorld) -> None:
    """Half of the time bad, of which one per cent is allowed, is fifty times its pace."""
    row = await story.world.monitor()
    ops = await story.channel("ops")
    service = await story.service(row, policy=await story.policy((0, ops)))
    story.world.now = Instant(story.world.now + AGED)
    await seal(story, service, 120, bad=True)
    await story.set(
        "update service_minutes set good_us = 30000000, healthy_us = 30000000,"
        " bad_us = 30000000, down_us = 30000000"
    )
    above = Fraction(500001, 10000)
    await watch(
        story, service, replace(RULE, threshold=Fraction(50)), replace(RULE, threshold=above)
    )
    await story.step(EVERY)
    assert await verdicts(story) == [(True, "firing"), (False, "clear")]


async def test_a_service_without_sealed_time_has_an_unknown_verdict(story: PagingWorld) -> None:
    row = await story.world.monitor()
    ops = await story.channel("ops")
    service = await story.service(row, policy=await story.policy((0, ops)))
    await watch(story, service, RULE)
    await story.steps(2 * MINUTE, EVERY)
    assert await verdicts(story) == [(False, "unevaluated")]
    async with story.world.pool.transaction("state", read_only=True) as tx:
        state = await select_alerting_state(tx, service.key, story.world.now)
    assert (state.burn.armed, state.burn.reason) == (False, "rule_unevaluated")
    assert await story.notifications() == []


async def test_a_firing_rule_without_a_recipient_is_sent_when_there_is_one(
    story: PagingWorld,
) -> None:
    row = await story.world.monitor()
    ops = await story.channel("ops")
    service = await story.service(row)
    story.world.now = Instant(story.world.now + AGED)
    await seal(story, service, 120, bad=True)
    await watch(story, service, RULE)
    await story.steps(MINUTE, EVERY)
    assert (await verdicts(story), await story.notifications()) == ([(True, "firing")], [])
    policy = await story.policy((0, ops))
    await story.set("update services set escalation_policy = %(policy)s", policy=policy)
    await story.steps(2 * MINUTE, EVERY)
    assert await story.notifications() == [("ops", "budget.burning")]
