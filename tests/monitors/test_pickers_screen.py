"""Type-ahead fields with several choices: in the forms of monitors, services and dependencies."""

import re
from html import unescape
from typing import Any
from uuid import UUID

from leadline.storage.monitors.rows import MonitorRow
from tests.support.app.cast import Api
from tests.support.worlds.service_history import lived

from ..oncall.test_oncall_screen import send, text_of
from ..server.test_pages_access_screen import POLICIES

SERVICE = dict(pair.split("=") for pair in POLICIES.split("&"))
PUSH = {"type": "push", "fields": "push", "name": "Order", "interval_seconds": "60"}
CROWD = 2_000


def new(api: Api) -> str:
    return f"/projects/{api.project}/monitors/new"


async def shown(api: Api, path: str) -> str:
    answer = await api.ask("editor", "GET", path)
    assert answer.status_code == 200
    return await text_of(answer)


async def refused(api: Api, path: str, form: dict[str, Any]) -> str:
    answer = await send(api, path, form)
    assert answer.status_code == 400
    return await text_of(answer)


def kept(page: str, name: str) -> list[str]:
    """Returns the choices of a field, without the template of the script."""
    page = re.sub(r"<template>.*?</template>", "", page, flags=re.DOTALL)
    found = re.findall(rf'<input type="hidden" name="{re.escape(name)}" value="([^"]*)"', page)
    return [unescape(value) for value in found]


def typed(page: str, name: str) -> str:
    found = re.search(rf'name="add.{re.escape(name)}"[^>]* value="([^"]*)"', page)
    assert found is not None, name
    return unescape(found[1])


async def crowd(api: Api, like: MonitorRow) -> None:
    """Adds monitors, each with its own tag, as copies of one row."""
    async with api.pool.transaction("crowd") as tx:
        await tx.execute(
            "insert into monitors (org, uid, project, shard, slug, name, type, target,"
            " interval_seconds, timeout_seconds, tags, created_at, updated_at)"
            " select org, gen_random_uuid(), project, shard, 'crowd-' || n, 'Crowd ' || n, type,"
            " target, interval_seconds, timeout_seconds, array['tag-' || n], created_at, updated_at"
            " from monitors, generate_series(1, %(many)s) n where uid = %(uid)s",
            many=CROWD,
            uid=like.uid,
        )


async def test_a_form_of_two_thousand_monitors_has_the_rows_of_twenty(api: Api) -> None:
    till = await api.new_monitor(name="Till", tags=["pay"])
    row = await lived(api, "Checkout", till.uid)
    paths = [
        new(api),
        f"{new(api)}?type=composite",
        f"/monitors/{till.uid}/edit",
        f"/projects/{api.project}/services/new",
        f"/services/{row.uid}/declaration",
    ]
    before = [await shown(api, path) for path in paths]
    await crowd(api, till)
    for path, small in zip(paths, before, strict=True):
        page = await shown(api, path)
        lists = page.count("data-picker>")
        assert lists >= 1, path
        assert len(re.findall(r"<option [^>]*data-key=", page)) <= 20 * lists, path
        assert page.count("Crowd ") <= 20 * 2 * lists, path
        assert len(page) - len(small) < lists * 20 * 250, path
    pick = await shown(api, f"/projects/{api.project}/pick?kind=monitor&q=crowd 1999")
    assert pick.count("<option") == 1
    assert "Crowd 1999" in pick, "no monitor is out of reach"


async def test_typed_names_become_choices_of_the_saved_monitor(api: Api) -> None:
    router, core = await api.new_monitor(name="Router"), await api.new_monitor(name="Core")
    ops = await api.new_channel(name="Ops")
    form: dict[str, Any] = {
        **PUSH,
        "depends_on": [str(core.uid)],
        "add.depends_on": "rout",
        "add.channels": "ops",
        "tags": ["web", "shop"],
        "add.tags": "pay, web ,",
        "act": "save",
    }
    answer = await send(api, new(api), form)
    assert answer.status_code == 303, await text_of(answer)
    (made,) = await api.rows("select tags, depends_on from monitors where name = 'Order'")
    assert made == (["web", "shop", "pay"], [core.id, router.id])
    attached = await api.rows(
        "select c.uid from monitor_channels m join notification_channels c on c.id = m.channel"
    )
    assert attached == [(ops,)]
    path = f"{answer.headers['Location']}/edit"
    page = await shown(api, path)
    assert kept(page, "depends_on") == [str(core.uid), str(router.uid)]
    assert kept(page, "channels") == [str(ops)]
    assert kept(page, "tags") == ["web", "shop", "pay"]
    # The form without choices detaches and removes them.
    assert (await send(api, path, {**PUSH, "act": "save"})).status_code == 303
    assert await api.rows("select * from monitor_channels") == []
    (made,) = await api.rows("select tags, depends_on from monitors where name = 'Order'")
    assert made == ([], [])


async def test_buttons_add_and_remove_choices_and_save_nothing(api: Api) -> None:
    router = await api.new_monitor(name="Router")
    typing = {"act": "add.depends_on", "add.depends_on": "Router", "add.tags": "later"}
    answer = await send(api, new(api), {**PUSH, **typing})
    assert answer.status_code == 200
    page = await text_of(answer)
    assert kept(page, "depends_on") == [str(router.uid)]
    assert typed(page, "depends_on") == ""
    assert typed(page, "tags") == "later", "an Add button adds the text of its field only"
    form: dict[str, Any] = {**PUSH, "depends_on": [str(router.uid)], "tags": ["a.b", "c"]}
    page = await text_of(
        await send(api, new(api), {**form, "act": f"drop.depends_on.{router.uid}"})
    )
    assert kept(page, "depends_on") == []
    assert kept(page, "tags") == ["a.b", "c"]
    page = await text_of(await send(api, new(api), {**form, "act": "drop.tags.a.b"}))
    assert kept(page, "tags") == ["c"]
    assert await api.rows("select * from monitors where name = 'Order'") == []


async def test_a_refused_form_keeps_typed_texts_and_choices(api: Api) -> None:
    for name in ("Router 1", "Router 2"):
        await api.new_monitor(name=name)
    core, ops = await api.new_monitor(name="Core"), await api.new_channel(name="Ops")
    form = {
        **PUSH,
        "act": "save",
        "depends_on": [str(core.uid)],
        "add.depends_on": "router",
        "channels": [str(ops)],
        "add.channels": "nobody",
        "add.tags": "x" * 300,
    }
    page = await refused(api, new(api), form)
    assert "Depends on: matches several monitors, type the slug of one." in page
    assert "Notify channels: names no channel of this project." in page
    assert typed(page, "depends_on") == "router"
    assert typed(page, "channels") == "nobody"
    assert kept(page, "depends_on") == [str(core.uid)]
    assert kept(page, "channels") == [str(ops)]
    assert kept(page, "tags") == ["x" * 300]
    for name in ("depends_on", "channels", "tags"):
        field = re.search(rf'<input id="{name}"[^>]*>', page)
        assert field is not None
        assert f'aria-describedby="wrong-{name} hint-{name}" aria-invalid="true"' in field[0]
    assert await api.rows("select * from monitors where name = 'Order'") == []


async def test_channels_of_one_name_are_named_with_their_type(api: Api) -> None:
    await api.new_channel(name="Ops")
    other = await api.new_channel(name="Ops")
    async with api.pool.transaction("type") as tx:
        await tx.execute(
            "update notification_channels set type = 'slack' where uid = %(uid)s", uid=other
        )
    form = {**PUSH, "act": "save", "add.channels": "Ops"}
    told = await refused(api, new(api), form)
    assert re.search(r"type name and type of one, such as Ops, (slack|webhook)\.", told)
    pick = await shown(api, f"/projects/{api.project}/pick?kind=channel&q=ops")
    assert 'value="Ops, slack"' in pick
    answer = await send(api, new(api), {**form, "add.channels": "ops, SLACK"})
    assert answer.status_code == 303
    (row,) = await api.rows("select channel from monitor_channels")
    assert (
        row
        == (await api.rows("select id from notification_channels where uid = %(u)s", u=other))[0]
    )


async def test_objects_of_other_tenants_are_neither_found_nor_shown(api: Api) -> None:
    stranger = await api.new_monitor("acme/mill", name="Windmill", tags=["grain"])
    mine = await api.new_monitor(name="Mine")
    for kind, q in (("monitor", "wind"), ("tag", "grain")):
        pick = await shown(api, f"/projects/{api.project}/pick?kind={kind}&q={q}")
        assert "<option" not in pick
    answer = await api.ask("editor", "GET", f"/projects/{api.project}/pick?kind=user")
    assert answer.status_code == 400
    form = {**PUSH, "act": "save", "add.depends_on": "Windmill"}
    assert "names no monitor of this project" in await refused(api, new(api), form)
    page = await refused(api, new(api), {**PUSH, "act": "save", "depends_on": [str(stranger.uid)]})
    assert "Windmill" not in page
    page = await text_of(await send(api, new(api), {**PUSH, "act": "add.tags", "add.tags": "<b>&"}))
    assert kept(page, "tags") == ["<b>&"]
    assert "<b>&" not in page
    # A monitor does not depend on itself.
    path = f"/monitors/{mine.uid}/edit"
    assert f"without={mine.uid}" in await shown(api, path)
    pick = await shown(api, f"/projects/{api.project}/pick?kind=monitor&q=mine&without={mine.uid}")
    assert "<option" not in pick


async def test_members_of_a_service_are_added_and_removed_without_scripts(api: Api) -> None:
    till, bank = await api.new_monitor(name="Till"), await api.new_monitor(name="Bank")
    path = f"/projects/{api.project}/services/new"
    form: dict[str, Any] = {**SERVICE, "name": "Kept", "act": "add.member", "add.member": "til"}
    page = await text_of(await send(api, path, form))
    assert kept(page, "member") == [str(till.uid)]
    assert f'value="{till.uid}" aria-label="Till counts toward the SLI" checked' in page
    assert 'value="Kept"' in page
    form |= {"member": [str(till.uid)], "sli": [str(till.uid)]}
    page = await refused(api, path, {**form, "add.member": "nobody"})
    assert "Members: names no monitor of this project." in page
    assert typed(page, "member") == "nobody"
    assert kept(page, "member") == [str(till.uid)]
    # Another button adds the text too. A context member stays one.
    form["sli"] = []
    answer = await send(api, f"{path}?step=2", {**form, "add.member": "Bank", "act": "step.2"})
    page = await text_of(answer)
    assert "Continue to paging" in page
    assert (kept(page, "member"), kept(page, "sli")) == ([str(till.uid)], [str(bank.uid)])
    form |= {"member": [str(till.uid), str(bank.uid)], "sli": [str(bank.uid)], "add.member": ""}
    page = await text_of(await send(api, path, {**form, "act": f"drop.member.{bank.uid}"}))
    assert kept(page, "member") == [str(till.uid)]
    assert str(bank.uid) not in re.sub(r"<datalist.*?</datalist>", "", page, flags=re.DOTALL)
    assert await api.rows("select * from services") == []


async def test_dependencies_of_a_service_are_found_by_name(api: Api) -> None:
    upstream, row = await lived(api, "Accounts"), await lived(api, "Checkout")
    path = f"/services/{row.uid}/dependencies"
    page = await shown(api, path)
    assert f"kind=service&amp;without={row.uid}" in page
    generation = re.search(r'name="generation" value="(\d+)"', page)
    assert generation is not None
    form = {"generation": generation[1], "add.needs": "nobody", "act": "save"}
    assert "Dependencies: names no service of this project." in await refused(api, path, form)
    page = await text_of(await send(api, path, {**form, "add.needs": "acc", "act": "add.needs"}))
    assert kept(page, "needs") == [str(upstream.uid)]
    assert await api.rows("select * from service_dependencies") == []
    answer = await send(api, path, {**form, "add.needs": "Accounts"})
    assert answer.status_code == 303
    assert len(await api.rows("select * from service_dependencies")) == 1
    page = await shown(api, path)
    (uid,) = kept(page, "needs")
    assert UUID(uid) == upstream.uid
