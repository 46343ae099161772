"""Type-ahead fields that name people: every member can be named, by editors only."""

import re
from html import unescape
from uuid import UUID

from tests.support.app.cast import Api

from .test_oncall_screen import hidden, send, text_of, turns

CROWD = 600


async def crowd(api: Api) -> None:
    """Adds members of the organization, more than any list shows."""
    org = api.orgs["acme"][0]
    async with api.pool.transaction("crowd") as tx:
        await tx.execute(
            "with made as (insert into users (uid, email, display_name, created_at, updated_at)"
            " select gen_random_uuid(), 'm' || n || '@x.test', 'Member ' || n, now(), now()"
            " from generate_series(1, %(many)s) n returning id)"
            " insert into memberships (org, uid, user_id, role, created_at)"
            " select %(org)s, gen_random_uuid(), id, 'viewer', now() from made",
            many=CROWD,
            org=org,
        )


async def found(api: Api, kind: str, q: str) -> list[tuple[str, str]]:
    """Returns (text, label) of the options."""
    path = f"/projects/{api.project}/pick?kind={kind}&q={q}"
    page = await text_of(await api.ask("editor", "GET", path))
    return [
        (unescape(text), label) for text, label in re.findall(r'data-text="([^"]*)">([^<]*)<', page)
    ]


async def test_every_member_can_be_a_participant_a_target_and_an_assignee(api: Api) -> None:
    await crowd(api)
    schedule = await api.new_schedule(name="Nights")
    labelled = [("Member 599, person", "person, no verified contact method")]
    for kind in ("participant", "target", "assignee"):
        assert await found(api, kind, "member 599") == labelled
    form = {
        "act": "save",
        "name": "Days",
        "shift": "1",
        "unit": "weeks",
        "anchor": "2026-01-05T09:00",
        "participant": ["member 599", "Member 600, person"],
    }
    new = f"/projects/{api.project}/oncall-schedules/new"
    wrong = await send(api, new, {**form, "participant": ["member"]})
    assert "matches several participants" in await text_of(wrong)
    assert (await send(api, new, form)).status_code == 303
    ((uid,),) = await api.rows("select uid from oncall_schedules where name = 'Days'")
    page = await text_of(await api.ask("editor", "GET", f"/oncall-schedules/{uid}/edit"))
    assert turns(page) == ["Member 599, person", "Member 600, person"]
    policy = {"act": "save", "name": "Pages", "add.targets-0": "Member 599"}
    policy |= {"after-1": "60", "add.targets-1": "nights"}
    made = await send(api, f"/projects/{api.project}/escalation-policies/new", policy)
    assert made.status_code == 303, await text_of(made)
    assert await api.rows(
        "select c.person is not null, s.uid from escalation_targets t"
        " left join notification_channels c on c.id = t.channel"
        " left join oncall_schedules s on s.id = t.schedule order by t.step"
    ) == [(True, None), (False, schedule)]
    incident = await api.new_incident()
    again = {"act": "reassign", "assignee": "nobody of this name"}
    wrong = await send(api, f"/incidents/{incident}", again)
    assert "names no assignee of this project" in await text_of(wrong)
    again["assignee"] = "member 598"
    wrong = await send(api, f"/incidents/{incident}", again)
    assert "names a person without a usable contact method" in await text_of(wrong)
    assert 'value="member 598"' in await text_of(wrong)
    again["assignee"] = "pages"
    assert (await send(api, f"/incidents/{incident}", again)).status_code == 303
    assert await api.rows("select assigned_label from incidents") == [("Pages",)]


async def test_people_of_one_name_are_told_apart_and_viewers_search_none(api: Api) -> None:
    org = api.orgs["acme"][0]
    uids: list[UUID] = []
    for _ in range(2):
        uids.append(await api.new_user())
    async with api.pool.transaction("name") as tx:
        await tx.execute(
            "with named as (update users set display_name = 'Alex' where uid = any(%(uids)s)"
            " returning id) insert into memberships (org, uid, user_id, role, created_at)"
            " select %(org)s, gen_random_uuid(), id, 'viewer', now() from named",
            org=org,
            uids=uids,
        )
    emails = [
        email for (email,) in await api.rows("select email from users where display_name = 'Alex'")
    ]
    shown = await found(api, "target", "alex")
    assert sorted(text for text, _ in shown) == sorted(f"Alex ({one}), person" for one in emails)
    for kind in ("participant", "target", "assignee"):
        path = f"/projects/{api.project}/pick?kind={kind}"
        assert (await api.ask("viewer", "GET", path)).status_code == 403
    assert (await api.ask("viewer", "GET", f"/projects/{api.project}/pick")).status_code == 200


async def test_a_part_of_a_name_pages_nobody(api: Api) -> None:
    await api.new_channel(name="Joanna")
    schedule = await api.new_schedule()
    form = {"act": "override", "schedule": str(schedule), "channel": "Anna"}
    form |= {"from": "2026-01-06T00:00", "to": "2026-01-07T00:00"}
    there = f"/projects/{api.project}/on-call"
    said = await text_of(await send(api, there, form))
    assert "names no participant of this project; type Joanna, webhook" in said
    form["channel"] = "joanna"
    assert (await send(api, there, form)).status_code == 303


async def test_channels_of_one_name_and_type_are_told_apart_by_their_ids(api: Api) -> None:
    uids = {str(await api.new_channel(name="Ops")) for _ in range(2)}
    page = await text_of(
        await api.ask("editor", "GET", f"/projects/{api.project}/oncall-schedules/new")
    )
    offered = set(re.findall(r'<option value="([0-9a-f-]{36})">Ops, webhook</option>', page))
    assert offered == uids
    schedule = await api.new_schedule()
    form = {"act": "override", "schedule": str(schedule), "channel": "Ops, webhook"}
    form |= {"from": "2026-01-06T00:00", "to": "2026-01-07T00:00"}
    there = f"/projects/{api.project}/on-call"
    assert "type the id of one, such as" in await text_of(await send(api, there, form))
    form["channel"] = max(uids)
    assert (await send(api, there, form)).status_code == 303
    assert await api.rows(
        "select c.uid::text from oncall_overrides o join notification_channels c"
        " on c.id = o.channel"
    ) == [(max(uids),)]


async def test_buttons_of_a_step_add_and_remove_its_targets(api: Api) -> None:
    mara = await api.new_channel(name="Mara")
    new = f"/projects/{api.project}/escalation-policies/new"
    form = {"act": "add.targets-0", "name": "Pages", "after-0": "30", "add.targets-0": "mar"}
    page = await text_of(await send(api, new, form))
    assert hidden(page, "targets-0") == [str(mara)]
    assert 'value="30"' in page
    form = {**form, "targets-0": str(mara), "add.targets-0": "", "act": f"drop.targets-0.{mara}"}
    page = await text_of(await send(api, new, form))
    assert hidden(page, "targets-0") == []
    assert await api.rows("select * from escalation_policies") == []
