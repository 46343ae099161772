"""Incidents, compared with a model of the contract: they move forward only, and each update is
numbered, enqueued and audited.

Webhooks get every update in order; the recipients of a page get the resolution."""

from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import msgspec
import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from uuid_utils.compat import uuid7

from leadline.probes.senders.webhook import secret_from
from leadline.storage.accounts.rules.access import CredentialKind, Membership, Principal, Role
from leadline.storage.accounts.tables.tenant_deletion import lock_project
from leadline.storage.accounts.tables.users import insert_user
from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.engine.pools import Tx
from leadline.storage.incidents.queries.incident_updates import select_updates
from leadline.storage.incidents.queries.incidents import select_incident
from leadline.storage.incidents.rows import IncidentRow, UpdateRow
from leadline.storage.incidents.rules.incident import (
    BODY_LONGEST,
    UPDATES_MOST,
    IncidentImpact,
    IncidentSource,
    IncidentStatus,
)
from leadline.storage.incidents.transactions.edit_incidents import (
    IncidentDraft,
    acknowledge,
    add_update,
    create_incident,
    put_postmortem,
)
from leadline.storage.incidents.transactions.write_incident import (
    AlreadyOpen,
    IncidentEntry,
    Opening,
    open_incident,
    write_entry,
)
from leadline.storage.notifications.rules.notification import Notification
from leadline.storage.notifications.transactions.edit_channels import create_channel
from leadline.storage.notifications.transactions.edit_webhooks import create_webhook
from leadline.storage.notifications.transactions.enqueue_notifications import enqueue_pages
from tests.monitors.test_secrets_while_monitors_are_saved_storage import both
from tests.support.worlds.world import START, World, small_world

ORDER = ["investigating", "identified", "monitoring", "resolved"]


async def create(world: World, who: Principal | None = None, **given: Any) -> IncidentRow:
    async with world.pool.transaction("create_incident") as tx:
        draft = IncidentDraft(**{"title": "Checkout fails", **given})
        return await create_incident(tx, who or world.editor, world.project_uid, draft)


async def update(
    world: World,
    incident: UUID,
    status: str | None = None,
    body: str = "",
    public: bool | None = None,
    who: Principal | None = None,
) -> tuple[IncidentRow, UpdateRow]:
    async with world.pool.transaction("add_update") as tx:
        given_ = None if status is None else IncidentStatus(status)
        return await add_update(tx, who or world.editor, incident, given_, body, public)


async def take(world: World, incident: UUID, who: Principal | None = None) -> IncidentRow:
    async with world.pool.transaction("acknowledge") as tx:
        return await acknowledge(tx, who or world.editor, incident)


async def explain(
    world: World, incident: UUID, body: str = "It was DNS.", revision: int | None = None
) -> Any:
    async with world.pool.transaction("put_postmortem") as tx:
        return await put_postmortem(tx, world.editor, incident, body, revision)


async def read(world: World, incident: UUID) -> tuple[IncidentRow, list[UpdateRow]]:
    async with world.pool.transaction("read", read_only=True) as tx:
        row = await select_incident(tx, incident)
        assert row is not None
        return row, await select_updates(tx, row.org, row.id)


async def audited(world: World) -> list[tuple[str, str]]:
    return await world.rows("select action, target from audit_entries order by id")


async def webhook(world: World) -> None:
    async with world.pool.transaction("webhook") as tx:
        ((org,),) = await tx.rows("select uid from organizations")
        admin = Principal(
            CredentialKind.SESSION, (Membership(world.org, None, Role.ORG_ADMIN),), label="a"
        )
        secret = secret_from(b"s" * 32)
        await create_webhook(
            tx, admin, org, "http://hook.test/", secret, None, world.keyring, enabled=True
        )


async def payloads(world: World) -> list[dict[str, Any]]:
    """The webhook documents in the order in which they were enqueued."""
    rows = await world.rows("select payload::text from outbox order by id")
    return [msgspec.json.decode(text) for (text,) in rows]


# --- one after the other, against a model ---


@dataclass
class Model:
    """The interface, in the smallest words."""

    status: str
    seq: int = 1
    acknowledged: str = ""
    updates: list[tuple[int, str | None, str, bool]] = field(default_factory=list)

    def update(self, status: str | None, body: str, public: bool | None) -> str:
        if status is not None and self.status == "resolved":
            return "incident_resolved"
        if status is not None and ORDER.index(status) < ORDER.index(self.status):
            return "status_backward"
        if not body and status in (None, self.status):
            return "invalid"
        self.seq += 1
        self.status = status or self.status
        shown = public if public is not None else status is not None
        self.updates.append((self.seq, status, body, shown))
        return ""

    def acknowledge(self, who: str) -> str:
        if not self.acknowledged and self.status == "resolved":
            return "incident_resolved"
        self.acknowledged = self.acknowledged or who
        return ""


STEPS = st.lists(
    st.tuples(
        st.just("update"),
        st.sampled_from([None, *ORDER]),
        st.sampled_from(["", "words"]),
        st.sampled_from([None, True, False]),
    )
    | st.tuples(st.just("acknowledge"), st.sampled_from(["Ann", "Bob"]))
    | st.tuples(st.just("explain"), st.sampled_from(["It was DNS.", "It was not."])),
    max_size=10,
)


@pytest.mark.parametrize("first", ORDER)
@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS)
def test_any_history_has_the_result_of_the_contract(
    databases: Any, template: str, first: str, steps: list[Any]
) -> None:
    dsn = databases.lend(template)
    try:
        trio.run(_history, dsn, first, steps)
    finally:
        databases.give_back(dsn)


async def _history(dsn: str, first: str, steps: list[Any]) -> None:
    async with small_world(dsn) as world:
        await webhook(world)
        uid = (await create(world, status=IncidentStatus(first), body="It begins.")).uid
        model = Model(first, updates=[(1, first, "It begins.", True)])
        written = [("incident.create", f"incident:{uid} project:{world.project_uid}")]
        for step in steps:
            world.now = Instant(world.now + SECOND)
            before, was = await read(world, uid), model.status
            refusal = await _step(world, uid, step)
            after = await read(world, uid)
            if step[0] == "update":
                assert refusal == model.update(*step[1:])
                if not refusal:
                    change = f" {was}->{model.status}" if step[1] else ""
                    kind = "incident.status" if step[1] else "incident.note"
                    written.append((kind, f"incident:{uid}{change}"))
            elif step[0] == "acknowledge":
                is_first = not model.acknowledged
                assert refusal == model.acknowledge(step[1])
                if not is_first:
                    assert after == before
                elif not refusal:
                    written.append(("incident.acknowledge", f"incident:{uid}"))
                    assert after[0].acknowledged_at == world.now
            else:
                assert refusal == ("" if model.status == "resolved" else "not_resolved")
                changed = await world.rows(
                    "select updated_at = at(%(now)s) from postmortems", now=world.now
                )
                if changed == [(True,)]:
                    written.append(("incident.postmortem", f"incident:{uid}"))
            if refusal:
                assert after == before
        await _agrees(world, uid, model)
        assert (await audited(world))[1:] == written


async def _step(world: World, uid: UUID, step: Any) -> str:
    try:
        match step:
            case ("update", status, body, public):
                await update(world, uid, status, body, public)
            case ("acknowledge", who):
                await take(world, uid, replace(world.editor, label=who))
            case ("explain", body):
                await explain(world, uid, body)
    except Refused as refused:
        return refused.code
    return ""


async def _agrees(world: World, uid: UUID, model: Model) -> None:
    row, updates = await read(world, uid)
    assert (row.status, row.seq) == (model.status, model.seq)
    assert row.acknowledged_label == model.acknowledged
    assert (row.resolved_at is None) is (model.status != "resolved")
    assert [(u.seq, u.status, u.body, u.public) for u in updates] == model.updates
    events = await payloads(world)
    assert [e["seq"] for e in events] == [u[0] for u in model.updates]
    for event, (seq, status, body, public) in zip(events, model.updates, strict=True):
        assert event["incident"]["seq"] == event["update"]["seq"] == seq
        assert event["update"].get("status") == status
        assert (event["update"]["body"], event["update"]["public"]) == (body, public)
        wanted = "opened" if seq == 1 else "resolved" if status == "resolved" else "updated"
        assert event["event"] == f"incident.{wanted}"


# --- what is asked of one ---


async def test_a_session_opens_by_hand_and_a_token_by_the_api(world: World) -> None:
    token = replace(world.editor, kind=CredentialKind.TOKEN, label="ci")
    by_hand, by_token = await create(world), await create(world, token)
    assert (by_hand.source, by_token.source) == (IncidentSource.MANUAL, IncidentSource.API)
    assert (by_hand.status, by_hand.impact) == (IncidentStatus.INVESTIGATING, IncidentImpact.MINOR)
    assert by_hand.started_at == by_hand.created_at == START
    _, (first,) = await read(world, by_token.uid)
    assert first.author_label == "ci"
    acknowledged = await take(world, by_hand.uid, token)
    assert (acknowledged.acknowledged_by, acknowledged.acknowledged_label) == (None, "ci")


async def test_a_foreign_monitor_is_refused_like_a_missing_one(world: World) -> None:
    mine = await world.monitor()
    async with world.pool.transaction("elsewhere") as tx:
        await tx.execute(
            "insert into projects (org, uid, slug, name, created_at, updated_at) "
            "values (%(o)s, %(u)s, 'mill', 'Mill', at(%(n)s), at(%(n)s))",
            o=world.org,
            u=uuid7(),
            n=START,
        )
        await tx.execute(
            "update monitors set project = (select id from projects where slug = 'mill')"
        )
    errors = []
    for uid in (mine.uid, uuid7()):
        with pytest.raises(Refused) as caught:
            await create(world, monitor=uid)
        errors.append((caught.value.code, str(caught.value)))
    assert errors == [("invalid", "monitor_id: names no monitor of this project")] * 2
    assert await world.rows("select count(*) from incidents") == [(0,)]


async def test_an_open_incident_of_a_monitor_with_a_policy_is_escalated(world: World) -> None:
    row = await world.monitor()
    plain = await create(world, monitor=row.uid)
    assert (plain.monitor_uid, plain.escalate_at) == (row.uid, None)
    async with world.pool.transaction("ladder") as tx:
        await tx.execute(
            "insert into escalation_policies "
            "(org, uid, project, name, repeat_last, after_seconds, created_at, updated_at) "
            "values (%(o)s, %(u)s, %(p)s, 'x', false, '{0}', at(%(n)s), at(%(n)s))",
            o=world.org,
            u=uuid7(),
            p=world.project,
            n=START,
        )
        await tx.execute(
            "update monitors set escalation_policy = (select id from escalation_policies)"
        )
    climbing = await create(world, monitor=row.uid)
    assert climbing.escalate_at == START
    assert (
        await create(world, monitor=row.uid, status=IncidentStatus.RESOLVED)
    ).escalate_at is None
    assert (await take(world, climbing.uid)).escalate_at is None
    assert (await read(world, climbing.uid))[0].escalate_at is None
    over = await create(world, monitor=row.uid)
    await update(world, over.uid, "resolved")
    assert (await read(world, over.uid))[0].escalate_at is None


@pytest.mark.parametrize(
    ("given_", "field_"),
    [
        ({"title": ""}, "title"),
        ({"title": "  "}, "title"),
        ({"title": "x" * 201}, "title"),
        ({"title": "a\nb"}, "title"),
        ({"body": "a\x00b"}, "body"),
        ({"body": "x" * (BODY_LONGEST + 1)}, "body"),
    ],
)
async def test_an_invalid_value_is_refused_by_its_field(
    world: World, given_: dict[str, Any], field_: str
) -> None:
    with pytest.raises(Refused) as caught:
        await create(world, **given_)
    assert caught.value.field == field_


async def test_lines_of_a_browser_are_lines(world: World) -> None:
    uid = (await create(world, body="a\r\nb")).uid
    await update(world, uid, None, "c\r\nd")
    assert [u.body for u in (await read(world, uid))[1]] == ["a\nb", "c\nd"]


async def test_the_first_acknowledgement_stays(world: World) -> None:
    uid = (await create(world)).uid
    first = await take(world, uid)
    world.now = Instant(world.now + SECOND)
    second = await take(world, uid, replace(world.editor, label="Bob"))
    assert second == first == (await read(world, uid))[0]
    await update(world, uid, "resolved")
    assert (await take(world, uid)).acknowledged_at == first.acknowledged_at


async def test_a_resolved_incident_cannot_be_acknowledged(world: World) -> None:
    uid = (await create(world, status=IncidentStatus.RESOLVED)).uid
    with pytest.raises(Refused, match="incident_resolved"):
        await take(world, uid)


async def test_concurrent_acknowledgements_are_one(world: World) -> None:
    uid = (await create(world)).uid
    async with trio.open_nursery() as nursery:
        for name in "abcdef":
            nursery.start_soon(take, world, uid, replace(world.editor, label=name))
    actions = [action for action, _ in await audited(world)]
    assert actions == ["incident.create", "incident.acknowledge"]


async def test_an_update_after_a_concurrent_acknowledgement_names_its_person(world: World) -> None:
    await webhook(world)
    person = uuid7()
    async with world.pool.transaction("person") as tx:
        await insert_user(tx, person, "ann@example.com", "Ann", None, admin=False)
    ann = replace(world.editor, user=person, label="Ann")
    uid = (await create(world)).uid

    async def take_up(world: World, tx: Tx) -> None:
        await acknowledge(tx, ann, uid)

    async def go_on(world: World, tx: Tx) -> None:
        await add_update(tx, world.editor, uid, IncidentStatus.IDENTIFIED, "It is the disk.", None)

    assert await both(world, take_up, go_on) == ["done", "done"]
    *_, last = await payloads(world)
    assert last["incident"]["acknowledged_by_name"] == "Ann"
    assert last["incident"]["acknowledged_by"] == str(person)


async def test_concurrent_updates_have_different_numbers_and_one_resolves(world: World) -> None:
    await webhook(world)
    uid = (await create(world)).uid
    refusals: list[str] = []

    async def one(status: str | None) -> None:
        try:
            await update(world, uid, status, "words")
        except Refused as refused:
            refusals.append(refused.code)

    async with trio.open_nursery() as nursery:
        for status in ["resolved", None, "resolved", None, "resolved", None]:
            nursery.start_soon(one, status)
    row, updates = await read(world, uid)
    assert refusals == ["incident_resolved"] * 2
    assert [u.seq for u in updates] == [1, 2, 3, 4, 5] == [e["seq"] for e in await payloads(world)]
    assert row.seq == 5


async def test_a_postmortem_is_published_once_and_edited_after(world: World) -> None:
    uid = (await create(world)).uid
    for revision, code in ((None, "not_resolved"), (1, "revision_foreign")):
        with pytest.raises(Refused, match=code):
            await explain(world, uid, revision=revision)
    await update(world, uid, "resolved")
    with pytest.raises(Refused, match="revision_foreign"):
        await explain(world, uid, revision=7)
    first = await explain(world, uid)
    world.now = Instant(world.now + SECOND)
    assert await explain(world, uid) == first
    second = await explain(world, uid, "It was not DNS.")
    assert (second.uid, second.published_at, second.created_at) == (
        first.uid,
        first.published_at,
        first.created_at,
    )
    assert (second.updated_at, second.body) == (world.now, "It was not DNS.")
    with pytest.raises(Refused) as caught:
        await explain(world, uid, " ")
    assert caught.value.field == "body"


async def test_updates_are_limited_and_a_resolution_is_always_possible(world: World) -> None:
    uid = (await create(world)).uid
    async with world.pool.transaction("much") as tx:
        await tx.execute("update incidents set seq = %(most)s", most=UPDATES_MOST)
    for status in (None, "investigating"):
        with pytest.raises(Refused, match="update_quota"):
            await update(world, uid, status, "more")
    row, _ = await update(world, uid, "resolved")
    assert row.seq == UPDATES_MOST + 1


async def test_the_audit_contains_no_title_and_no_body(world: World) -> None:
    uid = (await create(world, title="canary-1", body="canary-2")).uid
    await update(world, uid, None, "canary-3")
    await update(world, uid, "resolved", "canary-4")
    await explain(world, uid, "canary-5")
    assert "canary" not in str(await audited(world))


async def test_members_of_others_read_no_incident_and_viewers_write_none(world: World) -> None:
    uid = (await create(world)).uid
    stranger = replace(world.editor, memberships=())
    viewer = replace(world.editor, memberships=(Membership(world.org, None, Role.VIEWER),))
    for who, code in ((stranger, "not_found"), (viewer, "forbidden")):
        with pytest.raises(Refused, match=code):
            await create(world, who)
        with pytest.raises(Refused, match=code):
            await update(world, uid, None, "x", who=who)
        with pytest.raises(Refused, match=code):
            await take(world, uid, who)
    with pytest.raises(Refused, match="not_found"):
        await update(world, uuid7(), None, "x")


# --- what Leadline itself writes ---


def opening(world: World, **given_: Any) -> Opening:
    values: dict[str, Any] = {
        "org": world.org,
        "project": world.project,
        "monitor": None,
        "title": "m is down",
        "status": IncidentStatus.INVESTIGATING,
        "impact": IncidentImpact.MAJOR,
        "source": IncidentSource.AUTO,
        "body": "Our monitoring detected a problem. We are investigating.",
        "started_at": Instant(START - SECOND),
        "author": None,
    }
    return Opening(**{**values, **given_})


async def test_a_machine_writes_no_audit_and_has_no_name(world: World) -> None:
    async with world.pool.transaction("machine") as tx:
        row = await open_incident(tx, opening(world))
        entry = IncidentEntry(
            status=IncidentStatus.RESOLVED, body="Well.", public=None, author=None
        )
        await write_entry(tx, row, entry)
    _, updates = await read(world, row.uid)
    assert [(u.author_label, u.public) for u in updates] == [("", True), ("", True)]
    assert await audited(world) == []


async def test_one_is_open_for_a_monitor_at_a_time(world: World) -> None:
    monitor = (await world.monitor()).id
    async with world.pool.transaction("machine") as tx:
        row = await open_incident(tx, opening(world, monitor=monitor))
        with pytest.raises(AlreadyOpen):
            await open_incident(tx, opening(world, monitor=monitor))
        await write_entry(
            tx,
            row,
            IncidentEntry(status=IncidentStatus.RESOLVED, body="", public=None, author=None),
        )
        await open_incident(tx, opening(world, monitor=monitor))
    assert await world.rows("select count(*) from incidents") == [(2,)]


async def test_only_recipients_of_the_page_get_the_resolution(world: World) -> None:
    async with world.pool.transaction("channels") as tx:
        rows = [
            await create_channel(
                tx,
                world.editor,
                world.project_uid,
                "webhook",
                name,
                {"url": "http://hook.test/"},
                world.keyring,
                enabled=True,
            )
            for name in ("paged", "spared")
        ]
    incident = await create(world, title="Checkout fails")
    page = Notification(
        event="incident.opened",
        status="down",
        severity="major",
        title="x",
        lines=(),
        why="",
        since=None,
        path=f"/incidents/{incident.uid}",
    )
    async with world.pool.transaction("page") as tx:
        uid = incident.uid
        paged = await enqueue_pages(
            tx, world.org, world.project, uid, uid, "incident_event", [rows[0].id], page
        )
    assert paged == [rows[0].id]
    world.now = Instant(world.now + 90 * SECOND)
    await update(world, incident.uid, "resolved", "Paying works again.")
    (told_,) = await world.rows(
        "select d.channel, o.payload::text from outbox o join destinations d "
        "on d.org = o.org and d.id = o.destination where o.event = 'incident.resolved'"
    )
    assert told_[0] == rows[0].id
    last = msgspec.json.decode(told_[1])
    assert (last["title"], last["status"]) == ("Resolved: Checkout fails", "recovered")
    assert last["lines"] == ["Duration: 1 min.", "Paying works again."]


# --- objects that other transactions delete ---


async def test_an_incident_outlives_its_monitor_and_the_user_who_acknowledged_it(
    world: World,
) -> None:
    monitor, person = await world.monitor(), uuid7()
    async with world.pool.transaction("person") as tx:
        await insert_user(tx, person, "ann@example.com", "Ann", None, admin=False)
    ann = replace(world.editor, user=person, label="Ann")
    uid = (await create(world, ann, monitor=monitor.uid)).uid
    taken = await take(world, uid, ann)
    assert (taken.acknowledged_by, taken.monitor_uid) == (person, monitor.uid)
    async with world.pool.transaction("gone") as tx:
        await tx.execute("delete from monitors")
        await tx.execute("delete from users")
    row, updates = await read(world, uid)
    assert (row.monitor, row.monitor_uid, row.acknowledged_by) == (None, None, None)
    assert (row.acknowledged_label, updates[0].author_label) == ("Ann", "Ann")
    assert row.status == IncidentStatus.INVESTIGATING
    await update(world, uid, "resolved")


async def test_opened_while_its_project_goes_it_is_there_or_was_not_found(world: World) -> None:
    """The second transaction sees the effect of the first one, and neither has an internal
    error."""
    outcomes: list[str] = []

    async def opened() -> None:
        try:
            await create(world)
            outcomes.append("opened")
        except Refused as refused:
            outcomes.append(refused.code)

    async def removed() -> None:
        async with world.pool.transaction("remove") as tx:
            assert await lock_project(tx, world.org, world.project)
            nursery.start_soon(opened)
            await trio.testing.wait_all_tasks_blocked(0.05)
            await tx.execute("delete from projects")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(removed)
    assert outcomes == ["not_found"]
    assert await world.rows("select count(*) from incidents") == [(0,)]


async def test_incidents_of_a_project_are_numbered_without_gaps(world: World) -> None:
    """Also if several are opened at once, and if one is refused or rolled back."""
    monitor = (await world.monitor()).id
    found: list[int] = []

    async def open_one() -> None:
        found.append((await create(world)).number)

    async with trio.open_nursery() as nursery:
        for _ in range(12):
            nursery.start_soon(open_one)
    assert sorted(found) == list(range(1, 13))
    async with world.pool.transaction("machine") as tx:
        assert (await open_incident(tx, opening(world, monitor=monitor))).number == 13
        with pytest.raises(AlreadyOpen):
            await open_incident(tx, opening(world, monitor=monitor))

    async def fail() -> None:
        async with world.pool.transaction("machine") as tx:
            await open_incident(tx, opening(world))
            raise RuntimeError("rolled back")

    with pytest.raises(RuntimeError, match="rolled back"):
        await fail()
    assert (await create(world)).number == 14
