"""People in escalation policies: pages follow their personal rules, and an acknowledgement cancels
what is not due yet."""

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from leadline.storage.accounts.rules.access import CredentialKind, Role
from leadline.storage.accounts.tables import users
from leadline.storage.accounts.transactions.edit_members import remove_member
from leadline.storage.core.instant import MINUTE, Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.incidents.rules.incident import IncidentStatus
from leadline.storage.incidents.transactions.edit_incidents import acknowledge, add_update
from leadline.storage.notifications.rules.notification import Topic
from leadline.storage.notifications.rules.personal_rules import PersonalRule, QuietHours, Urgency
from leadline.storage.notifications.tables import contact_methods
from leadline.storage.notifications.transactions.enqueue_notifications import (
    enqueue_pages,
    enqueue_to_notified_channels,
)
from leadline.storage.oncall.rules.escalation import TargetKind
from leadline.storage.oncall.transactions.edit_escalation_policies import (
    PolicyDraft,
    StepDraft,
    create_policy,
)
from leadline.storage.oncall.transactions.edit_schedules import ScheduleDraft, create_schedule
from tests.alerting.test_alert_processor_loop import Story
from tests.support.worlds.outbox_world import a_page
from tests.support.worlds.world import World


class Team(Story):
    """A story with people of the project."""

    async def person(self, name: str, *, member: bool = True) -> tuple[int, UUID]:
        uid = uuid7()
        async with self.world.pool.transaction("person") as tx:
            key = await users.insert_user(tx, uid, f"{name}@example.com", name, None, admin=False)
            assert key is not None
            if member:
                project = self.world.project
                await users.insert_membership(
                    tx, self.world.org, uuid7(), key, project, Role.EDITOR
                )
        return key, uid

    async def method(self, user: int, kind: str, label: str, *, verified: bool = True) -> int:
        async with self.world.pool.transaction("method") as tx:
            values = {"uid": uuid7(), "user": user, "kind": kind, "label": label, "sealed": None}
            config = json.dumps({"url": "http://127.0.0.1:1/"})
            await contact_methods.insert_method(tx, {**values, "config": config})
            row = (await contact_methods.select_methods(tx, user))[-1]
            if verified:
                await contact_methods.verify_method(tx, row.id)
            await contact_methods.refresh_channels(tx, user)
        return row.id

    async def rules(
        self, user: int, quiet: QuietHours | None = None, **rules: list[PersonalRule]
    ) -> None:
        async with self.world.pool.transaction("rules") as tx:
            given = {Urgency(name): whole for name, whole in rules.items()}
            await contact_methods.replace_rules(tx, user, given)
            await contact_methods.put_quiet(tx, user, quiet)

    async def policy_of(self, *steps: tuple[int, TargetKind, UUID]) -> int:
        draft = PolicyDraft("night", [StepDraft(s, [(kind, str(uid))]) for s, kind, uid in steps])
        async with self.world.pool.transaction("policy") as tx:
            row = await create_policy(tx, self.world.editor, self.world.project_uid, draft)
        return row.id

    async def messages(self) -> list[tuple[str, str, int]]:
        """Returns (channel, event, minutes until it is due) in the order of creation."""
        rows = await self.world.rows(
            "select c.name, o.event, o.due_at from outbox o"
            " join destinations d on d.org = o.org and d.id = o.destination"
            " join notification_channels c on c.org = d.org and c.id = d.channel order by o.id"
        )
        return [(name, event, (at - self.world.now) // MINUTE) for name, event, at in rows]

    async def timeline(self) -> list[Any]:
        return await self.world.rows(
            "select step, paged, unreachable from incident_pages order by id"
        )


@pytest.fixture
def team(world: World) -> Team:
    return Team(world)


async def page(team: Team, user: UUID, *more: UUID) -> UUID:
    """Opens an incident that pages the people, each by a step. Returns the incident."""
    row = await team.world.monitor(name="Shop")
    steps = [(5 * 60 * n, TargetKind.PERSON, uid) for n, uid in enumerate((user, *more))]
    await team.climbs(row, await team.policy_of(*steps))
    await team.is_now(row, False)
    await team.run_pass()
    ((incident,),) = await team.world.rows("select uid from incidents")
    assert isinstance(incident, UUID)
    return incident


async def test_a_page_follows_the_rules_and_the_timeline_names_the_methods(team: Team) -> None:
    user, uid = await team.person("Ada")
    mail = await team.method(user, "email", "work")
    call = await team.method(user, "voice", "mobile")
    await team.method(user, "sms", "old", verified=False)
    await team.rules(user, page=[PersonalRule(call, 600), PersonalRule(mail, 0)])
    await page(team, uid)
    assert await team.messages() == [
        ("Ada (email: work)", "incident.escalated", 0),
        ("Ada (voice: mobile)", "incident.escalated", 10),
    ]
    (entry,) = await team.timeline()
    assert entry == (1, ["Ada: email work, voice mobile after 10 min"], [])


async def test_an_acknowledgement_cancels_what_is_not_due_yet(team: Team) -> None:
    user, uid = await team.person("Ada")
    mail, call = await team.method(user, "email", "work"), await team.method(user, "voice", "m")
    await team.rules(user, page=[PersonalRule(mail, 0), PersonalRule(call, 600)])
    incident = await page(team, uid)
    async with team.world.pool.transaction("acknowledge") as tx:
        await acknowledge(tx, team.world.editor, incident)
    assert [name for name, _, _ in await team.messages()] == ["Ada (email: work)"]
    notified = await team.world.rows("select count(*) from notification_threads")
    assert notified == [(1,)]


async def test_a_recovery_reaches_only_the_methods_that_were_notified(team: Team) -> None:
    user, uid = await team.person("Ada")
    mail, call = await team.method(user, "email", "work"), await team.method(user, "voice", "m")
    await team.rules(user, page=[PersonalRule(mail, 0), PersonalRule(call, 600)])
    row = await team.world.monitor(name="Shop")
    await team.climbs(row, await team.policy_of((0, TargetKind.PERSON, uid)))
    await team.is_now(row, False)
    await team.run_pass()
    await team.is_now(row, True)
    await team.run_pass()
    assert [(name, event) for name, event, _ in await team.messages()] == [
        ("Ada (email: work)", "incident.escalated"),
        ("Ada (email: work)", "incident.resolved"),
    ]


async def test_a_second_pass_pages_nobody_twice(team: Team) -> None:
    (one, first), (two, second) = await team.person("Ada"), await team.person("Grace")
    await team.method(one, "email", "work")
    await team.method(two, "email", "work")
    await page(team, first, second)
    for _ in range(3):
        await team.run_pass()
    assert len(await team.messages()) == 1
    await team.later(5 * MINUTE)
    assert [name for name, _, _ in await team.messages()] == [
        "Ada (email: work)",
        "Grace (email: work)",
    ]


async def test_a_person_without_a_usable_method_or_membership_is_unreachable(team: Team) -> None:
    user, uid = await team.person("Ada")
    await team.method(user, "email", "work", verified=False)
    other, gone = await team.person("Grace")
    await team.method(other, "email", "work")
    row = await team.world.monitor(name="Shop")
    await team.climbs(
        row,
        await team.policy_of((0, TargetKind.PERSON, uid), (60, TargetKind.PERSON, gone)),
    )
    async with team.world.pool.transaction("leave") as tx:
        await tx.execute("delete from memberships where user_id = %(user)s", user=other)
    await team.is_now(row, False)
    await team.later(2 * MINUTE)
    assert await team.messages() == []
    assert await team.timeline() == [(1, [], ["Ada"]), (2, [], ["Grace"])]


async def test_a_former_member_gets_no_later_message(team: Team) -> None:
    user, uid = await team.person("Ada")
    mail, call = await team.method(user, "email", "work"), await team.method(user, "voice", "m")
    await team.rules(user, page=[PersonalRule(mail, 0), PersonalRule(call, 600)])
    incident = await page(team, uid)
    world = team.world
    async with world.pool.transaction("leave") as tx:
        await tx.execute("delete from escalation_targets")
    async with world.pool.transaction("who") as tx:
        row = (await users.select_memberships(tx, user))[0]
        organization = await tx.value("select uid from organizations where id = %(o)s", o=row.org)
    admin = replace(world.editor, kind=CredentialKind.SESSION, is_global_admin=True)
    async with world.pool.transaction("remove") as tx:
        await remove_member(tx, admin, organization, row.uid)
    assert await team.messages() == []
    async with world.pool.transaction("resolve") as tx:
        await add_update(tx, world.editor, incident, IncidentStatus.RESOLVED, "", public=None)
    assert await team.messages() == []


async def test_a_recovery_skips_a_person_who_left_during_the_page(team: Team) -> None:
    user, uid = await team.person("Ada")
    await team.method(user, "email", "work")
    incident = await page(team, uid)
    world = team.world
    async with world.pool.transaction("leave") as tx:
        await tx.execute("delete from memberships where user_id = %(user)s", user=user)
    async with world.pool.transaction("resolve") as tx:
        await add_update(tx, world.editor, incident, IncidentStatus.RESOLVED, "", public=None)
    assert [event for _, event, _ in await team.messages()] == ["incident.escalated"]


async def test_a_schedule_pages_the_person_on_call_once_with_a_channel(team: Team) -> None:
    user, uid = await team.person("Ada")
    await team.method(user, "email", "work")
    draft = ScheduleDraft("first", 3_600, team.world.now, [str(uid)])
    async with team.world.pool.transaction("schedule") as tx:
        schedule = await create_schedule(tx, team.world.editor, team.world.project_uid, draft)
    ops = await team.channel("ops")
    targets = [
        (TargetKind.SCHEDULE, str(schedule.uid)),
        (TargetKind.PERSON, str(uid)),
        (TargetKind.CHANNEL, str(ops)),
    ]
    async with team.world.pool.transaction("policy") as tx:
        policy = await create_policy(
            tx,
            team.world.editor,
            team.world.project_uid,
            PolicyDraft("night", [StepDraft(0, targets)]),
        )
    row = await team.world.monitor(name="Shop")
    await team.climbs(row, policy.id)
    await team.is_now(row, False)
    await team.run_pass()
    assert sorted(name for name, _, _ in await team.messages()) == ["Ada (email: work)", "ops"]
    assert await team.timeline() == [(1, ["Ada: email work", "ops"], [])]


async def test_tickets_wait_for_quiet_hours_and_pages_do_not(team: Team) -> None:
    user, uid = await team.person("Ada")
    await team.method(user, "email", "work")
    await team.policy_of((0, TargetKind.PERSON, uid))
    minute = team.world.now // MINUTE % 1_440
    quiet = QuietHours((minute - 30) % 1_440, (minute + 90) % 1_440, "UTC")
    await team.rules(user, quiet)
    ((channel,),) = await team.world.rows(
        "select id from notification_channels where person is not null and contact_method is null"
    )
    world = team.world
    ticket, urgent = uuid7(), uuid7()

    async def send(thread: UUID, severity: str) -> None:
        async with world.pool.transaction("page") as tx:
            await enqueue_pages(
                tx,
                world.org,
                world.project,
                thread,
                thread,
                Topic.MONITOR,
                [channel],
                a_page(severity=severity),
            )

    await send(urgent, "critical")
    await send(ticket, "minor")
    rows = await world.rows("select thread, due_at from outbox order by id")
    end = Instant((world.now // MINUTE + 90) * MINUTE)
    assert rows == [(urgent, world.now), (ticket, end)]
    async with world.pool.transaction("end") as tx:
        calm = a_page(severity="minor", status="recovered")
        args = (world.org, world.project, ticket, ticket, Topic.MONITOR)
        assert await enqueue_to_notified_channels(tx, *args, calm) == []
    assert await world.rows("select thread from outbox") == [(urgent,)]


async def test_only_members_can_be_named(team: Team) -> None:
    _, uid = await team.person("Ada", member=False)
    with pytest.raises(Refused) as refused:
        await team.policy_of((0, TargetKind.PERSON, uid))
    assert refused.value.field == "steps[0].targets[0].id"
    assert await team.world.rows("select count(*) from notification_channels") == [(0,)]


async def test_the_steps_of_a_named_policy_follow_from_its_step(team: Team) -> None:
    user, uid = await team.person("Ada")
    await team.method(user, "email", "work")
    first, second = await team.channel("first"), await team.channel("second")
    world = team.world
    steps = [
        StepDraft(0, [(TargetKind.CHANNEL, str(second))]),
        StepDraft(300, [(TargetKind.PERSON, str(uid))]),
    ]
    async with world.pool.transaction("inner") as tx:
        inner = await create_policy(tx, world.editor, world.project_uid, PolicyDraft("in", steps))
    steps = [
        StepDraft(0, [(TargetKind.CHANNEL, str(first))]),
        StepDraft(60, [(TargetKind.POLICY, str(inner.uid))]),
    ]
    async with world.pool.transaction("outer") as tx:
        outer = await create_policy(tx, world.editor, world.project_uid, PolicyDraft("out", steps))
    row = await world.monitor(name="Shop")
    await team.climbs(row, outer.id)
    await team.is_now(row, False)
    await team.run_pass()
    for minutes, name in ((0, "first"), (1, "second"), (5, "Ada (email: work)")):
        await team.later(minutes * MINUTE)
        assert (await team.messages())[-1][0] == name
    assert [step for step, _, _ in await team.timeline()] == [1, 2, 3]
