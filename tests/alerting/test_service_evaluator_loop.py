"""Paging by services for their members: pages, reminders, adoption, recovery and several
evaluators.
"""

from collections.abc import AsyncIterator, Sequence

import pytest
import trio

from leadline.daemon.loops import service_evaluator as evaluator_module
from leadline.storage.alerting.queries.alerting_state import (
    select_alerting_state,
    select_delegations,
)
from leadline.storage.alerting.transactions.evaluate_services import (
    ServiceEvaluations,
    evaluate_services,
)
from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.core.key import ServiceKey
from leadline.storage.engine.pools import Tx
from leadline.storage.incidents.rules.incident import IncidentStatus
from leadline.storage.incidents.tables import incidents
from leadline.storage.incidents.transactions.write_incident import IncidentEntry, write_entry
from leadline.storage.retirement.transactions.end_episode_of_deleted import end_with_service
from leadline.storage.services.rules.service_health import AggregationMode, Policies
from leadline.storage.services.tables.services import delete_service, lock_service

from ..support.worlds.paging_world import EVERY, PagingWorld, paging_world

pytestmark = pytest.mark.template("paging_template")


@pytest.fixture
async def story(dsn: str) -> AsyncIterator[PagingWorld]:
    async with paging_world(dsn) as story:
        yield story


async def test_a_down_service_pages_once_and_its_members_do_not(
    story: PagingWorld,
) -> None:
    one, other = await story.world.monitor(name="One"), await story.world.monitor(name="Other")
    await story.channel("members", one, other)
    ops = await story.channel("ops")
    await story.is_now(one, True)
    await story.is_now(other, True)
    await story.service(one, other, policy=await story.policy((0, ops)))
    await story.is_now(one, False, "connect_refused one.example")
    await story.is_now(other, False)
    await story.run_pass()
    assert await story.notifications() == []
    assert await story.held() == ["delegated", "delegated"]
    await story.steps(70 * SECOND)
    assert await story.notifications() == [("ops", "incident.escalated")]
    assert await story.incidents() == [("Shop is down", "investigating", 1)]
    assert await story.held() == [None, None]
    await story.deliver()
    await story.steps(3 * MINUTE)
    await story.is_now(one, False)
    await story.is_now(other, False)
    await story.steps(70 * SECOND)
    await story.is_now(one, True)
    await story.is_now(other, True)
    await story.steps(40 * SECOND)
    assert await story.notifications() == [
        ("ops", "incident.escalated"),
        ("ops", "incident.resolved"),
    ]
    assert await story.incidents() == [("Shop is down", "resolved", 2)]


async def test_an_episode_opens_after_the_confirming_evaluations(
    story: PagingWorld,
) -> None:
    row = await story.world.monitor()
    ops = await story.channel("ops")
    service = await story.service(row, policy=await story.policy((0, ops)), confirm_evaluations=3)
    await story.is_now(row, False)
    for streak in (1, 2):
        await story.step(EVERY)
        assert await story.live(service) == ("down", streak, "onset_pending")
        assert await story.incidents() == []
    await story.step(EVERY)
    assert await story.live(service) == ("down", 3, None)
    assert await story.incidents() == [("Shop is down", "investigating", 1)]


async def test_a_good_evaluation_resets_the_streak(story: PagingWorld) -> None:
    row = await story.world.monitor()
    ops = await story.channel("ops")
    service = await story.service(row, policy=await story.policy((0, ops)))
    await story.is_now(row, False)
    await story.step(EVERY)
    await story.is_now(row, True)
    await story.step(EVERY)
    assert await story.live(service) == ("healthy", 0, None)
    await story.is_now(row, False)
    await story.step(EVERY)
    assert await story.incidents() == []


async def test_a_schedule_without_a_policy_pages_the_person_on_call(story: PagingWorld) -> None:
    row = await story.world.monitor(name="One")
    ops = await story.channel("ops")
    await story.service(row, schedule=await story.on_call(ops))
    await story.is_now(row, False, "http_status one.example")
    await story.steps(70 * SECOND)
    assert await story.notifications() == [("ops", "incident.opened")]
    found = await story.world.rows(
        "select payload->>'title', payload->>'why', payload->'lines' from outbox"
    )
    assert found == [("Shop is down", "http_status one.example", ["Project Shop", "Down: One"])]


async def test_a_resolved_incident_is_not_opened_again_before_recovery(
    story: PagingWorld,
) -> None:
    row = await story.world.monitor()
    ops = await story.channel("ops")
    await story.service(row, policy=await story.policy((0, ops)))
    await story.is_now(row, False)
    await story.steps(70 * SECOND)
    await story.deliver()
    async with story.world.pool.transaction("resolve") as tx:
        held = await incidents.lock_of_episodes(tx, {}, [ServiceKey((row.org, 1))])
        entry = IncidentEntry(status=IncidentStatus.RESOLVED, body="", public=None, author=None)
        await write_entry(tx, held[ServiceKey((row.org, 1))], entry)
    for _ in range(8):
        await story.is_now(row, False)
        await story.step(EVERY)
    assert len(await story.incidents()) == 1
    await story.is_now(row, True)
    await story.step(EVERY)
    await story.is_now(row, False)
    await story.steps(70 * SECOND)
    assert [status for _, status, _ in await story.incidents()] == ["resolved", "investigating"]
    assert await story.notifications() == [
        ("ops", "incident.escalated"),
        ("ops", "incident.resolved"),
        ("ops", "incident.escalated"),
    ]


async def test_unknown_and_maintenance_neither_open_nor_end_an_episode(story: PagingWorld) -> None:
    row = await story.world.monitor()
    ops = await story.channel("ops")
    service = await story.service(row, policy=await story.policy((0, ops)))
    await story.is_now(row, False)
    await story.steps(70 * SECOND)
    assert len(await story.notifications()) == 1
    await story.steps(5 * MINUTE, EVERY)
    assert (await story.live(service))[0] == "unknown"
    await story.maintain(row, 5 * MINUTE)
    await story.steps(2 * MINUTE, EVERY)
    assert (await story.live(service))[0] == "excluded"
    assert await story.incidents() == [("Shop is down", "investigating", 1)]
    await story.steps(4 * MINUTE, EVERY)
    await story.is_now(row, True)
    await story.step(EVERY)
    assert await story.incidents() == [("Shop is down", "resolved", 2)]


async def test_unknown_opens_an_episode_if_page_on_unknown_is_set(story: PagingWorld) -> None:
    row = await story.world.monitor()
    ops = await story.channel("ops")
    await story.service(row, policy=await story.policy((0, ops)), page_on_unknown=True)
    await story.is_now(row, True)
    await story.step(EVERY)
    assert await story.incidents() == []
    await story.steps(4 * MINUTE, EVERY)
    assert await story.incidents() == [("Shop is unknown", "investigating", 1)]


async def test_reminders_are_sent_until_acknowledgement(story: PagingWorld) -> None:
    row = await story.world.monitor()
    ops = await story.channel("ops")
    await story.service(row, policy=await story.policy((0, ops)), renotify_seconds=60)
    for _ in range(7):
        await story.is_now(row, False)
        await story.step(EVERY)
    reminders = [("ops", "incident.reminder")] * 2
    assert await story.notifications() == [("ops", "incident.escalated"), *reminders]
    await story.set("update incidents set acknowledged_at = at(%(now)s)", now=story.world.now)
    for _ in range(7):
        await story.is_now(row, False)
        await story.step(EVERY)
    assert await story.notifications() == [("ops", "incident.escalated"), *reminders]


async def test_a_cause_outside_the_service_is_announced_instead_of_it(
    story: PagingWorld,
) -> None:
    cause = await story.world.monitor(name="Database")
    row = await story.world.monitor(name="One", depends_on=[cause.uid])
    other = await story.world.monitor(name="Other", depends_on=[cause.uid])
    dba, ops = await story.channel("dba", cause), await story.channel("ops")
    service = await story.service(row, other, policy=await story.policy((0, ops)))
    for _ in range(8):
        for down in (cause, row, other):
            await story.is_now(down, False)
        await story.step(EVERY)
    assert await story.notifications() == [("dba", "incident.opened")]
    assert (await story.live(service))[2] == "held"
    assert dba != ops
    await story.is_now(cause, True)
    await story.step(SECOND)
    for _ in range(4):
        await story.is_now(row, False)
        await story.is_now(other, False)
        await story.step(EVERY)
    assert await story.notifications() == [
        ("dba", "incident.opened"),
        ("dba", "incident.resolved"),
        ("ops", "incident.escalated"),
    ]


async def test_the_member_pages_if_its_service_does_not_page_on_degraded(
    story: PagingWorld,
) -> None:
    one, other = await story.world.monitor(name="One"), await story.world.monitor(name="Other")
    await story.channel("own", one, other)
    ops = await story.channel("ops")
    policy = await story.policy((0, ops))
    await story.service(one, other, policy=policy, policies=Policies(mode=AggregationMode.ANY))
    for _ in range(3):
        await story.is_now(one, False)
        await story.is_now(other, True)
        await story.step(EVERY)
    assert await story.notifications() == [("own", "incident.opened")]
    assert await story.failed_open() == ["state_not_pageable"]


async def test_a_tolerated_outage_pages_no_channel(story: PagingWorld) -> None:
    rows = [await story.world.monitor() for _ in range(3)]
    await story.channel("own", *rows)
    ops = await story.channel("ops")
    policies = Policies(mode=AggregationMode.QUORUM, healthy_min=2, degraded_min=1)
    service = await story.service(*rows, policy=await story.policy((0, ops)), policies=policies)
    for _ in range(20):
        await story.is_now(rows[0], False)
        await story.is_now(rows[1], True)
        await story.is_now(rows[2], True)
        await story.step(EVERY)
    assert (await story.live(service))[0] == "healthy"
    assert await story.notifications() == []
    assert await story.held() == ["delegated"]


async def test_an_adopted_outage_is_paged_after_its_member_recovers(
    story: PagingWorld,
) -> None:
    one, other = await story.world.monitor(name="One"), await story.world.monitor(name="Other")
    await story.channel("own", one, other)
    ops = await story.channel("ops")
    await story.is_now(one, False)
    await story.run_pass()
    assert await story.notifications() == [("own", "incident.opened")]
    await story.deliver()
    await story.service(one, other, policy=await story.policy((0, ops), (600, ops)))
    for _ in range(3):
        await story.is_now(one, False)
        await story.is_now(other, False)
        await story.step(EVERY)
    # The service opens an incident for webhooks, and pages no channel: its member did.
    assert await story.incidents() == [
        ("One is down", "investigating", 1),
        ("Shop is down", "investigating", 1),
    ]
    assert await story.notifications() == [("own", "incident.opened")]
    assert await story.held() == [None, "delegated"]
    for _ in range(30):
        await story.is_now(one, False)
        await story.is_now(other, False)
        await story.step(EVERY)
    await story.is_now(one, True)
    await story.is_now(other, False)
    await story.step(EVERY)
    # Escalation begins now, independent of the start of the incident.
    assert (await story.notifications())[1:] == [
        ("own", "incident.resolved"),
        ("ops", "incident.escalated"),
    ]
    assert await story.held() == [None]
    await story.is_now(other, True)
    await story.step(EVERY)
    assert (await story.notifications())[3:] == [("ops", "incident.resolved")]


async def test_a_down_member_pages_after_its_service_recovers(
    story: PagingWorld,
) -> None:
    one, other = await story.world.monitor(name="One"), await story.world.monitor(name="Other")
    await story.channel("own", one, other)
    ops = await story.channel("ops")
    policies = Policies(mode=AggregationMode.ANY)
    await story.service(one, other, policy=await story.policy((0, ops)), policies=policies)
    for _ in range(3):
        await story.is_now(one, False)
        await story.is_now(other, False)
        await story.step(EVERY)
    assert await story.notifications() == [("ops", "incident.escalated")]
    for _ in range(3):
        await story.is_now(one, True)
        await story.is_now(other, False)
        await story.step(EVERY)
    # The service does not page on degraded: it has recovered for paging, while the member is down.
    assert (await story.notifications())[1:] == [
        ("ops", "incident.resolved"),
        ("own", "incident.opened"),
    ]


async def test_an_evaluation_error_does_not_delay_other_services(
    story: PagingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [await story.world.monitor() for _ in range(3)]
    ops = await story.channel("ops")
    policy = await story.policy((0, ops))
    made = [await story.service(row, policy=policy, name=f"S{n}") for n, row in enumerate(rows)]
    real = evaluate_services

    async def refusing(tx: Tx, keys: Sequence[ServiceKey]) -> ServiceEvaluations:
        if made[1].key in keys:
            raise ValueError("it is not right")
        return await real(tx, keys)

    monkeypatch.setattr(evaluator_module, "evaluate_services", refusing)
    for row in rows:
        await story.is_now(row, False)
    await story.steps(70 * SECOND, EVERY)
    titles = sorted(title for title, _, _ in await story.incidents())
    assert titles == ["S0 is down", "S2 is down", "m1 is down"]
    errors = await story.world.rows("select live_error from service_alerting order by service")
    assert errors == [(None,), ("ValueError: it is not right",), (None,)]
    # Its member pages itself.
    assert await story.failed_open() == [None, "evaluation_error", None]
    monkeypatch.setattr(evaluator_module, "evaluate_services", real)
    await story.step(EVERY)
    assert (await story.world.rows("select count(live_error) from service_alerting")) == [(0,)]


async def test_deleting_a_service_ends_its_episode(story: PagingWorld) -> None:
    row = await story.world.monitor()
    ops = await story.channel("ops")
    await story.channel("own", row)
    service = await story.service(row, policy=await story.policy((0, ops)))
    await story.is_now(row, False)
    await story.steps(70 * SECOND)
    await story.deliver()
    async with story.world.pool.transaction("delete") as tx:
        held = await lock_service(tx, service.uid)
        assert held is not None
        await end_with_service(tx, held)
        await delete_service(tx, service.key)
    assert (await story.incidents())[0][1] == "resolved"
    await story.is_now(row, False)
    await story.step(SECOND)
    assert await story.notifications() == [
        ("ops", "incident.escalated"),
        ("ops", "incident.resolved"),
        ("own", "incident.opened"),
    ]


async def test_several_evaluators_page_once(story: PagingWorld) -> None:
    rows = [await story.world.monitor() for _ in range(8)]
    ops = await story.channel("ops")
    policy = await story.policy((0, ops))
    made = [await story.service(row, policy=policy, name=f"S{n}") for n, row in enumerate(rows)]
    others = [PagingWorld(story.world) for _ in range(4)]
    for row in rows:
        await story.is_now(row, False)
    for looks in (1, 2):
        story.world.now = Instant(story.world.now + EVERY)
        async with trio.open_nursery() as nursery:
            for other in others:
                nursery.start_soon(other.run_pass)
        # Rows that one process locked were skipped by the others, and are evaluated here.
        await story.run_pass()
        # Two evaluations at the same instant count once.
        assert {(await story.live(service))[1] for service in made} == {looks}
        assert len(await story.incidents()) == (0 if looks == 1 else 8)
    assert await story.notifications() == [("ops", "incident.escalated")] * 8
    for row in rows:
        await story.is_now(row, True)
    story.world.now = Instant(story.world.now + EVERY)
    async with trio.open_nursery() as nursery:
        for other in others:
            nursery.start_soon(other.run_pass)
    await story.step(EVERY)
    assert {status for _, status, _ in await story.incidents()} == {"resolved"}
    assert len(await story.notifications()) == 16


async def test_a_resumed_process_waits_before_judging_leases(
    story: PagingWorld,
) -> None:
    row = await story.world.monitor()
    await story.channel("own", row)
    ops = await story.channel("ops")
    await story.service(row, policy=await story.policy((0, ops)))
    await story.is_now(row, False)
    await story.run_pass()
    # All processes were stopped for a while: expired leases do not prove a dead evaluator.
    story.dead, story.steady = True, False
    await story.is_now(row, False)
    await story.step(10 * MINUTE)
    await story.is_now(row, False)
    await story.steps(60 * SECOND)
    assert await story.notifications() == []
    story.dead = False
    await story.steps(40 * SECOND)
    story.steady = True
    await story.is_now(row, False)
    await story.steps(30 * SECOND)
    assert await story.notifications() == [("ops", "incident.escalated")]
    assert await story.failed_open() == [None]


async def test_a_monitor_without_channels_pages_the_target_of_its_service(
    story: PagingWorld,
) -> None:
    alone = await story.world.monitor(name="Alone")
    quiet = await story.world.monitor(name="Quiet", auto_incident=False)
    ops = await story.channel("ops")
    policy = await story.policy((0, ops), (600, ops))
    await story.service(alone, policy=policy, name="A")
    await story.service(quiet, schedule=await story.on_call(ops), name="Q")
    story.dead = True
    for _ in range(8):
        await story.is_now(alone, False)
        await story.is_now(quiet, False)
        await story.step(EVERY)
    assert await story.failed_open() == ["stale_lease", "stale_lease"]
    assert await story.notifications() == [("ops", "incident.escalated"), ("ops", "monitor.down")]
    await story.is_now(alone, True)
    await story.is_now(quiet, True)
    await story.step(SECOND)
    assert (await story.notifications())[2:] == [
        ("ops", "incident.resolved"),
        ("ops", "monitor.recovered"),
    ]


async def test_one_able_service_suffices_for_delegation(
    story: PagingWorld,
) -> None:
    row = await story.world.monitor()
    await story.channel("own", row)
    ops = await story.channel("ops")
    policy = await story.policy((0, ops))
    await story.service(row, policy=policy, name="Able")
    mute = await story.service(row, name="Mute")
    await story.is_now(row, False)
    await story.steps(70 * SECOND)
    sent = await story.notifications()
    assert [name for name, _ in sent] == ["ops"]
    async with story.world.pool.transaction("state", read_only=True) as tx:
        state = await select_alerting_state(tx, mute.key, story.world.now)
    assert (state.live.armed, state.live.reason) == (False, "policy_pages_nothing")


async def test_the_delegation_of_a_member_is_shown(story: PagingWorld) -> None:
    row = await story.world.monitor()
    await story.channel("own", row)
    ops = await story.channel("ops")
    service = await story.service(row, policy=await story.policy((0, ops)))
    key = row.key

    async def shown() -> tuple[bool, list[str], str | None]:
        async with story.world.pool.transaction("state", read_only=True) as tx:
            live = (await select_delegations(tx, [key], story.world.now))[key].live
        return live.delegated, [owner.name for owner in live.owners], live.reason

    assert await shown() == (True, ["Shop"], None)
    await story.set_paging(service, owns_paging=False)
    assert await shown() == (False, [], "no_owning_service")
    await story.set_paging(service)
    story.dead = True
    for _ in range(5):
        await story.is_now(row, False)
        await story.step(EVERY)
    assert await shown() == (False, [], "generation_changed")
    assert await story.notifications() == [("own", "incident.opened")]
