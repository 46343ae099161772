"""Answers from messages: links that are signed, used once, and bound to the person's rights."""

from typing import Any
from uuid import UUID, uuid4

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.accounts.rules.access import Role
from leadline.storage.core.instant import Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.engine.keyring import Keyring
from leadline.storage.incidents.rules.answer_link import (
    LINK_LASTS_US,
    AnswerAction,
    LinkState,
    link_state,
    possible_answers,
)
from leadline.storage.incidents.transactions.answer_incident import IncidentAnswer
from leadline.storage.incidents.transactions.answer_message import (
    answer_message,
    answer_token,
    event_of,
)

from ..oncall.test_people_on_call_loop import Team, page

__all__ = ["team"]
KEYS = Keyring(b"k" * 32)


@pytest.fixture
def team(world: Any) -> Team:
    return Team(world)


@given(st.uuids(), st.data())
def test_only_the_installation_makes_a_token(event: UUID, data: st.DataObject) -> None:
    token = answer_token(event, KEYS)
    assert event_of(token, KEYS) == event
    assert event_of(token, Keyring(b"n" * 32, (b"k" * 32,))) == event, "a rotated key"
    assert event_of(token, Keyring(b"n" * 32)) is None
    place = data.draw(st.integers(0, len(token) - 1))
    other = data.draw(st.sampled_from("ABCxyz-_0"))
    changed = token[:place] + other + token[place + 1 :]
    assert event_of(changed, KEYS) in (None, event)
    assert answer_token(event, Keyring(None)) == ""


@given(st.text(max_size=300))
def test_a_text_that_is_no_token_is_refused(text: str) -> None:
    assert event_of(text, KEYS) is None


@given(st.integers(0, 2 * LINK_LASTS_US), st.booleans())
def test_a_link_ends_by_use_or_time(age: int, used: bool) -> None:
    now = Instant(10 * LINK_LASTS_US)
    found = link_state(Instant(now - age), now if used else None, now)
    expected = LinkState.OPEN if age < LINK_LASTS_US else LinkState.EXPIRED
    assert found is (LinkState.USED if used else expected)


def test_the_possible_answers_have_an_effect() -> None:
    assert len(possible_answers(is_resolved=False, is_acknowledged=False)) == 5
    assert possible_answers(is_resolved=True, is_acknowledged=False) == [AnswerAction.NOTE]


async def paged(team: Team, role: Role = Role.EDITOR) -> tuple[UUID, UUID, int]:
    """Pages a person. Returns the message, the incident and the person."""
    user, uid = await team.person("Ada")
    await team.method(user, "email", "work")
    async with team.world.pool.transaction("role") as tx:
        given_ = {"role": role.value, "user": user}
        await tx.execute(
            "update memberships set role = %(role)s::role where user_id = %(user)s", **given_
        )
    incident = await page(team, uid)
    ((event,),) = await team.world.rows("select uid from outbox where event like 'incident.esc%%'")
    return event, incident, user


async def answer(team: Team, event: UUID, action: AnswerAction, body: str = "") -> None:
    async with team.world.pool.transaction("answer") as tx:
        await answer_message(tx, event, IncidentAnswer(action=action, body=body, minutes=30))


async def test_a_person_acknowledges_once_in_the_own_name(team: Team) -> None:
    event, incident, _ = await paged(team)
    await answer(team, event, AnswerAction.ACKNOWLEDGE)
    rows = await team.world.rows(
        "select i.acknowledged_label, u.email, i.escalate_at from incidents i"
        " join users u on u.id = i.acknowledged_by"
    )
    assert rows == [("Ada", "Ada@example.com", None)]
    for action in AnswerAction:
        with pytest.raises(Refused) as refused:
            await answer(team, event, action, "again")
        assert refused.value.code == "link_used"
    audited = await team.world.rows(
        "select action, target from audit_entries where action like 'incident.a%%' order by id"
    )
    assert audited == [
        ("incident.acknowledge", f"incident:{incident}"),
        ("incident.answer", f"incident:{incident} acknowledge by=email via=link"),
    ]


async def test_a_resolution_and_a_note_are_entries_of_the_person_and_not_public(
    team: Team,
) -> None:
    event, _, _ = await paged(team)
    await answer(team, event, AnswerAction.RESOLVE, "restarted it")
    rows = await team.world.rows(
        "select status, body, public, author_label from incident_updates order by seq desc limit 1"
    )
    assert rows == [("resolved", "restarted it", False, "Ada")]


async def test_a_refused_answer_leaves_the_link_open(team: Team) -> None:
    event, _, _ = await paged(team)
    with pytest.raises(Refused) as refused:
        await answer(team, event, AnswerAction.NOTE)
    assert refused.value.field == "body"
    await answer(team, event, AnswerAction.NOTE, "I look at it")


@pytest.mark.parametrize("change", ["viewer", "left", "disabled", "deleted"])
async def test_the_rights_at_the_time_of_the_answer_count(team: Team, change: str) -> None:
    event, _, user = await paged(team, Role.VIEWER if change == "viewer" else Role.EDITOR)
    statements = {
        "viewer": "select 1",
        "left": "delete from memberships where user_id = %(user)s",
        "disabled": "update contact_methods set enabled = false where user_id = %(user)s",
        "deleted": "delete from contact_methods where user_id = %(user)s",
    }
    async with team.world.pool.transaction("change") as tx:
        if change != "viewer":
            await tx.execute(statements[change], user=user)
    with pytest.raises(Refused) as refused:
        await answer(team, event, AnswerAction.ACKNOWLEDGE)
    assert refused.value.code == ("forbidden" if change == "viewer" else "not_found")
    assert await team.world.rows("select acknowledged_at from incidents") == [(None,)]


async def test_a_link_expires(team: Team) -> None:
    event, _, _ = await paged(team)
    team.world.now = Instant(team.world.now + LINK_LASTS_US)
    with pytest.raises(Refused) as refused:
        await answer(team, event, AnswerAction.ACKNOWLEDGE)
    assert refused.value.code == "link_expired"
    with pytest.raises(Refused):
        await answer(team, uuid4(), AnswerAction.ACKNOWLEDGE)


async def test_of_two_answers_at_once_one_counts(team: Team) -> None:
    event, _, _ = await paged(team)
    refused: list[str] = []

    async def one(text: str) -> None:
        try:
            await answer(team, event, AnswerAction.NOTE, text)
        except Refused as caught:
            refused.append(caught.code)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one, "first")
        nursery.start_soon(one, "second")
    assert refused == ["link_used"]
    notes = await team.world.rows("select count(*) from incident_updates where status is null")
    assert notes == [(1,)]
