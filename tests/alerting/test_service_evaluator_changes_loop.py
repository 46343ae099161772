"""Edits of a service while its members are down neither lose nor repeat a page."""

from collections.abc import AsyncIterator, Sequence

import pytest

from leadline.daemon.loops import alert_processor as watcher_module
from leadline.storage.alerting.transactions.evaluate_services import end_forgotten_episodes
from leadline.storage.alerting.transactions.process_outages import OutageCounts, process_outages
from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.core.key import MonitorKey, ServiceKey
from leadline.storage.engine.pools import Tx
from leadline.storage.incidents.rules.incident import IncidentStatus
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.retirement.transactions.end_episode_of_deleted import end_with_service
from leadline.storage.services.rules.service_health import AggregationMode, Policies
from leadline.storage.services.tables.services import delete_service, lock_service

from ..support.worlds.paging_world import EVERY, PagingWorld, Service, paging_world

pytestmark = pytest.mark.template("paging_template")


@pytest.fixture
async def story(dsn: str) -> AsyncIterator[PagingWorld]:
    async with paging_world(dsn) as story:
        yield story


async def stays(
    story: PagingWorld, us: int, *down: MonitorRow, up: Sequence[MonitorRow] = ()
) -> None:
    """Advances the time; each monitor keeps its state."""
    for _ in range(us // EVERY):
        for row in down:
            await story.is_now(row, False)
        for row in up:
            await story.is_now(row, True)
        await story.step(EVERY)


async def lose(story: PagingWorld, channel: str = "ops") -> None:
    """Marks pending deliveries to the channel as dead."""
    await story.set(
        "update outbox o set status = 'dead' from destinations d, notification_channels c"
        " where o.destination = d.id and d.channel = c.id and c.name = %(name)s"
        " and o.status = 'pending'",
        name=channel,
    )


async def delete(story: PagingWorld, service: Service) -> None:
    async with story.world.pool.transaction("delete") as tx:
        held = await lock_service(tx, service.uid)
        assert held is not None
        await end_with_service(tx, held)
        await delete_service(tx, service.key)


@pytest.mark.parametrize("change", ["disowned", "dropped"])
async def test_a_removed_member_pages_itself_if_the_page_was_lost(
    story: PagingWorld, change: str
) -> None:
    row, other = await story.world.monitor(name="One"), await story.world.monitor(name="Other")
    await story.channel("own", row)
    ops = await story.channel("ops")
    service = await story.service(row, other, policy=await story.policy((0, ops)))
    await stays(story, 2 * MINUTE, row, other)
    assert await story.notifications() == [("ops", "incident.escalated")]
    if change == "disowned":
        await story.set_paging(service, owns_paging=False)
    else:
        await story.revise(service, [other], number=2)
    await lose(story)
    await stays(story, 2 * MINUTE, row, other)
    sent = await story.notifications()
    assert [event for name, event in sent if name == "own"] == ["incident.opened"]
    await stays(story, 2 * MINUTE, up=[row, other])
    told = [event for name, event in await story.notifications() if name == "own"]
    assert told == ["incident.opened", "incident.resolved"]


@pytest.mark.parametrize("change", ["disowned", "dropped"])
async def test_a_removed_member_is_silent_if_the_page_arrived(
    story: PagingWorld, change: str
) -> None:
    row, other = await story.world.monitor(name="One"), await story.world.monitor(name="Other")
    await story.channel("own", row)
    ops = await story.channel("ops")
    service = await story.service(row, other, policy=await story.policy((0, ops)))
    await stays(story, 2 * MINUTE, row, other)
    await story.deliver()
    if change == "disowned":
        await story.set_paging(service, owns_paging=False)
    else:
        await story.revise(service, [other], number=2)
    await stays(story, 8 * MINUTE, row, other)
    assert await story.notifications() == [("ops", "incident.escalated")]
    await stays(story, 2 * MINUTE, up=[row, other])
    assert await story.notifications() == [
        ("ops", "incident.escalated"),
        ("ops", "incident.resolved"),
    ]


async def test_members_page_after_a_service_was_deleted_unheard(
    story: PagingWorld,
) -> None:
    row = await story.world.monitor(name="One")
    await story.channel("own", row)
    ops = await story.channel("ops")
    service = await story.service(row, policy=await story.policy((0, ops)))
    await stays(story, 2 * MINUTE, row)
    await lose(story)
    await delete(story, service)
    await stays(story, MINUTE, row)
    assert ("own", "incident.opened") in await story.notifications()


async def test_an_incident_without_an_episode_ends_with_its_service(story: PagingWorld) -> None:
    row = await story.world.monitor(name="One")
    ops = await story.channel("ops")
    service = await story.service(row, policy=await story.policy((0, ops)))
    await stays(story, 2 * MINUTE, row)
    await story.set("update service_episodes set ended_at = at(%(now)s)", now=story.world.now)
    await delete(story, service)
    assert await story.incidents() == [("Shop is down", "resolved", 2)]


@pytest.mark.parametrize("dead", [False, True])
async def test_a_service_that_loses_its_members_ends_its_episode(
    story: PagingWorld, dead: bool
) -> None:
    row = await story.world.monitor(name="One")
    await story.channel("own", row)
    ops = await story.channel("ops")
    service = await story.service(row, policy=await story.policy((0, ops)), renotify_seconds=60)
    await stays(story, 2 * MINUTE, row)
    await story.deliver()
    story.dead = dead
    await story.revise(service, [], number=2)
    await stays(story, 3 * MINUTE, row)
    titles = [(title, status) for title, status, _ in await story.incidents()]
    assert titles == [("Shop is down", "resolved"), ("One is down", "investigating")]
    assert [e for n, e in await story.notifications() if n == "own"] == ["incident.opened"]


async def test_a_service_without_paging_takes_over_no_outage(story: PagingWorld) -> None:
    row, cause = await story.world.monitor(name="One"), await story.world.monitor(name="Cause")
    other = await story.world.monitor(name="Other", depends_on=[cause.uid])
    await story.channel("own", row, other)
    ops = await story.channel("ops")
    service = await story.service(row, other, policy=await story.policy((0, ops)))
    await stays(story, 2 * MINUTE, row, up=[other, cause])
    await story.deliver()
    await story.set_paging(service, owns_paging=False)
    await stays(story, 2 * MINUTE, row, other, cause)
    assert (
        await story.notifications()
        == [("ops", "incident.escalated"), ("own", "incident.opened")][:1]
    )
    await stays(story, 2 * MINUTE, row, other, up=[cause])
    assert (await story.notifications())[1:] == [("own", "incident.opened")]


async def test_a_lost_page_of_a_member_does_not_count_for_the_service(story: PagingWorld) -> None:
    one, other = await story.world.monitor(name="One"), await story.world.monitor(name="Other")
    own = await story.channel("own", one)
    ops = await story.channel("ops")
    await story.is_now(one, False)
    await story.run_pass()
    assert await story.notifications() == [("own", "incident.opened")]
    await story.enable(own, enabled=False)
    await story.service(one, other, policy=await story.policy((0, ops)))
    await stays(story, 7 * MINUTE, one, other)
    assert await story.notifications() == [
        ("own", "incident.opened"),
        ("ops", "incident.escalated"),
    ]


async def test_a_page_of_a_paused_member_does_not_count_for_the_service(
    story: PagingWorld,
) -> None:
    one, other = await story.world.monitor(name="One"), await story.world.monitor(name="Other")
    await story.channel("own", one)
    ops = await story.channel("ops")
    await story.is_now(one, False)
    await story.run_pass()
    await story.deliver()
    await story.set("update monitors set enabled = false where id = %(id)s", id=one.id)
    await story.service(one, other, policy=await story.policy((0, ops)))
    await stays(story, 3 * MINUTE, other)
    assert await story.notifications() == [
        ("own", "incident.opened"),
        ("ops", "incident.escalated"),
    ]


async def test_a_member_pages_itself_if_its_service_cannot(
    story: PagingWorld,
) -> None:
    """The episode was adopted for a member that recovered, and the service is not known to be down
    since.
    """
    rows = [await story.world.monitor(name=f"M{n}") for n in range(3)]
    one, other, unseen = rows
    await story.channel("own", *rows)
    ops = await story.channel("ops")
    await story.is_now(one, False)
    await story.run_pass()
    await story.deliver()
    policies = Policies(mode=AggregationMode.QUORUM, healthy_min=3, degraded_min=2)
    await story.service(*rows, policy=await story.policy((0, ops)), policies=policies)
    await stays(story, 2 * MINUTE, one, other, up=[unseen])
    assert await story.held() == [None, "delegated"]
    await story.set("update monitors set enabled = false where id = %(id)s", id=unseen.id)
    await stays(story, 5 * MINUTE, other, up=[one])
    assert [n for n, e in await story.notifications() if e != "incident.resolved"] == ["own", "own"]


async def test_a_delivered_page_of_one_service_covers_its_member(story: PagingWorld) -> None:
    row = await story.world.monitor(name="One")
    await story.channel("own", row)
    ops, lost = await story.channel("ops"), await story.channel("lost")
    await story.service(row, name="A", policy=await story.policy((0, lost)))
    await story.service(row, name="B", policy=await story.policy((0, ops)))
    await stays(story, 2 * MINUTE, row)
    await lose(story, "lost")
    await story.deliver()
    await stays(story, 8 * MINUTE, row)
    assert "own" not in [name for name, _ in await story.notifications()]


async def test_an_error_in_ending_one_episode_does_not_affect_others(
    story: PagingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [await story.world.monitor() for _ in range(3)]
    ops = await story.channel("ops")
    policy = await story.policy((0, ops))
    made = [await story.service(row, policy=policy, name=f"S{n}") for n, row in enumerate(rows)]
    await stays(story, 2 * MINUTE, *rows)
    real = end_forgotten_episodes

    async def refusing(tx: Tx, keys: Sequence[ServiceKey]) -> int:
        if made[1].key in keys:
            raise ValueError("it is not right")
        return await real(tx, keys)

    monkeypatch.setattr(watcher_module, "end_forgotten_episodes", refusing)
    story.dead = True
    await stays(story, 4 * MINUTE, up=rows)
    found = sorted((title, status) for title, status, _ in await story.incidents())
    assert [status for _, status in found] == ["resolved", "investigating", "resolved"]


async def test_editing_the_reminder_interval_keeps_the_streak(story: PagingWorld) -> None:
    row = await story.world.monitor()
    ops = await story.channel("ops")
    service = await story.service(row, policy=await story.policy((0, ops)))
    await story.is_now(row, False)
    await story.step(EVERY)
    for pace in (60, 120, 180):
        await story.set_paging(service, renotify_seconds=pace)
        await story.step(SECOND)
    assert await story.incidents() == []
    assert (await story.live(service))[1] == 1


async def test_toggling_owns_paging_pages_once(story: PagingWorld) -> None:
    row = await story.world.monitor(name="One")
    await story.channel("own", row)
    ops = await story.channel("ops")
    service = await story.service(row, policy=await story.policy((0, ops)), owns_paging=False)
    await stays(story, MINUTE, row)
    for owns in (True, False, True, False, True):
        await story.set_paging(service, owns_paging=owns)
        await stays(story, 2 * MINUTE, row)
        await story.deliver()
    assert await story.notifications() == [("own", "incident.opened")]
    await stays(story, 2 * MINUTE, up=[row])
    assert await story.notifications() == [("own", "incident.opened"), ("own", "incident.resolved")]
    assert {status for _, status, _ in await story.incidents()} == {IncidentStatus.RESOLVED}
    assert story.world.now > Instant(0)


async def test_the_service_pages_if_no_reminder_of_its_member_arrives(story: PagingWorld) -> None:
    one = await story.world.monitor(name="One", renotify_seconds=60)
    other = await story.world.monitor(name="Other")
    await story.channel("own", one)
    ops = await story.channel("ops")
    await story.is_now(one, False)
    await story.run_pass()
    await story.service(one, other, policy=await story.policy((0, ops)))
    await stays(story, 9 * MINUTE, one, other)
    assert ("ops", "incident.escalated") in await story.notifications()


async def test_a_tolerant_service_ends_its_episode_without_an_evaluator(
    story: PagingWorld,
) -> None:
    one, other = await story.world.monitor(name="One"), await story.world.monitor(name="Other")
    await story.channel("own", one, other)
    ops = await story.channel("ops")
    policies = Policies(mode=AggregationMode.ANY)
    await story.service(one, other, policy=await story.policy((0, ops)), policies=policies)
    await stays(story, 2 * MINUTE, one, other)
    await story.deliver()
    story.dead = True
    await stays(story, 4 * MINUTE, other, up=[one])
    assert await story.notifications() == [
        ("ops", "incident.escalated"),
        ("ops", "incident.resolved"),
        ("own", "incident.opened"),
    ]
    await stays(story, MINUTE, up=[one, other])
    assert (await story.notifications())[3:] == [("own", "incident.resolved")]


async def test_an_error_in_one_outage_does_not_delay_others(
    story: PagingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any exception."""
    rows = [await story.world.monitor(name=f"M{n}") for n in range(3)]
    await story.channel("own", *rows)
    real = process_outages

    async def refusing(tx: Tx, keys: Sequence[MonitorKey], *, is_steady: bool) -> OutageCounts:
        if (rows[1].org, rows[1].id) in keys:
            raise ValueError("it is not right")
        return await real(tx, keys, is_steady=is_steady)

    monkeypatch.setattr(watcher_module, "process_outages", refusing)
    for row in rows:
        await story.is_now(row, False)
    await story.run_pass()
    assert [title for title, _, _ in await story.incidents()] == ["M0 is down", "M2 is down"]
    monkeypatch.setattr(watcher_module, "process_outages", real)
    await stays(story, MINUTE, *rows)
    assert len(await story.incidents()) == 3


async def test_acknowledgement_stops_escalation_of_an_adopted_episode(
    story: PagingWorld,
) -> None:
    one, other = await story.world.monitor(name="One"), await story.world.monitor(name="Other")
    await story.channel("own", one)
    ops, boss = await story.channel("ops"), await story.channel("boss")
    await story.is_now(one, False)
    await story.run_pass()
    await story.deliver()
    policy = await story.policy((0, ops), (300, boss))
    service = await story.service(one, other, policy=policy, renotify_seconds=600)
    await stays(story, 10 * MINUTE, one, other)
    assert await story.notifications() == [("own", "incident.opened")]
    await stays(story, 2 * MINUTE, other, up=[one])
    told = [("own", "incident.opened"), ("own", "incident.resolved"), ("ops", "incident.escalated")]
    assert await story.notifications() == told, "counted from its announcement"
    await story.deliver()
    await story.set_paging(service, renotify_seconds=60)
    await stays(story, MINUTE, other, up=[one])
    assert (await story.notifications())[3:] == [("ops", "incident.reminder")]
    await story.set(
        "update incidents set acknowledged_at = at(%(now)s) where status <> 'resolved'",
        now=story.world.now,
    )
    await stays(story, 10 * MINUTE, other, up=[one])
    assert (await story.notifications())[3:] == [("ops", "incident.reminder")]
    await stays(story, MINUTE, up=[one, other])
    assert (await story.notifications())[4:] == [("ops", "incident.resolved")]


async def test_a_clock_jump_keeps_leases_and_pages_once(
    story: PagingWorld,
) -> None:
    row = await story.world.monitor(name="One")
    await story.channel("own", row)
    ops = await story.channel("ops")
    await story.service(row, policy=await story.policy((0, ops)))
    await story.is_now(row, False)
    await story.run_pass()
    # Only the clock of the product jumps: leases use the clock of the database.
    story.world.now = Instant(story.world.now + 10 * MINUTE)
    await story.is_now(row, False)
    await story.watcher.pass_once()
    await story.evaluator.pass_once()
    for _ in range(10):
        await story.deliver()
        await stays(story, MINUTE, row)
    assert len(await story.notifications()) == 1
    await stays(story, MINUTE, up=[row])
    paged, over = await story.notifications()
    assert (paged[0], over[1]) == (over[0], "incident.resolved")
