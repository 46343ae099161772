"""The alert processor: notifications of outages, dependencies, maintenance, reminders and
escalation.
"""

import random
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
import trio
from uuid_utils.compat import uuid7

from leadline.daemon.loops import alert_processor as watcher_module
from leadline.daemon.loops.alert_processor import AlertProcessor
from leadline.storage.alerting.transactions.process_outages import OutageCounts, process_outages
from leadline.storage.core.instant import HOUR, MINUTE, SECOND, Instant
from leadline.storage.core.key import MonitorKey
from leadline.storage.engine.pools import Rejected, Tx
from leadline.storage.incidents.rules.incident import IncidentStatus
from leadline.storage.incidents.tables import incidents
from leadline.storage.incidents.transactions import escalate_incident as climb_module
from leadline.storage.incidents.transactions.write_incident import IncidentEntry, write_entry
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.notifications.queries.channels import select_channel
from leadline.storage.notifications.tables.channels import attach_channel
from leadline.storage.notifications.transactions.edit_channels import create_channel, edit_channel
from leadline.storage.oncall.rules.escalation import EscalationTarget, TargetKind
from leadline.storage.oncall.transactions.resolve_targets import channels_of_step
from leadline.storage.results.transactions.record_results import record_results
from leadline.storage.retirement.transactions.delete_monitor import delete_monitor
from tests.support.worlds.outbox_world import OutboxWorld
from tests.support.worlds.world import REGIONS, World


class Story:
    """A world with an alert processor. `now` changes only in `later`."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.asked = 0
        self.notified = 0
        self.watcher = AlertProcessor(
            world.pool, lambda: world.now, self._on_notified, self._on_asked
        )

    def _on_notified(self) -> None:
        self.notified += 1

    def _on_asked(self) -> None:
        self.asked += 1

    async def run_pass(self) -> None:
        await self.watcher.pass_once()

    async def later(self, us: int) -> None:
        """Runs passes at the interval of the loop, while the clock advances."""
        until = self.world.now + us
        while self.world.now < until:
            self.world.now = Instant(min(self.world.now + SECOND, until))
            await self.run_pass()

    async def is_now(self, row: MonitorRow, up: bool, msg: str = "", **given: Any) -> None:
        self.world.now = Instant(self.world.now + 1000)
        async with self.world.pool.transaction("record") as tx:
            result = self.world.result(row, self.world.now, up, msg=msg, **given)
            await record_results(tx, [result])

    async def channel(self, name: str, *monitors: MonitorRow) -> UUID:
        async with self.world.pool.transaction("channel") as tx:
            row = await create_channel(
                tx,
                self.world.editor,
                self.world.project_uid,
                "webhook",
                name,
                {"url": "https://chat.example/hook"},
                self.world.keyring,
                enabled=True,
            )
            for monitor in monitors:
                await attach_channel(tx, monitor.org, monitor.id, row.id)
        return row.uid

    async def policy(self, *steps: tuple[int, UUID], repeat_last: bool = False) -> int:
        async with self.world.pool.transaction("policy") as tx:
            key: int = await tx.value(
                "insert into escalation_policies (org, uid, project, name, repeat_last,"
                " after_seconds, created_at, updated_at) values (%(org)s, %(uid)s, %(project)s,"
                " 'ladder', %(repeat)s, %(after)s::int[], now(), now()) returning id",
                org=self.world.org,
                uid=uuid7(),
                project=self.world.project,
                repeat=repeat_last,
                after=[after for after, _ in steps],
            )
            for number, (_, channel) in enumerate(steps, start=1):
                row = await select_channel(tx, channel)
                assert row is not None
                await tx.execute(
                    "insert into escalation_targets (org, policy, step, place, channel)"
                    " values (%(org)s, %(policy)s, %(step)s, 1, %(channel)s)",
                    org=self.world.org,
                    policy=key,
                    step=number,
                    channel=row.id,
                )
        return key

    async def climbs(self, row: MonitorRow, policy: int) -> None:
        async with self.world.pool.transaction("climbs") as tx:
            await tx.execute(
                "update monitors set escalation_policy = %(policy)s where id = %(id)s",
                policy=policy,
                id=row.id,
            )

    async def maintain(self, row: MonitorRow, us: int) -> None:
        async with self.world.pool.transaction("maintain") as tx:
            await tx.execute(
                "insert into maintenances (org, uid, project, monitor, starts_at, ends_at,"
                " created_at) values (%(org)s, gen_random_uuid(), %(project)s, %(monitor)s,"
                " at(%(from_)s), at(%(until)s), at(%(from_)s))",
                org=self.world.org,
                project=self.world.project,
                monitor=row.id,
                from_=self.world.now,
                until=self.world.now + us,
            )

    async def edit(self, row: MonitorRow, **given: Any) -> None:
        async with self.world.pool.transaction("edit") as tx:
            await edit_monitor(tx, self.world.editor, row.uid, given, self.world.keyring, REGIONS)

    async def notifications(self) -> list[tuple[str, str]]:
        """Returns (channel, event) in the order of creation, without webhooks."""
        return await self.world.rows(
            "select c.name, o.event from outbox o"
            " join destinations d on d.org = o.org and d.id = o.destination"
            " join notification_channels c on c.org = d.org and c.id = d.channel order by o.id"
        )

    async def incidents(self) -> list[tuple[str, str, int]]:
        return await self.world.rows("select title, status, seq from incidents order by id")

    async def held(self) -> list[str | None]:
        return [
            by
            for (by,) in await self.world.rows(
                "select suppressed_by from outages where ended_at is null order by monitor"
            )
        ]

    async def jobs(self) -> list[int]:
        return [
            monitor
            for (monitor,) in await self.world.rows(
                "select monitor from jobs where reason = 'onset' order by monitor"
            )
        ]


@pytest.fixture
def story(world: World) -> Story:
    return Story(world)


async def test_an_outage_opens_an_incident_and_recovery_resolves_it(
    story: Story,
) -> None:
    row = await story.world.monitor(name="Shop")
    await story.channel("ops", row)
    await story.is_now(row, True)
    await story.run_pass()
    assert await story.notifications() == []
    await story.is_now(row, False, "connect_refused shop.example")
    await story.run_pass()
    assert await story.incidents() == [("Shop is down", "investigating", 1)]
    assert await story.notifications() == [("ops", "incident.opened")]
    await story.later(5 * MINUTE)
    await story.is_now(row, True)
    await story.run_pass()
    assert await story.incidents() == [("Shop is down", "resolved", 2)]
    assert await story.notifications() == [("ops", "incident.opened"), ("ops", "incident.resolved")]
    assert story.notified == 2


async def test_a_page_has_monitor_start_and_reason(story: Story) -> None:
    row = await story.world.monitor(name="Shop")
    await story.channel("ops", row)
    await story.is_now(row, False, "http_status shop.example")
    at = story.world.now
    await story.later(SECOND)
    found = await story.world.rows(
        "select payload->>'title', payload->>'why', (payload->>'since')::bigint,"
        " payload->>'path', i.uid from outbox, incidents i"
    )
    title, why, since, path, incident = found[0]
    assert (title, why, since) == ("Shop is down", "http_status shop.example", at)
    assert path == f"/incidents/{incident}"


async def test_without_an_incident_the_channels_get_monitor_events(story: Story) -> None:
    row = await story.world.monitor(auto_incident=False)
    await story.channel("ops", row)
    for up in (False, True, False, True):
        await story.is_now(row, up)
        await story.run_pass()
    assert await story.incidents() == []
    down, recovered = ("ops", "monitor.down"), ("ops", "monitor.recovered")
    assert await story.notifications() == [down, recovered, down, recovered]
    streams = await story.world.rows(
        "select count(distinct stream), count(distinct thread) from outbox"
    )
    assert streams == [(1, 2)]


async def test_an_outage_between_two_passes_is_stored_and_not_announced(story: Story) -> None:
    row = await story.world.monitor()
    await story.channel("ops", row)
    await story.is_now(row, False)
    await story.is_now(row, True)
    await story.run_pass()
    assert await story.notifications() == []
    assert await story.world.rows(
        "select ended_at is not null, announced_at is null from outages"
    ) == [(True, True)]


async def test_two_outages_between_two_passes_are_stored_separately(story: Story) -> None:
    row = await story.world.monitor()
    await story.channel("ops", row)
    await story.is_now(row, False)
    await story.run_pass()
    await story.is_now(row, True)
    await story.is_now(row, False)
    await story.run_pass()
    assert [event for _, event in await story.notifications()] == [
        "incident.opened",
        "incident.resolved",
        "incident.opened",
    ]
    assert [status for _, status, _ in await story.incidents()] == ["resolved", "investigating"]
    await story.is_now(row, True)
    await story.run_pass()
    assert [event for _, event in await story.notifications()][3:] == ["incident.resolved"]


async def test_the_next_outage_does_not_reopen_a_resolved_incident(story: Story) -> None:
    row = await story.world.monitor()
    await story.channel("ops", row)
    await story.is_now(row, False)
    await story.run_pass()
    async with story.world.pool.transaction("resolve") as tx:
        incident = await incidents.lock_open_of_monitor(tx, row.org, row.id)
        assert incident is not None
        entry = IncidentEntry(
            status=IncidentStatus.RESOLVED, body="Mended.", public=None, author=None
        )
        await write_entry(tx, incident, entry)
    await story.is_now(row, True)
    await story.is_now(row, False)
    await story.run_pass()
    assert [status for _, status, _ in await story.incidents()] == ["resolved", "investigating"]


async def test_a_lost_status_change_loses_no_outage(story: Story) -> None:
    row = await story.world.monitor()
    await story.channel("ops", row)
    await story.is_now(row, False)
    async with story.world.pool.transaction("lose") as tx:
        await tx.execute("delete from status_changes")
    await story.later(watcher_module.ASTRAY_EVERY_US)
    assert await story.notifications() == [("ops", "incident.opened")]
    await story.is_now(row, True)
    async with story.world.pool.transaction("lose") as tx:
        await tx.execute("delete from status_changes")
    await story.later(watcher_module.ASTRAY_EVERY_US)
    assert [event for _, event in await story.notifications()] == [
        "incident.opened",
        "incident.resolved",
    ]


async def test_an_outage_is_announced_after_maintenance(
    story: Story,
) -> None:
    row = await story.world.monitor(interval_seconds=30)
    await story.channel("ops", row)
    await story.maintain(row, 10 * MINUTE)
    await story.is_now(row, False)
    await story.run_pass()
    assert await story.held() == ["maintenance"]
    await story.later(10 * MINUTE + 10 * SECOND)
    assert await story.held() == ["unknown"]
    await story.is_now(row, False)
    await story.later(10 * SECOND)
    assert await story.notifications() == [("ops", "incident.opened")]


async def test_paused_and_unknown_monitors_are_not_announced(story: Story) -> None:
    row = await story.world.monitor(interval_seconds=30)
    await story.channel("ops", row)
    await story.is_now(row, False)
    story.world.now = Instant(story.world.now + SECOND)
    await story.edit(row, enabled=False)
    await story.run_pass()
    assert await story.held() == ["paused"]
    await story.later(10 * SECOND)
    await story.edit(row, enabled=True)
    await story.later(10 * SECOND)
    assert await story.held() == ["unknown"]
    assert await story.notifications() == []


async def test_a_resolved_incident_is_not_opened_again_before_recovery(
    story: Story,
) -> None:
    row = await story.world.monitor(interval_seconds=30, renotify_seconds=60)
    await story.channel("ops", row)
    await story.is_now(row, False)
    await story.run_pass()
    async with story.world.pool.transaction("resolve") as tx:
        incident = await incidents.lock_open_of_monitor(tx, row.org, row.id)
        assert incident is not None
        entry = IncidentEntry(
            status=IncidentStatus.RESOLVED, body="Nobody uses it.", public=None, author=None
        )
        await write_entry(tx, incident, entry)
    for _ in range(4):
        await story.is_now(row, False)
        await story.later(30 * SECOND)
    assert [event for _, event in await story.notifications()] == [
        "incident.opened",
        "incident.resolved",
    ]
    await story.is_now(row, True)
    await story.run_pass()
    await story.is_now(row, False)
    await story.run_pass()
    assert len(await story.incidents()) == 2
    assert [event for _, event in await story.notifications()][2:] == ["incident.opened"]


async def test_reminders_are_sent_until_acknowledgement(story: Story) -> None:
    row = await story.world.monitor(interval_seconds=30, renotify_seconds=60)
    await story.channel("ops", row)
    await story.is_now(row, False)
    await story.run_pass()
    for _ in range(4):
        await story.later(30 * SECOND)
        await story.is_now(row, False)
    await story.later(5 * SECOND)
    events = [event for _, event in await story.notifications()]
    assert events == ["incident.opened", "incident.reminder", "incident.reminder"]
    async with story.world.pool.transaction("acknowledge") as tx:
        incident = await incidents.lock_open_of_monitor(tx, row.org, row.id)
        assert incident is not None
        await incidents.acknowledge_incident(tx, incident, None, "Mara")
    for _ in range(4):
        await story.later(30 * SECOND)
        await story.is_now(row, False)
    assert len(await story.notifications()) == 3


async def test_reminders_use_the_current_setting(story: Story) -> None:
    row = await story.world.monitor(interval_seconds=60)
    await story.channel("ops", row)
    await story.is_now(row, False)
    await story.later(2 * MINUTE)
    await story.edit(row, renotify_seconds=60)
    await story.is_now(row, False)
    await story.later(watcher_module.ASTRAY_EVERY_US + SECOND)
    assert [event for _, event in await story.notifications()] == [
        "incident.opened",
        "incident.reminder",
    ]
    await story.edit(row, renotify_seconds=0)
    await story.is_now(row, False)
    await story.later(3 * MINUTE)
    assert len(await story.notifications()) == 2


async def test_a_shorter_reminder_interval_applies_immediately(story: Story) -> None:
    row = await story.world.monitor(interval_seconds=60, renotify_seconds=86_400)
    await story.channel("ops", row)
    await story.is_now(row, False)
    await story.later(2 * MINUTE)
    await story.edit(row, renotify_seconds=60)
    await story.is_now(row, False)
    await story.later(watcher_module.ASTRAY_EVERY_US + SECOND)
    assert [event for _, event in await story.notifications()] == [
        "incident.opened",
        "incident.reminder",
    ]


async def test_reminders_are_suppressed_by_a_cause(story: Story) -> None:
    database = await story.world.monitor(interval_seconds=60)
    row = await story.world.monitor(
        interval_seconds=60, renotify_seconds=60, depends_on=[database.uid]
    )
    await story.channel("ops", row)
    await story.is_now(row, False)
    await story.is_now(database, True)
    await story.run_pass()
    await story.is_now(database, False)
    await story.is_now(row, False)
    await story.later(90 * SECOND)
    assert await story.notifications() == [("ops", "incident.opened")]
    await story.is_now(database, True)
    await story.is_now(row, False)
    await story.later(10 * SECOND)
    assert [event for _, event in await story.notifications()] == [
        "incident.opened",
        "incident.reminder",
    ]


async def test_escalation_continues_until_acknowledgement(story: Story) -> None:
    row = await story.world.monitor(interval_seconds=60)
    first, second = await story.channel("first"), await story.channel("second")
    await story.climbs(row, await story.policy((0, first), (300, second), repeat_last=True))
    await story.is_now(row, False, "timeout shop.example")
    await story.run_pass()
    assert await story.notifications() == [("first", "incident.escalated")]
    whys = await story.world.rows("select payload->>'why' from outbox")
    assert whys == [("timeout shop.example",)]
    await story.later(300 * SECOND - SECOND)
    assert len(await story.notifications()) == 1
    await story.later(2 * SECOND)
    assert (await story.notifications())[1:] == [("second", "incident.escalated")]
    await story.later(301 * SECOND)
    assert (await story.notifications())[2:] == [("second", "incident.escalated")]
    async with story.world.pool.transaction("acknowledge") as tx:
        incident = await incidents.lock_open_of_monitor(tx, row.org, row.id)
        assert incident is not None
        await incidents.acknowledge_incident(tx, incident, None, "Mara")
    await story.later(20 * MINUTE)
    assert len(await story.notifications()) == 3
    await story.is_now(row, True)
    await story.run_pass()
    assert sorted((await story.notifications())[3:]) == [
        ("first", "incident.resolved"),
        ("second", "incident.resolved"),
    ]


async def test_a_channel_is_paged_once_for_one_onset(story: Story) -> None:
    row = await story.world.monitor()
    ops = await story.channel("ops", row)
    await story.climbs(row, await story.policy((0, ops), (0, ops)))
    await story.is_now(row, False)
    await story.run_pass()
    assert await story.notifications() == [("ops", "incident.opened")]
    steps = await story.world.rows(
        "select step, paged, unreachable from incident_pages order by id"
    )
    assert steps == [(0, ["ops"], []), (1, ["ops"], []), (2, ["ops"], [])]


async def test_all_escalation_steps_due_since_the_last_pass_are_taken(story: Story) -> None:
    row = await story.world.monitor()
    first, second = await story.channel("first"), await story.channel("second")
    await story.climbs(row, await story.policy((60, first), (120, second)))
    await story.is_now(row, False)
    await story.run_pass()
    story.world.now = Instant(story.world.now + HOUR)
    await story.run_pass()
    assert [name for name, _ in await story.notifications()] == ["first", "second"]
    await story.later(10 * MINUTE)
    assert len(await story.notifications()) == 2


async def test_a_channel_deleted_during_a_step_is_omitted(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = await story.world.monitor()
    ops, going = await story.channel("ops"), await story.channel("going")
    await story.climbs(row, await story.policy((0, ops)))
    async with story.world.pool.transaction("going") as tx:
        gone = await select_channel(tx, going)
        assert gone is not None
        await tx.execute("delete from notification_channels where id = %(id)s", id=gone.id)

    async def a_moment_ago(*given: Any) -> list[int]:
        return [gone.id, *await channels_of_step(*given)]

    monkeypatch.setattr(climb_module, "channels_of_step", a_moment_ago)
    await story.is_now(row, False)
    await story.run_pass()
    assert await story.notifications() == [("ops", "incident.escalated")]
    steps = await story.world.rows("select step, paged, unreachable from incident_pages")
    assert steps == [(1, ["ops"], [])]


async def test_a_schedule_without_participants_pages_no_channel(story: Story) -> None:
    # The escalation reads the schedule after its last shift has ended.
    world = story.world
    async with world.pool.transaction("schedule") as tx:
        key = await tx.value(
            "insert into oncall_schedules (org, uid, project, name, anchor_at, shift_seconds,"
            " created_at, updated_at) values (%(org)s, gen_random_uuid(), %(project)s, 'nobody',"
            " now(), 3600, now(), now()) returning id",
            org=world.org,
            project=world.project,
        )
        target = EscalationTarget(TargetKind.SCHEDULE, key)
        assert await channels_of_step(tx, world.org, [target], world.now) == []


async def test_an_unreachable_step_is_in_the_timeline(story: Story) -> None:
    row = await story.world.monitor()
    off = await story.channel("off")
    await story.climbs(row, await story.policy((0, off)))
    async with story.world.pool.transaction("disable") as tx:
        await edit_channel(tx, story.world.editor, off, None, None, False, story.world.keyring)
    await story.is_now(row, False)
    await story.run_pass()
    assert await story.notifications() == []
    steps = await story.world.rows("select step, paged, unreachable from incident_pages")
    assert steps == [(1, [], ["off"])]


@pytest.mark.parametrize("auto_incident", [True, False])
async def test_deleting_a_down_monitor_ends_its_outage(story: Story, auto_incident: bool) -> None:
    row = await story.world.monitor(auto_incident=auto_incident)
    await story.channel("ops", row)
    await story.is_now(row, False)
    await story.run_pass()
    async with story.world.pool.transaction("delete") as tx:
        await delete_monitor(tx, story.world.editor, row.uid)
    await story.later(MINUTE)
    events = [event for _, event in await story.notifications()]
    if auto_incident:
        assert events == ["incident.opened", "incident.resolved"]
        assert [status for _, status, _ in await story.incidents()] == ["resolved"]
    else:
        assert events == ["monitor.down", "monitor.recovered"]


@pytest.mark.parametrize("at_first", [True, False])
async def test_an_outage_ends_as_it_was_announced_after_edits(story: Story, at_first: bool) -> None:
    row = await story.world.monitor(auto_incident=at_first, interval_seconds=60)
    ops = await story.channel("ops", row)
    await story.is_now(row, False)
    await story.run_pass()
    await story.edit(row, auto_incident=not at_first, name="Renamed", renotify_seconds=60)
    await story.channel("late", row)
    await story.is_now(row, False)
    await story.later(100 * SECOND)
    for enabled in (False, True):
        async with story.world.pool.transaction("switch") as tx:
            await edit_channel(
                tx, story.world.editor, ops, None, None, enabled, story.world.keyring
            )
    await story.is_now(row, True)
    await story.run_pass()
    kind, opened, ended = (
        ("incident", "opened", "resolved") if at_first else ("monitor", "down", "recovered")
    )
    sent = await story.notifications()
    assert sent[0] == ("ops", f"{kind}.{opened}")
    assert sorted(sent[1:-2]) == [(n, f"{kind}.reminder") for n in ("late", "ops")]
    assert sorted(sent[-2:]) == [(n, f"{kind}.{ended}") for n in ("late", "ops")]


async def test_a_suppressed_outage_is_announced_after_its_cause_ends(story: Story) -> None:
    database = await story.world.monitor(interval_seconds=60)
    shop = await story.world.monitor(depends_on=[database.uid], interval_seconds=60)
    await story.channel("ops", shop)
    await story.is_now(database, False)
    await story.is_now(shop, False)
    await story.run_pass()
    assert await story.held() == [None, "dependency"]
    await story.edit(shop, depends_on=[])
    await story.later(6 * SECOND)
    await story.is_now(shop, False)
    await story.later(SECOND)
    assert await story.notifications() == [("ops", "incident.opened")]


async def test_deleting_a_policy_ends_escalation_and_keeps_recovery(
    story: Story,
) -> None:
    row = await story.world.monitor(interval_seconds=60)
    first = await story.channel("first")
    await story.climbs(row, await story.policy((0, first), (60, first), repeat_last=True))
    await story.is_now(row, False)
    await story.run_pass()
    async with story.world.pool.transaction("gone") as tx:
        await tx.execute("update monitors set escalation_policy = null")
        await tx.execute("delete from escalation_policies")
    await story.later(3 * MINUTE)
    assert await story.notifications() == [("first", "incident.escalated")]
    assert await story.world.rows("select escalate_at from incidents") == [(None,)]
    await story.is_now(row, True)
    await story.run_pass()
    assert (await story.notifications())[1:] == [("first", "incident.resolved")]


async def test_an_onset_rechecks_its_dependencies_before_announcing(
    story: Story,
) -> None:
    database = await story.world.monitor(name="database")
    shops = [await story.world.monitor(depends_on=[database.uid]) for _ in range(3)]
    await story.channel("ops", *shops)
    await story.is_now(database, True)
    for shop in shops:
        await story.is_now(shop, True)
    for shop in shops:
        await story.is_now(shop, False)
    await story.run_pass()
    assert await story.held() == ["waiting"] * 3
    assert (await story.jobs(), story.asked) == ([database.id], 1)
    await story.is_now(database, True)
    await story.later(SECOND)
    assert await story.notifications() == [("ops", "incident.opened")] * 3


async def test_a_recheck_ends_after_the_timeout_plus_5_seconds(
    story: Story,
) -> None:
    database = await story.world.monitor(timeout_seconds=10)
    shop = await story.world.monitor(depends_on=[database.uid])
    await story.channel("ops", shop)
    await story.is_now(shop, False)
    await story.run_pass()
    await story.later(14 * SECOND)
    assert await story.notifications() == []
    await story.later(2 * SECOND)
    assert await story.notifications() == [("ops", "incident.opened")]


async def test_dependents_are_announced_only_if_down_after_their_cause(
    story: Story,
) -> None:
    database = await story.world.monitor(name="database", failure_threshold=3)
    middle = await story.world.monitor(depends_on=[database.uid], enabled=True)
    shop = await story.world.monitor(depends_on=[middle.uid])
    lasting = await story.world.monitor(depends_on=[middle.uid])
    await story.channel("ops", shop, lasting)
    for row in (database, middle, shop, lasting):
        await story.is_now(row, True)
    # A failure below the threshold suffices as the cause of dependent outages.
    await story.is_now(database, False)
    await story.is_now(shop, False)
    await story.is_now(lasting, False)
    await story.run_pass()
    assert await story.held() == ["dependency"] * 2
    await story.later(10 * SECOND)
    await story.is_now(database, True)
    await story.later(6 * SECOND)
    assert await story.held() == ["rechecking"] * 2
    assert await story.jobs() == [shop.id, lasting.id]
    await story.is_now(shop, True)
    await story.is_now(lasting, False)
    await story.later(SECOND)
    assert await story.notifications() == [("ops", "incident.opened")]
    titles = [title for title, _, _ in await story.incidents()]
    assert titles == [f"{lasting.name} is down"]


async def test_maintenance_of_a_dependency_suppresses_and_a_pause_does_not(
    story: Story,
) -> None:
    database = await story.world.monitor()
    shop = await story.world.monitor(depends_on=[database.uid])
    await story.channel("ops", shop)
    await story.is_now(database, True)
    await story.maintain(database, HOUR)
    await story.is_now(shop, False)
    await story.later(30 * SECOND)
    assert await story.held() == ["dependency"]
    async with story.world.pool.transaction("annul") as tx:
        await tx.execute("delete from maintenances")
    await story.edit(database, enabled=False)
    await story.later(6 * SECOND)
    await story.is_now(shop, False)
    await story.later(SECOND)
    assert await story.notifications() == [("ops", "incident.opened")]


async def test_a_composite_dependency_is_rechecked_through_its_children(story: Story) -> None:
    leaves = [await story.world.monitor() for _ in range(2)]
    config = {"children": [str(leaf.uid) for leaf in leaves], "mode": "any"}
    made = await story.world.monitor(type="composite", target="", config=config)
    shop = await story.world.monitor(depends_on=[made.uid])
    await story.channel("ops", shop)
    for row in (*leaves, made, shop):
        await story.is_now(row, True)
    async with story.world.pool.transaction("settled") as tx:
        await tx.execute("delete from composite_wakeups")
    await story.is_now(shop, False)
    await story.run_pass()
    assert await story.jobs() == [leaf.id for leaf in leaves]
    # One of two children is down: the `any` composite is up and is no cause.
    await story.is_now(leaves[0], False)
    await story.is_now(leaves[1], True)
    await story.run_pass()
    assert (await story.held())[-1] == "waiting"
    async with story.world.pool.transaction("settled") as tx:
        await tx.execute("delete from composite_wakeups")
    await story.later(SECOND)
    assert ("ops", "incident.opened") in await story.notifications()


async def test_a_composite_that_is_scheduled_later_is_not_awaited(story: Story) -> None:
    leaf = await story.world.monitor()
    config = {"children": [str(leaf.uid)], "mode": "all"}
    made = await story.world.monitor(type="composite", target="", config=config)
    shop = await story.world.monitor(depends_on=[made.uid])
    await story.channel("ops", shop)
    await story.is_now(shop, False)
    await story.is_now(leaf, True)
    async with story.world.pool.transaction("later") as tx:
        await tx.execute(
            "update composite_wakeups set due_at = at(%(at)s)", at=story.world.now + MINUTE
        )
    await story.run_pass()
    assert await story.notifications() == [("ops", "incident.opened")]


async def test_one_cause_of_two_hundred_outages_is_paged_once(story: Story) -> None:
    chance = random.Random(3)
    database = await story.world.monitor(name="database")
    shops = [
        await story.world.monitor(depends_on=[database.uid], interval_seconds=60)
        for _ in range(200)
    ]
    await story.channel("ops", database, *shops)
    everybody = [database, *shops]
    for row in everybody:
        await story.is_now(row, True)
    order = list(shops)
    chance.shuffle(order)
    # Some shops are checked before the database, and some after it.
    for row in order[:80]:
        await story.is_now(row, False)
    await story.run_pass()
    assert await story.jobs() == [database.id]
    await story.is_now(database, False)
    await story.later(SECOND)
    for row in order[80:]:
        await story.is_now(row, False)
        if chance.random() < 0.05:
            await story.run_pass()
    await story.later(20 * SECOND)
    assert [title for title, _, _ in await story.incidents()] == ["database is down"]
    assert await story.notifications() == [("ops", "incident.opened")]
    await story.is_now(database, True)
    await story.later(6 * SECOND)
    # All shops are checked again; these five have a failure of their own.
    assert len(await story.jobs()) >= 200
    for row in shops[5:]:
        await story.is_now(row, True)
    for row in shops[:5]:
        await story.is_now(row, False)
    await story.later(2 * SECOND)
    events = [event for _, event in await story.notifications()]
    assert sorted(events) == ["incident.opened"] * 6 + ["incident.resolved"]


async def test_an_error_of_one_monitor_does_not_affect_others(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [await story.world.monitor() for _ in range(9)]
    await story.channel("ops", *rows)
    for row in rows:
        await story.is_now(row, False)
    bad = (rows[4].org, rows[4].id)

    async def refusing(
        tx: Tx, keys: Sequence[MonitorKey], *, is_steady: bool = True
    ) -> OutageCounts:
        done = await process_outages(tx, keys, is_steady=is_steady)
        if bad in keys:
            raise Rejected("no")
        return done

    monkeypatch.setattr(watcher_module, "process_outages", refusing)
    await story.run_pass()
    assert len(await story.incidents()) == 8
    monkeypatch.setattr(watcher_module, "process_outages", process_outages)
    await story.later(watcher_module.PUT_OFF_US + SECOND)
    assert len(await story.incidents()) == 9


async def test_several_processors_announce_each_outage_once(story: Story) -> None:
    rows = [await story.world.monitor() for _ in range(40)]
    await story.channel("ops", *rows)
    others = [Story(story.world) for _ in range(3)]
    for up in (False, True, False):
        for row in rows:
            await story.is_now(row, up)
        async with trio.open_nursery() as nursery:
            for one in (story, *others):
                nursery.start_soon(one.run_pass)
    events = [event for _, event in await story.notifications()]
    assert events.count("incident.opened") == 80
    assert events.count("incident.resolved") == 40


async def test_pages_and_webhooks_have_the_failed_condition_and_subscribers_do_not(
    story: Story,
) -> None:
    row = await story.world.monitor(name="Shop", conditions=["[STATUS] == 200"])
    await story.channel("ops", row)
    await OutboxWorld(story.world).webhook()
    await story.is_now(
        row, False, "condition_failed shop.example", condition="[STATUS] == 200", measured="503"
    )
    # A later failure does not replace the first one, and neither does an edit.
    await story.is_now(row, False, "timeout shop.example")
    await story.edit(row, conditions=["[STATUS] == 201"])
    await story.run_pass()
    said = "[STATUS] == 200 (503)"
    told = await story.world.rows(
        "select o.event, d.channel is not null, o.payload->'conditions' from outbox o"
        " join destinations d on d.org = o.org and d.id = o.destination order by o.id"
    )
    assert sorted(told) == [
        ("incident.opened", False, [said]),
        ("incident.opened", True, [said]),
    ]
    pages = await story.world.rows("select payload->>'why' from outbox where payload ? 'why'")
    assert pages == [("condition_failed shop.example",)]
    public = await story.world.rows("select title, body from incidents i, incident_updates u")
    assert "503" not in str(public)
    await story.is_now(row, True)
    await story.run_pass()
    last = await story.world.rows("select payload::text from outbox order by id desc limit 1")
    assert said not in last[0][0]
