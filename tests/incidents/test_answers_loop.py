"""Snooze and reassign: when people are paged, what the timeline says, and who stays recorded."""

import random
from typing import Any
from uuid import UUID, uuid4

import pytest

from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.incidents.rules.answer_link import AnswerAction
from leadline.storage.incidents.transactions.answer_incident import IncidentAnswer, answer_incident
from leadline.storage.oncall.rules.escalation import TargetKind
from tests.oncall.test_ack_timeout_loop import Watch
from tests.oncall.test_people_on_call_loop import Team
from tests.support.run import effort
from tests.support.worlds.world import World


class Desk(Watch, Team):
    """An incident whose policy has three steps, at 0, 5 and 60 minutes, and its answers."""

    async def answers(self, incident: UUID, action: AnswerAction, **given: Any) -> None:
        async with self.world.pool.transaction("answer") as tx:
            answer = IncidentAnswer(action=action, **given)
            await answer_incident(tx, self.world.editor, incident, answer)

    async def snoozes(self, incident: UUID, minutes: int) -> None:
        await self.answers(incident, AnswerAction.SNOOZE, minutes=minutes)

    async def reassigns(self, incident: UUID, kind: TargetKind, uid: UUID) -> None:
        await self.answers(incident, AnswerAction.REASSIGN, assignee=(kind, uid))

    async def audited(self) -> list[Any]:
        rows = await self.world.rows(
            "select action, target from audit_entries where action in ('incident.snooze',"
            " 'incident.reassign') order by id"
        )
        return list(rows)


@pytest.fixture
def desk(world: World) -> Desk:
    return Desk(world)


async def test_a_snooze_stops_the_escalation_and_then_pages_the_last_step_again(
    desk: Desk,
) -> None:
    incident = await desk.begin()
    await desk.later(MINUTE)
    await desk.snoozes(incident, 20)
    await desk.later(19 * MINUTE)
    assert await desk.paged() == ["one"]
    await desk.later(MINUTE + 2 * SECOND)
    assert await desk.paged() == ["one", "one"]
    label = desk.world.editor.label
    assert await desk.notes() == [
        "Snoozed for 20 min. The escalation stops until then.",
        f"The snooze of {label} ended. The escalation continues.",
    ]
    # The second step keeps its distance of 5 minutes.
    await desk.later(4 * MINUTE + 50 * SECOND)
    assert await desk.paged() == ["one", "one"]
    await desk.later(10 * SECOND)
    assert await desk.paged() == ["one", "one", "two"]
    assert await desk.audited() == [("incident.snooze", f"incident:{incident} minutes=20")]
    # A snooze is no acknowledgement.
    assert await desk.first() == (None, "", False)


async def test_after_a_snooze_of_an_acknowledged_incident_the_first_stays(desk: Desk) -> None:
    incident = await desk.begin(timeout=0)
    await desk.acknowledges(incident)
    at, label, _ = await desk.first()
    await desk.snoozes(incident, 10)
    await desk.later(10 * MINUTE + 2 * SECOND)
    assert await desk.paged() == ["one", "one"]
    assert await desk.first() == (at, label, True)
    await desk.snoozes(incident, 10)
    await desk.acknowledges(incident)
    await desk.later(20 * MINUTE)
    assert await desk.paged() == ["one", "one"], "an acknowledgement ends the snooze"


async def test_a_resolution_ends_a_snooze_without_a_page(desk: Desk) -> None:
    incident = await desk.begin()
    await desk.snoozes(incident, 10)
    await desk.answers(incident, AnswerAction.RESOLVE)
    await desk.later(15 * MINUTE)
    assert "one" in await desk.paged()
    assert await desk.world.rows("select count(*) from incident_pages") == [(1,)]
    for action in (AnswerAction.SNOOZE, AnswerAction.REASSIGN):
        with pytest.raises(Refused):
            await desk.answers(incident, action, minutes=5)


@pytest.mark.parametrize("minutes", [0, 1_441])
async def test_a_snooze_outside_the_bounds_is_refused(desk: Desk, minutes: int) -> None:
    incident = await desk.begin()
    with pytest.raises(Refused) as refused:
        await desk.snoozes(incident, minutes)
    assert refused.value.field == "minutes"


async def test_a_person_is_paged_at_once_and_the_policy_continues_later(desk: Desk) -> None:
    incident = await desk.begin()
    await desk.acknowledges(incident)
    first = await desk.first()
    user, uid = await desk.person("Ada")
    await desk.method(user, "email", "work")
    await desk.reassigns(incident, TargetKind.PERSON, uid)
    assert await desk.paged() == ["one", "Ada (email: work)"]
    assert (await desk.timeline())[-1] == (-1, ["Ada: email work"], [])
    assert (await desk.first())[:2] == first[:2], "the first acknowledger stays"
    await desk.later(4 * MINUTE + 50 * SECOND)
    assert len(await desk.paged()) == 2
    await desk.later(12 * SECOND)
    assert await desk.paged() == ["one", "Ada (email: work)", "two"]
    assert await desk.audited() == [("incident.reassign", f"incident:{incident} person:{uid}")]
    rows = await desk.world.rows("select assigned_kind, assigned_label from incidents")
    assert rows == [("person", "Ada")]


async def test_a_snooze_of_the_assigned_person_ends_with_a_page_to_that_person(desk: Desk) -> None:
    incident = await desk.begin()
    user, uid = await desk.person("Bob")
    await desk.method(user, "email", "work")
    await desk.reassigns(incident, TargetKind.PERSON, uid)
    await desk.snoozes(incident, 20)
    await desk.later(20 * MINUTE + 2 * SECOND)
    bob = "Bob (email: work)"
    assert await desk.paged() == ["one", bob, bob]
    assert (await desk.timeline())[-1] == (-1, ["Bob: email work"], [])
    label = desk.world.editor.label
    assert (await desk.notes())[-1] == f"The snooze of {label} ended. Bob is notified again."
    # The policy continues as after the reassignment.
    await desk.later(4 * MINUTE + 50 * SECOND)
    assert len(await desk.paged()) == 3
    await desk.later(12 * SECOND)
    assert await desk.paged() == ["one", bob, bob, "two"]


async def test_the_assigned_person_is_paged_after_a_snooze_without_a_policy(desk: Desk) -> None:
    incident = await desk.begin()
    async with desk.world.pool.transaction("forget") as tx:
        await tx.execute("update incidents set escalation_policy = null, escalate_at = null")
    user, uid = await desk.person("Bob")
    await desk.method(user, "email", "work")
    await desk.reassigns(incident, TargetKind.PERSON, uid)
    await desk.snoozes(incident, 20)
    await desk.later(60 * MINUTE)
    assert await desk.paged() == ["one", "Bob (email: work)", "Bob (email: work)"]


async def test_without_the_assigned_person_the_policy_continues_after_a_snooze(desk: Desk) -> None:
    incident = await desk.begin()
    user, uid = await desk.person("Bob")
    await desk.method(user, "email", "work")
    await desk.reassigns(incident, TargetKind.PERSON, uid)
    await desk.snoozes(incident, 20)
    async with desk.world.pool.transaction("leave") as tx:
        await tx.execute("update contact_methods set verified_at = null")
        await tx.execute("update notification_channels set enabled = false where name like 'Bob%%'")
    await desk.later(20 * MINUTE + 2 * SECOND)
    assert (await desk.paged())[-1] == "one"


async def test_another_policy_starts_at_its_first_step(desk: Desk) -> None:
    incident = await desk.begin()
    late = await desk.channel("late")
    key = await desk.policy((0, late))
    ((uid,),) = await desk.world.rows(
        "select uid from escalation_policies where id = %(id)s", id=key
    )
    await desk.snoozes(incident, 60)
    await desk.reassigns(incident, TargetKind.POLICY, uid)
    assert await desk.paged() == ["one", "late"]
    await desk.later(10 * MINUTE)
    assert await desk.paged() == ["one", "late"]


async def test_a_person_who_cannot_be_paged_is_refused(desk: Desk) -> None:
    incident = await desk.begin()
    _, without = await desk.person("Bob")
    _, stranger = await desk.person("Eve", member=False)
    for uid in (without, stranger, uuid4()):
        with pytest.raises(Refused) as refused:
            await desk.reassigns(incident, TargetKind.PERSON, uid)
        assert refused.value.field == "id"
    assert await desk.paged() == ["one"]
    assert await desk.notes() == []
    await desk.later(5 * MINUTE)
    assert await desk.paged() == ["one", "two"], "a refusal changes nothing"


class Model:
    """The pages of a policy with steps at 0, 5 and 60 minutes, by a walk minute by minute."""

    def __init__(self) -> None:
        self.now = 0
        self.pages = [("one", 0)]
        self.step = 1
        self.base = 0
        self.snoozed_until: int | None = None
        self.is_acknowledged = False
        self.first: int | None = None

    def acknowledge(self) -> None:
        if self.is_acknowledged:
            return
        self.is_acknowledged, self.snoozed_until = True, None
        self.first = self.now if self.first is None else self.first

    def snooze(self, minutes: int) -> None:
        self.snoozed_until = self.now + minutes

    def tick(self) -> None:
        self.now += 1
        after = (0, 5, 60)
        if self.snoozed_until is not None:
            if self.now < self.snoozed_until:
                return
            self.snoozed_until, self.is_acknowledged = None, False
            self.step -= 1
            self.base = self.now - after[self.step]
        if self.is_acknowledged:
            return
        while self.step < len(after) and self.base + after[self.step] <= self.now:
            self.pages.append((("one", "two", "three")[self.step], self.now))
            self.step += 1


@pytest.mark.parametrize("seed", effort.varied(range(3), range(30)))
async def test_random_answers_page_as_a_walk_by_minutes(desk: Desk, seed: int) -> None:
    chance, model = random.Random(seed), Model()
    incident = await desk.begin(timeout=0)
    start = desk.world.now
    for _ in range(12):
        match chance.choice(["snooze", "acknowledge", "wait", "wait"]):
            case "snooze":
                minutes = chance.randint(1, 15)
                model.snooze(minutes)
                await desk.snoozes(incident, minutes)
            case "acknowledge":
                model.acknowledge()
                await desk.acknowledges(incident)
            case _:
                for _ in range(chance.randint(1, 20)):
                    model.tick()
                    desk.world.now = Instant(start + model.now * MINUTE)
                    await desk.run_pass()
    rows = await desk.world.rows("select paged[1], at from incident_pages order by id")
    assert [(name, (at - start) // MINUTE) for name, at in rows] == model.pages
    ((at, _, _),) = await desk.world.rows(
        "select acknowledged_at, acknowledged_label, 1 from incidents"
    )
    assert (None if at is None else (at - start) // MINUTE) == model.first
