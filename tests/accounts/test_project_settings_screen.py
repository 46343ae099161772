"""Settings of a project: rename, deletion after its name was typed, and the progress of it."""

import re
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from leadline.storage.accounts.queries import console_navigation
from tests.support.app.cast import Api
from tests.support.app.serving import call

from ..bundles.test_bundle_on_call_api import bundle
from ..incidents.test_incidents_screen import send
from ..oncall.test_oncall_screen import first_line
from ..services.test_services_screen import seen


async def test_the_list_of_an_organization_has_all_its_projects(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The switcher of the shell lists a limited number, over all organizations."""
    monkeypatch.setattr(console_navigation, "PLACES_MOST", 1)
    for slug in ("acme", "other"):
        path = f"/organizations/{api.orgs[slug][1]}/projects"
        text = await seen(api, path, who="global_admin")
        assert first_line(text) == f"2 projects in {slug.title()}"
        assert f"/projects/{api.projects[f'{slug}/mill'][1]}/settings/general" in text


async def test_a_rename_is_saved_and_an_empty_name_is_not(api: Api) -> None:
    path = f"/projects/{api.project}/settings/general"
    answer = await send(api, path, who="org_admin", name=" Harbour ")
    assert answer.status_code == 200
    assert "Saved." in await answer.get_data(as_text=True)
    assert await api.rows("select name from projects where uid = %(uid)s", uid=api.project) == [
        ("Harbour",)
    ]
    answer = await send(api, path, who="org_admin", name="  ")
    assert answer.status_code == 400
    assert "Name: required." in await answer.get_data(as_text=True)


async def test_a_deletion_needs_the_name_and_lists_what_it_deletes(api: Api) -> None:
    await api.new_monitor()
    await api.new_monitor()
    await api.new_incident()
    path = f"/projects/{api.project}/settings/delete"
    text = await seen(api, path, who="org_admin")
    assert first_line(text) == "Delete acme shop?"
    assert "2 monitors" in text
    assert "1 incident" in text
    answer = await send(api, path, who="org_admin", name="Acme shop")
    assert answer.status_code == 400
    assert "The name is not acme shop. Nothing was deleted." in await answer.get_data(as_text=True)
    assert await api.rows("select count(*) from monitors") == [(2,)]
    answer = await send(api, path, who="org_admin", name="acme shop")
    assert answer.status_code == 303
    assert answer.headers["Location"] == "/"
    assert await api.rows("select count(*) from projects where uid = %(uid)s", uid=api.project) == [
        (0,)
    ]


@pytest.mark.parametrize(
    ("state", "words", "refreshes"),
    [
        ("running", "The project is being deleted", True),
        ("succeeded", "The project was deleted", False),
        ("failed", "The project was not deleted completely", False),
    ],
)
async def test_the_progress_is_shown_until_the_operation_ends(
    api: Api, state: str, words: str, refreshes: bool
) -> None:
    uid = uuid7()
    async with api.pool.transaction("start") as tx:
        await tx.execute(
            "insert into operations"
            " (uid, kind, state, org, done, total, created_at, finished_at)"
            " select %(uid)s, 'project_delete', %(state)s, org, 30, 1200, now(),"
            " case when %(state)s = 'running' then null else now() end"
            " from projects where uid = %(project)s",
            uid=uid,
            state=state,
            project=api.project,
        )
    answer = await api.ask("org_admin", "GET", f"/operations/{uid}")
    text = await answer.get_data(as_text=True)
    assert first_line(text) == words
    assert "30 of 1,200 objects" in text
    assert ("Refresh" in answer.headers) == refreshes


async def test_a_deletion_lists_the_managed_objects_that_prevent_it(api: Api) -> None:
    service = await api.new_service(name="Front <door>")
    monitors = [(await api.new_monitor(name=f"Till {n:02}")).uid for n in range(22)]
    path = f"/projects/{api.project}/settings/delete"

    async def manage(table: str, by: str) -> None:
        async with api.pool.transaction("manage") as tx:
            await tx.execute(f"update {table} set managed_by = %(by)s, bundle_uid = uid", by=by)

    assert "Type <b>acme shop</b>" in await seen(api, path, who="org_admin")
    await manage("monitors", "bundle:shop")
    text = await seen(api, path, who="org_admin")
    assert first_line(text) == "acme shop cannot be deleted"
    assert "22 objects are managed as code." in text
    assert text.count(">Till ") == 20
    assert "2 more." in text
    assert f'<a href="/monitors/{monitors[0]}"' in text
    assert "bundle:shop" in text
    assert "Type <b>" not in text
    # A form that was open before is refused with the same screen.
    answer = await send(api, path, who="org_admin", name="acme shop")
    assert answer.status_code == 409
    assert first_line(await answer.get_data(as_text=True)) == "acme shop cannot be deleted"
    assert await api.rows("select count(*) from monitors") == [(22,)]
    await manage("monitors", "")
    await manage("services", "files")
    text = await seen(api, path, who="org_admin")
    assert "1 object is managed as code." in text
    assert f'<a href="/services/{service}" title="Front &lt;door&gt;">' in text
    await manage("services", "")
    assert (await send(api, path, who="org_admin", name="acme shop")).status_code == 303


async def test_each_kind_of_managed_object_has_a_screen(api: Api) -> None:
    policy = await api.new_policy(schedule=await api.new_schedule(await api.new_channel()))
    route = {"matchers": 'team="x"', "escalation_policy_id": str(policy)}
    await call(api, "PUT", f"/projects/{api.project}/alert-routes", {"routes": [route]})
    page, series = await api.new_status_page(), await api.new_series()
    there = f"/projects/{api.project}"
    await api.new_monitor()
    await api.new_service()
    body = {"url": "https://hook.example.org/", "project_id": str(api.project)}
    place = f"/organizations/{api.org}/webhooks"
    hook = await call(api, "POST", place, body, 201, who="org_admin")
    tables = (
        "monitors",
        "services",
        "notification_channels",
        "oncall_schedules",
        "escalation_policies",
        "alert_route_lists",
    )
    async with api.pool.transaction("manage") as tx:
        for table in tables:
            await tx.execute(f"update {table} set managed_by = 'files', bundle_uid = uid")
        await tx.execute(
            "insert into bundle_objects (org, project, kind, uid, managed_by, bundle_uid)"
            " select p.org, p.id, k.kind, coalesce(k.uid, p.uid),"
            " 'files', 'x' from projects p, (values ('project_settings', null),"
            " ('maintenance_series', %(series)s::uuid), ('status_page', %(page)s::uuid),"
            " ('webhook', %(hook)s::uuid))"
            " as k(kind, uid) where p.uid = %(project)s",
            page=page,
            hook=hook["id"],
            series=series,
            project=api.project,
        )
    text = await seen(api, f"{there}/settings/delete", who="org_admin")
    places = re.findall(r'<th scope="row"><a href="([^"]+)"', text)
    assert len(places) >= len(tables) + 4
    for place in places:
        answer = await api.ask("org_admin", "GET", *place.split("?", 1)[:1])
        assert answer.status_code == 200, place


async def test_empty_sections_permit_the_deletion_and_absent_ones_do_not(api: Api) -> None:
    async def apply(**sections: Any) -> None:
        document = {**bundle(), **sections}
        place = f"/projects/{api.project}/bundle/apply"
        await call(api, "POST", place, document, who="org_admin")

    path = f"/projects/{api.project}/settings/delete"
    await apply(
        monitors={"web": {"name": "Web", "type": "push"}},
        status_pages={"shop": {"title": "Shop"}},
        project_settings={"objectives": {"30d": 99.5}},
    )
    text = await seen(api, path, who="org_admin")
    for section in ("monitors: {}", "status_pages: {}", "project_settings: null"):
        assert f"<code>{section}</code>" in text
    await apply()
    assert first_line(await seen(api, path, who="org_admin")) == "acme shop cannot be deleted"
    await apply(monitors={}, status_pages={}, project_settings=None)
    assert first_line(await seen(api, path, who="org_admin")) == "Delete acme shop?"
