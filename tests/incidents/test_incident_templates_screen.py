"""The templates of a project in the settings, and in the form of a new incident."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from playwright.sync_api import expect

from leadline.storage.incidents.rules.incident import IncidentImpact
from leadline.storage.incidents.transactions import edit_incident_templates
from tests.support.app.browser import PHONE
from tests.support.app.cast import Api
from tests.support.app.fixtures import Open
from tests.support.processes.daemon_process import Daemon

from .test_incidents_screen import seen, send, sent

FORM = {"name": "Payments", "title": "Payments fail", "impact": "major", "body": "a\r\nb"}


def path_of(api: Api, project: str = "acme/shop") -> str:
    return f"/projects/{api.projects[project][1]}/incident-templates"


async def made(api: Api, **given: Any) -> str:
    assert (await send(api, path_of(api), act="add", **{**FORM, **given})).status_code == 303
    ((uid,),) = await api.rows("select uid from incident_templates order by id desc limit 1")
    return str(uid)


async def test_an_editor_adds_changes_and_deletes_a_template(api: Api) -> None:
    path = path_of(api)
    assert "No incident templates yet" in await seen(api, path)
    uid = await made(api)
    text = await seen(api, f"{path}?done=add", "editor")
    assert "The template was added." in text
    assert "1 of at most 100." in text
    assert '<b title="Payments">Payments</b><small title="Payments fail">' in text
    text = await seen(api, f"{path}?show=edit&uid={uid}", "editor")
    assert 'value="major" checked' in text
    assert ">\na\nb</textarea>" in text
    answer = await send(api, path, act="save", template=uid, **{**FORM, "name": "Pay"})
    assert answer.headers["Location"] == f"{path}?done=save"
    assert "Incidents that were opened with it" in await seen(
        api, f"{path}?show=delete&uid={uid}", "editor"
    )
    answer = await send(api, path, act="delete", template=uid)
    assert answer.headers["Location"] == f"{path}?done=delete"
    assert "No incident templates yet" in await seen(api, path)
    actions = await api.rows("select action from audit_entries order by id")
    assert [action.partition(".")[2] for (action,) in actions] == ["create", "update", "delete"]


async def test_a_viewer_sees_the_list_and_no_button(api: Api) -> None:
    uid = await made(api)
    main = (await seen(api, path_of(api))).partition("<main")[2].partition("</main>")[0]
    assert "Payments fail" in main
    for mark in ('method="post"', "?show=", "?template=", "<button"):
        assert mark not in main, mark
    for step in ("add", "edit", "delete"):
        await seen(api, f"{path_of(api)}?show={step}&uid={uid}", "viewer", 403)


async def test_a_refused_form_keeps_its_input_and_names_the_field(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, uid = path_of(api), await made(api)
    text = await sent(api, path, act="add", **{**FORM, "name": "payments", "body": "<b>kept"})
    assert "Fix 1 error below" in text
    assert "Name is already used by another template." in text
    assert "&lt;b&gt;kept</textarea>" in text
    assert 'value="payments"' in text
    text = await sent(api, path, act="save", template=uid, **{**FORM, "title": " "})
    assert "Title must not be blank." in text
    assert f'name="template" value="{uid}"' in text
    text = await sent(api, path, act="add", **{**FORM, "body": "x" * 10_001})
    assert "Body must be at most 10000 characters." in text
    monkeypatch.setattr(edit_incident_templates, "TEMPLATES_OF_PROJECT_MOST", 1)
    text = await sent(api, path, act="add", **{**FORM, "name": "Two"})
    assert "Limit: 100 incident templates per project." in text
    assert ">\na\nb</textarea>" in text.replace("\r", "")
    assert (await send(api, path, act="add", **{**FORM, "impact": "huge"})).status_code == 400
    assert (await send(api, path, act="gone", **FORM)).status_code == 400


async def test_a_template_that_was_deleted_meanwhile_is_stated(api: Api) -> None:
    path, uid = path_of(api), await made(api)
    await send(api, path, act="delete", template=uid)
    for act in ("save", "delete"):
        text = await sent(api, path, act=act, template=uid, **FORM)
        assert "The template was deleted by another user." in text
    await seen(api, f"{path}?show=edit&uid={uid}", "editor", 404)
    await seen(api, f"{path}?show=edit&uid=x", "editor", 404)


@pytest.mark.parametrize("project", ["acme/mill", "other/shop"])
async def test_a_template_of_another_project_is_not_found(api: Api, project: str) -> None:
    org, path = api.orgs[project.partition("/")[0]][0], path_of(api)
    async with api.pool.transaction("foreign") as tx:
        uid: UUID = await tx.value(
            "insert into incident_templates (org, uid, project, name, title, impact, body,"
            " created_at, updated_at) values (%(org)s, %(uid)s, %(project)s, 'Foreign-q7',"
            " 'Foreign-q7', 'minor', 'Foreign-q7', now(), now()) returning uid",
            org=org,
            uid=uuid4(),
            project=api.projects[project][0],
        )
    new = f"/projects/{api.project}/incidents/new"
    # An organization admin may see a template of the mill, but not through the shop.
    for who in ("editor", "org_admin"):
        for step in ("edit", "delete"):
            assert "Foreign-q7" not in await seen(api, f"{path}?show={step}&uid={uid}", who, 404)
        assert "Foreign-q7" not in await seen(api, f"{new}?template={uid}", who, 404)
        assert "Foreign-q7" not in await seen(api, new, who)
    for act in ("save", "delete"):
        await sent(api, path, act=act, template=str(uid), **FORM)
    form = {"about": "components", "title": "kept", "impact": "minor", "status": "investigating"}
    text = await sent(api, new, act="fill", template=str(uid), **form)
    assert "Foreign-q7" not in text
    assert await api.rows("select name from incident_templates") == [("Foreign-q7",)]


async def test_a_template_fills_the_form_and_its_texts_can_be_changed(api: Api) -> None:
    new = f"/projects/{api.project}/incidents/new"
    assert 'name="template"' not in await seen(api, new, "editor")
    nasty = "\u202e<script>alert(1)</script>"
    uid = await api.new_incident_template(
        name=f"{nasty} " + "x" * 150, title=nasty, impact=IncidentImpact.CRITICAL, body="One.\nTwo."
    )
    text = await seen(api, f"{new}?template={uid}", "editor")
    assert "<script>alert" not in text
    assert f'value="{uid}" selected' in text
    assert 'value="critical" checked' in text
    assert ">\nOne.\nTwo.</textarea>" in text
    await api.new_monitor(name="Checkout")
    typed = {
        "about": "monitor",
        "monitor": "checkout",
        "title": "Typed",
        "impact": "minor",
        "status": "identified",
        "body": "Typed.",
        "public": "true",
        "template": str(uid),
    }
    answer = await send(api, new, act="fill", **typed)
    text = str(await answer.get_data(as_text=True))
    assert 'value="checkout"' in text
    assert 'value="identified" checked' in text
    assert "Typed" not in text.partition("<main")[2]
    kept = str(await (await send(api, new, act="fill", **{**typed, "template": ""})).get_data())
    assert 'value="Typed"' in kept
    answer = await send(api, new, act="open", **{**typed, "title": "My own", "body": "Mine."})
    assert answer.status_code == 303
    found = await api.rows(
        "select i.title, u.body from incidents i join incident_updates u"
        " on u.org = i.org and u.incident = i.id"
    )
    assert found == [("My own", "Mine.")]
    async with api.pool.transaction("delete") as tx:
        await tx.execute("delete from incident_templates")
    text = await sent(api, new, act="fill", **typed)
    assert "Template was deleted." in text
    assert 'value="Typed"' in text
    await seen(api, f"{new}?template={uid}", "editor", 404)
    await seen(api, f"{new}?template=x", "editor", 404)


@pytest.mark.needs("chromium")
@pytest.mark.soak
def test_on_a_phone_without_scripts_a_template_is_made_and_opens_an_incident(
    open_page: Open, leadline: Daemon, project: str
) -> None:
    page = open_page(f"/projects/{project}/settings", viewport=PHONE, scripts=False)
    page.get_by_role("main").get_by_role("link", name="Incident templates").click()
    page.get_by_role("link", name="Add template").first.click()
    page.get_by_label("Name").fill("Payments")
    page.get_by_label("Title").fill("Payments fail")
    page.get_by_text("Major", exact=True).click()
    page.get_by_label("First message").fill("We are investigating.")
    page.get_by_role("button", name="Add template").click()
    expect(page.get_by_role("status")).to_contain_text("The template was added.")
    page.goto(f"/projects/{project}/incidents/new")
    page.get_by_text("Components of a status page", exact=True).click()
    page.get_by_label("Template").select_option("Payments")
    page.get_by_role("button", name="Fill in").click()
    expect(page.get_by_label("Title")).to_have_value("Payments fail")
    expect(page.get_by_label("Message")).to_have_value("We are investigating.")
    expect(page.get_by_role("radio", name="Components of a status page")).to_be_checked()
    page.get_by_label("Title").fill("Card payments fail")
    # Enter opens the incident: it does not fill in the template again.
    page.get_by_label("Title").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Card payments fail")
    (found,) = leadline.api("GET", f"/projects/{project}/incidents")
    assert (found["title"], found["impact"]) == ("Card payments fail", "major")
