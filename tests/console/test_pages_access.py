"""Every page × everybody, through the real app: the sign-in, nothing to see, no, or the page."""

from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from leadline.http.route import Route
from leadline.http.table import ROUTES
from tests.http.cast import PEOPLE, Api

# As the interface's roles have it: to look is a viewer's, to write an editor's.
STATED = """
- GET /sign-in
- POST /sign-in
- GET /static/{file}
* GET /
V GET /projects/{projectID}
E POST /projects/{projectID}
V GET /projects/{projectID}/rows
V GET /monitors/{monitorID}
E POST /monitors/{monitorID}
E GET /monitors/{monitorID}/delete
E POST /monitors/{monitorID}/delete
E GET /projects/{projectID}/monitors/new
E POST /projects/{projectID}/monitors/new
V GET /projects/{projectID}/secrets
E POST /projects/{projectID}/secrets
V GET /projects/{projectID}/channels
E POST /projects/{projectID}/channels
E GET /monitors/{monitorID}/edit
E POST /monitors/{monitorID}/edit
"""
LETTERS = {
    (method, path): letter
    for letter, method, path in (line.split() for line in STATED.strip().splitlines())
}
PAGES = [route for route in ROUTES if route.page]
GUARDED = [route for route in PAGES if route.action.need.value != "-"]
FORMS = {
    "/projects/{projectID}": "target=http://127.0.0.1:1/",
    "/monitors/{monitorID}": "act=pause",
    "/monitors/{monitorID}/delete": "",
    "/projects/{projectID}/monitors/new": "type=push&fields=push&act=save&name=New&"
    "interval_seconds=60&grace_seconds=60&failure_threshold=1",
    "/projects/{projectID}/channels": "act=add&type=ntfy&name=New&config.topic=ops",
    "/projects/{projectID}/secrets": "act=add&name=new-{n}&value=x",
    "/monitors/{monitorID}/edit": "type=http&fields=http&act=save&name=New&"
    "target=http://127.0.0.1:1/&interval_seconds=60&failure_threshold=1",
}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
SEES_SHOP = {"shopkeeper", "viewer", "editor", "project_admin", "org_admin", "global_admin"}
WRITES_SHOP = SEES_SHOP - {"viewer"}


def test_the_table_holds_exactly_the_pages_that_are_stated_with_their_letters() -> None:
    assert {(r.method, r.path): r.action.need.value for r in PAGES} == LETTERS
    assert not any(route.in_document for route in PAGES)


async def call(api: Api, who: str, route: Route, monitor: UUID) -> Any:
    path = route.path.replace("{projectID}", str(api.project))
    path = path.replace("{monitorID}", str(monitor))
    form = FORMS[route.path].replace("{n}", str(next(api.numbers))).encode() if route.form else None
    return await api.ask(who, route.method, path, data=form, headers=FORM if route.form else None)


@pytest.mark.parametrize("route", GUARDED, ids=lambda route: f"{route.method} {route.path}")
async def test_everybody_gets_the_page_that_is_theirs(api: Api, route: Route) -> None:
    letter = LETTERS[route.method, route.path]
    for who in ["nobody", *PEOPLE]:
        monitor = await api.new_monitor(interval_seconds=3600)
        audited = await api.rows("select count(*) from audit_entries")
        answer = await call(api, who, route, monitor.uid)
        body = await answer.get_data()
        assert b'{"error"' not in body, "a person is answered with a page"
        if who == "nobody":
            assert answer.status_code == 303
            assert answer.headers["Location"].startswith("/sign-in?next=%2F")
        elif letter != "*" and who not in SEES_SHOP:
            assert answer.status_code == 404, who
        elif letter == "E" and who not in WRITES_SHOP:
            assert answer.status_code == 403, who
        else:
            assert answer.status_code in (200, 303), (who, body[-600:])
        if answer.status_code >= 400 or who == "nobody":
            assert await api.rows("select count(*) from audit_entries") == audited
        assert "default-src 'none'" in answer.headers.get("Content-Security-Policy", "") or (
            answer.status_code == 303
        )


@pytest.mark.parametrize(
    "route", [r for r in GUARDED if r.scope], ids=lambda route: f"{route.method} {route.path}"
)
async def test_a_stranger_sees_the_page_of_what_does_not_exist(api: Api, route: Route) -> None:
    monitor = await api.new_monitor()
    there = await call(api, "stranger", route, monitor.uid)
    path = route.path.replace("{projectID}", str(uuid7())).replace("{monitorID}", str(uuid7()))
    form = FORMS[route.path].encode() if route.form else None
    nowhere = await api.ask(
        "org_admin", route.method, path, data=form, headers=FORM if route.form else None
    )
    assert (there.status_code, await there.get_data()) == (404, await nowhere.get_data())


@pytest.mark.parametrize(
    "route", [r for r in GUARDED if r.form], ids=lambda route: f"{route.method} {route.path}"
)
async def test_a_form_of_another_site_changes_nothing(api: Api, route: Route) -> None:
    monitor = await api.new_monitor()
    path = route.path.replace("{projectID}", str(api.project))
    path = path.replace("{monitorID}", str(monitor.uid))
    before = await api.rows("select count(*), count(*) filter (where enabled) from monitors")
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://elsewhere.test"}):
        answer = await api.ask(
            "org_admin", "POST", path, data=FORMS[route.path].encode(), headers={**FORM, **headers}
        )
        assert answer.status_code == 403
    after = await api.rows("select count(*), count(*) filter (where enabled) from monitors")
    assert after == before


@pytest.mark.parametrize("who", ["viewer", "editor"])
async def test_only_those_who_may_write_are_given_secrets_and_buttons(api: Api, who: str) -> None:
    push = await api.new_monitor(type="push", target="", name="Job")
    page = await (await api.ask(who, "GET", f"/monitors/{push.uid}")).get_data(as_text=True)
    writes = who == "editor"
    assert ("leadline_push_" in page) is writes
    for mark in ("Pause</button>", "/edit", "/delete", "Renew the address"):
        assert (mark in page) is writes, mark
    guarded = await api.new_monitor(
        name="Guarded",
        config={
            "auth_mode": "basic",
            "username": "u",
            "password": "hidden-word",
            "headers": {"Authorization": "hidden-word", "X-Plain": "shown-word"},
        }
        | {"auth_mode": "none"},
    )
    page = await (await api.ask(who, "GET", f"/monitors/{guarded.uid}")).get_data(as_text=True)
    assert "hidden-word" not in page
    assert "shown-word" in page
    assert "Authorization" not in page


async def test_what_people_name_is_text_and_never_markup(api: Api) -> None:
    nasty = "<img src=x onerror=alert(1)>\"'&"
    made = await api.new_monitor(name=nasty, description=nasty, tags=[nasty])
    for path in (f"/projects/{api.project}", f"/monitors/{made.uid}", f"/monitors/{made.uid}/edit"):
        page = await (await api.ask("editor", "GET", path)).get_data(as_text=True)
        assert "<img" not in page
        assert "&lt;img src=x onerror=alert(1)&gt;" in page


async def test_every_page_has_nothing_inline_that_its_policy_would_refuse(api: Api) -> None:
    made = await api.new_monitor()
    for path in (
        "/sign-in",
        f"/projects/{api.project}",
        f"/monitors/{made.uid}",
        f"/monitors/{made.uid}/edit",
        f"/monitors/{made.uid}/delete",
        f"/projects/{api.project}/monitors/new",
        f"/projects/{api.project}/secrets",
    ):
        page = await (await api.ask("editor", "GET", path)).get_data(as_text=True)
        assert " style=" not in page
        assert "<style" not in page
        assert " onclick" not in page
        assert page.count("<script") == page.count('<script type="module" src="/static/')
