"""The list and the editor of status pages in the console, without scripts. The tests compare the
preview with the public page.
"""

import html
import re
from typing import Any
from urllib.parse import urlencode

import pytest

from leadline.http.auth.passwords import Passwords
from leadline.http.wire.options import HttpOptions
from leadline.probes.net.egress import make_reach
from leadline.probes.net.egress_policy import notify_policy
from leadline.probes.senders.send_result import OutgoingMail, SendContext
from leadline.storage.engine.pools import Pool
from leadline.storage.status_pages.rules.status_page import COMPONENTS_MOST, Visibility
from leadline.storage.status_pages.rules.status_page import ComponentStatus as PageStatus
from leadline.storage.status_pages.rules.status_page_edit import moved_positions
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api, open_api
from tests.support.app.paging import see

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
PAGE_BYTES_MOST = 101_000
NASTY = "<img src=x onerror=alert(1)>\"'&"


async def send(api: Api, path: str, who: str = "org_admin", **form: Any) -> Any:
    return await api.ask(who, "POST", path, data=urlencode(form).encode(), headers=FORM)


async def text_of(answer: Any) -> str:
    return str(await answer.get_data(), "utf-8")


async def seen(api: Api, path: str, who: str = "org_admin", status: int = 200) -> str:
    answer = await api.ask(who, "GET", path)
    text = await text_of(answer)
    assert answer.status_code == status, text[-600:]
    return text


def first_line(page: str) -> str:
    found = re.search(r"<h1[^>]*>(.*?)</h1>", page, re.DOTALL)
    assert found is not None
    return html.unescape(re.sub(r"<[^>]*>", "", found[1])).strip()


def all_of(api: Api, project: str = "acme/shop") -> str:
    return f"/projects/{api.projects[project][1]}/status-pages"


def value_of(page: str, field: str) -> str:
    found = re.search(rf'<input id="{field}"[^>]* value="([^"]*)"', page)
    assert found is not None, field
    return html.unescape(found[1])


async def names(api: Api) -> list[str]:
    rows = await api.rows("select name from status_components order by position, id")
    return [name for (name,) in rows]


async def test_the_list_shows_the_current_status_of_each_page(api: Api) -> None:
    assert first_line(await seen(api, all_of(api), "viewer")) == "No status page yet"
    good = await api.new_status_page(title="Harbour", slug="harbour", project=None)
    await api.new_component(good)
    page = await seen(api, all_of(api), "viewer")
    assert first_line(page) == "The status page reports no problem"
    bad = await api.new_status_page(title="Mill", slug="mill")
    await api.new_component(bad, manual_status=PageStatus.MAJOR_OUTAGE)
    page = await seen(api, all_of(api), "viewer")
    assert first_line(page) == "1 of 2 status pages reports a problem"
    for slug in ("harbour", "mill"):
        public = first_line(await seen(api, f"/status/{slug}", "nobody"))
        assert html.escape(public) in page
        assert f"/status/{slug}</a>" in page


async def test_viewers_get_no_token_and_no_forms(api: Api) -> None:
    uid = await api.new_status_page(visibility=Visibility.UNLISTED, title="Quiet")
    component = await api.new_component(uid)
    one = f"{all_of(api)}/{uid}"
    for who in ("viewer", "editor", "project_admin", "shopkeeper"):
        for path in (all_of(api), one):
            page = await seen(api, path, who)
            assert "Quiet" in page
            assert "token=" not in page
            assert "status-pages/new" not in page
            assert f'action="{one}' not in page
        await seen(api, f"{one}/preview", who, 403)
        await seen(api, f"{one}/delete", who, 403)
        for form in ({"act": f"remove:{component}"}, {"act": "page", "title": "Mine"}):
            assert (await send(api, one, who, **form)).status_code == 403
        assert (await send(api, f"{one}/delete", who)).status_code == 403
    page = await seen(api, one)
    found = re.search(r'href="([^"]*token=[^"]*)"', page)
    assert found is not None
    address = html.unescape(found[1]).partition("//")[2].partition("/")[2]
    assert "Quiet" in await seen(api, f"/{address}", "nobody")


async def test_pages_of_other_projects_and_organizations_are_not_found(api: Api) -> None:
    mill = await api.new_status_page(project=api.projects["acme/mill"][1], title="Of the mill")
    assert "Of the mill" not in await seen(api, all_of(api), "shopkeeper")
    for path in ("", "/preview", "/delete"):
        status = 404 if path == "" else 403
        await seen(api, f"{all_of(api)}/{mill}{path}", "shopkeeper", status)
        await seen(api, f"{all_of(api)}/{mill}{path}")
    strange = all_of(api, next(name for name in api.projects if name.startswith("other/")))
    await seen(api, f"{strange}/{mill}", "stranger", 404)
    for path, act in ((f"{strange}/{mill}/delete", ""), (f"{strange}/{mill}", "page")):
        assert (await send(api, path, "stranger", act=act, title="X")).status_code == 404
    assert await api.rows("select title from status_pages") == [("Of the mill",)]


async def test_the_source_of_a_component_is_named_only_to_its_project(api: Api) -> None:
    uid = await api.new_status_page(project=None)
    mill = await api.new_monitor("acme/mill", name="inner-name-1")
    await api.new_component(uid, name="Grinding", monitor=mill.uid)
    one = f"{all_of(api)}/{uid}"
    page = await seen(api, one, "shopkeeper")
    assert "Grinding" in page
    assert "a monitor of another project" in page
    assert "inner-name-1" not in page
    assert str(mill.uid) not in page
    assert f'<a href="/monitors/{mill.uid}">monitor inner-name-1</a>' in await seen(
        api, one, "viewer"
    )


async def test_a_full_page_is_split_into_pages_of_fifty_components(api: Api) -> None:
    uid = await api.new_status_page(title="Large")
    first = await api.new_component(uid)
    async with api.pool.transaction("as many as may be") as tx:
        await tx.execute(
            "insert into status_components (org, uid, page, name, description, group_name,"
            " position, source, manual_status, created_at, updated_at)"
            " select org, gen_random_uuid(), page, repeat('n', 40), '', 'A group of them', n,"
            " source, manual_status, created_at, updated_at"
            " from status_components, generate_series(1, %(more)s) n",
            more=COMPONENTS_MOST - 1,
        )
    one = f"{all_of(api)}/{uid}"
    moves = 0
    for number in range(1, 5):
        page = await seen(api, f"{one}?find=&page={number}")
        moves += page.count('aria-label="Move')
        assert len(page.encode()) < PAGE_BYTES_MOST
    assert moves == 2 * COMPONENTS_MOST - 2
    # A move past the end of the shown list leads to the new position.
    form = {"act": f"down:{first}", "find": ""}
    for place in range(1, 51):
        answer = await send(api, one, **form)
        page = await seen(api, answer.headers["Location"].partition("#")[0])
        assert f'id="c-{first}"><td class="num muted">{place + 1}</td>' in page
    assert "Page 2 of 4" in page
    ((other,),) = await api.rows("select uid from status_components where position = 60")
    answer = await send(api, one, act=f"remove:{other}", page="2")
    assert answer.headers["Location"] == f"{one}?page=2#parts"
    for _ in range(20):
        await api.new_status_page()
    text = await seen(api, all_of(api), "viewer")
    assert first_line(text) == "21 status pages"
    assert "Page 1 of 2" in text
    assert text.count("/status-pages/0") == 20
    assert (await seen(api, f"{all_of(api)}?page=2")).count("/status-pages/0") == 1


async def test_a_page_is_created_for_a_project_or_the_organization(api: Api) -> None:
    for scope, project in (("project", api.project), ("organization", None)):
        form = {"title": scope, "slug": scope, "visibility": "internal", "scope": scope}
        made = await send(api, f"{all_of(api)}/new", **form)
        assert made.status_code == 303
        rows = await api.rows(
            "select g.visibility, p.uid from status_pages g left join projects p"
            " on p.org = g.org and p.id = g.project where g.slug = %(slug)s",
            slug=scope,
        )
        assert rows == [("internal", project)]
        assert first_line(await seen(api, made.headers["Location"])) == scope


@pytest.mark.parametrize(
    ("title", "slug"), [("Shop & Søn", "shop-son"), ("2. Seite", "page-2-seite"), ("店", "page")]
)
async def test_an_empty_slug_is_made_from_the_title(api: Api, title: str, slug: str) -> None:
    form = {"title": title, "slug": " ", "visibility": "internal", "scope": "project"}
    assert (await send(api, f"{all_of(api)}/new", **form)).status_code == 303
    assert await api.rows("select slug from status_pages where title = %(t)s", t=title) == [(slug,)]
    again = await send(api, f"{all_of(api)}/new", **form)
    assert again.status_code == 400
    assert "Slug is already in use." in await text_of(again)


@pytest.mark.parametrize(
    ("field", "given", "said"),
    [
        ("title", " ", "Title must not be blank."),
        ("title", "x" * 201, "Title must be at most 200 characters."),
        ("slug", "Not a slug", "Slug must match"),
        ("slug", "taken", "Slug is already in use."),
    ],
)
async def test_a_refused_page_form_keeps_its_input(
    api: Api, field: str, given: str, said: str
) -> None:
    await api.new_status_page(slug="taken")
    form = {"title": NASTY, "slug": "mine", "visibility": "unlisted", "scope": "organization"}
    answer = await send(api, f"{all_of(api)}/new", **{**form, field: given})
    page = await text_of(answer)
    assert answer.status_code == 400
    assert re.search(rf'id="wrong-{field}" role="alert">{re.escape(said)}', page)
    assert re.search(rf'<input id="{field}"[^>]*aria-invalid="true"', page)
    assert value_of(page, "title") == ({**form, field: given})["title"]
    assert value_of(page, "slug") == ({**form, field: given})["slug"]
    assert 'value="unlisted" checked>' in page
    assert 'value="organization" checked>' in page
    assert re.search(rf'class="errbox" role="alert">Fix 1 error below: <a href="#{field}">', page)
    assert "<img" not in page


async def test_monitors_and_services_are_found_by_name_and_added(api: Api) -> None:
    uid = await api.new_status_page()
    one = f"{all_of(api)}/{uid}"
    monitor = await api.new_monitor(name="Checkout 100% sure")
    await api.new_monitor("acme/mill", name="Checkout of the mill")
    service = await api.new_service(name="Check-in")
    page = await seen(api, f"{one}?find=CHECK")
    assert f"add-monitor:{monitor.uid}" in page
    assert f"add-service:{service}" in page
    assert "of the mill" not in page, "the page belongs to the shop project"
    assert "add-service" not in await seen(api, f"{one}?find=%25")
    assert "No matching monitor or service" in await seen(api, f"{one}?find=_heck")
    assert "add-monitor" not in await seen(api, one)
    assert "add-monitor" not in await seen(api, f"{one}?find=check", "viewer")
    form = {"find": "check", "act": f"add-monitor:{monitor.uid}", "name": "Checkout"}
    answer = await send(api, one, **form)
    assert answer.status_code == 303
    assert answer.headers["Location"].startswith(f"{one}?find=check&at=")
    assert (await send(api, one, act=f"add-service:{service}", name="Check-in")).status_code == 303
    page = await seen(api, f"{one}?find=check")
    assert page.count(", on the page") == 2
    assert f'<a href="/monitors/{monitor.uid}">monitor Checkout 100% sure</a>' in page
    assert await names(api) == ["Checkout", "Check-in"]


async def test_an_organization_page_finds_monitors_of_all_projects(api: Api) -> None:
    uid = await api.new_status_page(project=None)
    await api.new_monitor("acme/mill", name="Checkout of the mill")
    assert "Checkout of the mill" in await seen(api, f"{all_of(api)}/{uid}?find=check")


async def test_foreign_monitors_and_components_are_refused(api: Api) -> None:
    uid = await api.new_status_page()
    mill = await api.new_monitor("acme/mill")
    one = f"{all_of(api)}/{uid}"
    answer = await send(api, one, find="", act=f"add-monitor:{mill.uid}", name="Mine")
    assert answer.status_code == 400
    assert await names(api) == []
    other = await api.new_component()
    for act in ("remove", "up", "down", "component"):
        form = {"act": f"{act}:{other}", "name": "Mine"}
        assert (await send(api, one, **form)).status_code == 404
    assert (await send(api, one, act="remove:nonsense")).status_code == 404
    assert (await send(api, one, act="nonsense")).status_code == 400
    assert len(await names(api)) == 1


async def test_an_invalid_name_is_reported_at_its_match_and_kept(api: Api) -> None:
    uid = await api.new_status_page()
    monitor = await api.new_monitor(name="Checkout")
    one = f"{all_of(api)}/{uid}"
    form = {"find": "check", "act": f"add-monitor:{monitor.uid}", "name": "x" * 101}
    answer = await send(api, one, **form)
    page = await text_of(answer)
    assert answer.status_code == 400
    assert f'id="wrong-{monitor.uid}" role="alert">Name must be at most 100 characters.' in page
    assert f'Fix 1 error below: <a href="#name-{monitor.uid}">' in page
    assert f'<input id="name-{monitor.uid}"' in page
    assert "x" * 101 in page


async def test_a_manual_component_is_added_edited_and_removed(api: Api) -> None:
    uid = await api.new_status_page(slug="by-hand")
    one = f"{all_of(api)}/{uid}"
    form = {"act": "add-manual", "name": "Phone", "group": "Desk", "manual_status": "degraded"}
    refused = await send(api, one, **{**form, "name": " "})
    page = await text_of(refused)
    assert refused.status_code == 400
    assert 'id="wrong-new-name" role="alert">Name must not be blank.' in page
    assert 'Fix 1 error below: <a href="#new-name">' in page
    assert value_of(page, "new-group") == "Desk"
    assert '<option value="degraded" selected>' in page
    assert (await send(api, one, **form)).status_code == 303
    ((component,),) = await api.rows("select uid from status_components")
    edited = {
        "act": f"component:{component}",
        "name": "Telephone",
        "group": "",
        "description": "Weekdays",
        "manual_status": "major_outage",
    }
    refused = await send(api, one, **{**edited, "group": "g" * 101})
    page = await text_of(refused)
    assert refused.status_code == 400
    assert 'id="wrong-group" role="alert">Group must be at most 100 characters.' in page
    assert value_of(page, "name") == "Telephone"
    assert "\nWeekdays</textarea>" in page
    assert '<option value="major_outage" selected>' in page
    assert (await send(api, one, **edited)).status_code == 303
    columns = "name, group_name, description, manual_status"
    rows = await api.rows(f"select {columns} from status_components")
    assert rows == [("Telephone", "", "Weekdays", "major_outage")]
    assert first_line(await seen(api, "/status/by-hand", "nobody")) == "Major outage"
    assert (await send(api, one, act=f"remove:{component}")).status_code == 303
    assert await names(api) == []


async def test_latency_is_a_checkbox_or_a_reason(api: Api) -> None:
    uid = await api.new_status_page(slug="timed")
    one = f"{all_of(api)}/{uid}"
    push = await api.new_monitor(type="push", target="")
    for source, why in (
        ({"monitor": push.uid}, "this type of monitor does not measure latency"),
        ({"service": await api.new_service()}, "a service combines the checks of several monitors"),
        ({"manual_status": PageStatus.OPERATIONAL}, "the status is set by hand"),
    ):
        component = await api.new_component(uid, **source)
        page = await seen(api, f"{one}?edit={component}")
        assert f"Not available: {why}." in page
        assert re.search(r'<input id="show_latency"[^>]* disabled', page)
        form = {"act": f"component:{component}", "name": "Till", "show_latency": "on"}
        form |= {"manual_status": "operational"} if "manual_status" in source else {}
        assert (await send(api, one, **form)).status_code == 303
    assert await api.rows("select count(*) from status_components where show_latency") == [(0,)]
    component = await api.new_component(uid, monitor=(await api.new_monitor()).uid)
    form = {"act": f"component:{component}", "name": "Till"}
    for ticked in (True, False):
        given = form | ({"show_latency": "on"} if ticked else {})
        assert (await send(api, one, **given)).status_code == 303
        page = await seen(api, f"{one}?edit={component}")
        found = re.search(r'<input id="show_latency"[^>]*>', page)
        assert found is not None
        assert (" checked" in found[0], " disabled" in found[0]) == (ticked, False)
        assert ("No latency" in await seen(api, f"{one}/preview")) is ticked
    refused = await text_of(await send(api, one, **form, show_latency="on", group="g" * 101))
    found = re.search(r'<input id="show_latency"[^>]*>', refused)
    assert found is not None
    assert " checked" in found[0]


async def test_a_repeated_submission_adds_one_component(api: Api) -> None:
    uid = await api.new_status_page()
    monitor = await api.new_monitor()
    one = f"{all_of(api)}/{uid}"
    for form in (
        {"act": f"add-monitor:{monitor.uid}", "name": "Checkout"},
        {"act": "add-manual", "name": "Checkout", "manual_status": "degraded"},
    ):
        first, second = await send(api, one, **form), await send(api, one, **form)
        assert (first.status_code, second.status_code) == (303, 303)
        assert first.headers["Location"] == second.headers["Location"]
    assert await names(api) == ["Checkout", "Checkout"]
    await send(api, one, act=f"add-monitor:{monitor.uid}", name="Till")
    assert len(await names(api)) == 3


async def test_components_move_and_stop_at_the_ends(api: Api) -> None:
    uid = await api.new_status_page()
    for name in ("A", "B", "C"):
        await api.new_component(uid, name=name)
    one = f"{all_of(api)}/{uid}"
    of = dict(await api.rows("select name, uid from status_components"))
    for act, name, after in (
        ("down", "A", "BAC"),
        ("down", "A", "BCA"),
        ("down", "A", "BCA"),
        ("up", "C", "CBA"),
        ("up", "C", "CBA"),
    ):
        assert (await send(api, one, act=f"{act}:{of[name]}")).status_code == 303
        assert "".join(await names(api)) == after
    page = await seen(api, one)
    assert 'aria-label="Move C up"' not in page
    assert 'aria-label="Move A down"' not in page
    async with api.pool.transaction("as an API may leave them") as tx:
        await tx.execute("update status_components set position = 7")
    assert "".join(await names(api)) == "ABC"
    await send(api, one, act=f"up:{of['C']}")
    assert "".join(await names(api)) == "ACB"


def test_moves_keep_distinct_positions_and_renumber_equal_ones() -> None:
    assert moved_positions([0, 10, 20], 0, 1) == [10, 0, 20]
    assert moved_positions([0, 10, 20], 2, -2) == [10, 20, 0]
    assert moved_positions([5, 5, 5], 1, 1) == [0, 2, 1]
    assert moved_positions([3, 4], 1, 1) == [3, 4]


async def test_title_and_visibility_are_edited_and_a_refused_title_is_kept(
    api: Api,
) -> None:
    uid = await api.new_status_page(title="Before")
    one = f"{all_of(api)}/{uid}"
    refused = await send(api, one, act="page", title="", visibility="internal")
    page = await text_of(refused)
    assert refused.status_code == 400
    assert 'id="wrong-title" role="alert">Title must not be blank.' in page
    assert 'value="internal" checked>' in page
    assert 'class="errbox" role="alert">Fix 1 error below: <a href="#title">' in page
    assert "Before" in page
    answer = await send(api, one, act="page", title="After", visibility="unlisted")
    assert answer.status_code == 303
    assert await api.rows("select title, visibility from status_pages") == [("After", "unlisted")]
    assert "token=" in await seen(api, one)


async def test_a_page_is_deleted_after_a_confirmation(api: Api) -> None:
    uid = await api.new_status_page(title="Doomed")
    await api.new_component(uid)
    path = f"{all_of(api)}/{uid}/delete"
    assert first_line(await seen(api, path)) == "Delete Doomed?"
    assert len(await names(api)) == 1
    answer = await send(api, path)
    assert (answer.status_code, answer.headers["Location"]) == (303, all_of(api))
    assert await api.rows("select count(*) from status_pages") == [(0,)]
    assert (await send(api, path)).status_code == 404


async def test_the_preview_matches_the_public_page(api: Api) -> None:
    uid = await api.new_status_page(slug="same", title="Same")
    monitor = await api.new_monitor(name="inner-name-1")
    await api.new_component(uid, name="Checkout", monitor=monitor.uid)
    await api.new_component(uid, name="Phone", manual_status=PageStatus.DEGRADED)
    await api.new_incident(title="Slow", body="We look into it.", monitor=monitor.uid)
    preview = await seen(api, f"{all_of(api)}/{uid}/preview")
    public = await seen(api, "/status/same", "nobody")
    assert "We look into it." in public
    assert "inner-name-1" not in preview
    framed = '<base target="_blank">\n'
    assert preview.replace(framed, "") == public
    assert framed in preview


async def test_the_preview_equals_the_public_page(pool: Pool, passwords: Passwords) -> None:
    reach = make_reach(notify_policy(), nameservers=())
    mail = OutgoingMail(host="mail.example.com", port=25, sender="status@example.com", reach=reach)
    means = SendContext(reach=reach, now=lambda: FROZEN_NOW, mail=mail)
    options = HttpOptions(regions=frozenset({"core"}), public_base_url="https://up.example.com")
    async with open_api(pool, FROZEN_NOW, passwords, means=means, options=options) as api:
        uid = await api.new_status_page(slug="mailing")
        preview = await seen(api, f"{all_of(api)}/{uid}/preview")
        public = await seen(api, "/status/mailing", "nobody")
    assert "/status/mailing/subscribe" in public
    assert preview.replace('<base target="_blank">\n', "") == public


async def test_an_internal_page_has_a_public_preview(api: Api) -> None:
    uid = await api.new_status_page(visibility=Visibility.INTERNAL, title="Inside")
    await api.new_component(uid, manual_status=PageStatus.MAJOR_OUTAGE, name="Phone")
    assert first_line(await seen(api, f"{all_of(api)}/{uid}/preview")) == "Major outage"


async def test_only_the_editor_can_frame_and_only_the_preview_is_framed(api: Api) -> None:
    uid = await api.new_status_page(slug="framed")
    one = f"{all_of(api)}/{uid}"
    for path, frames, ancestors in (
        (one, True, "'none'"),
        (f"{one}/preview", False, "'self'"),
        (f"{one}/delete", False, "'none'"),
        (all_of(api), False, "'none'"),
        ("/status/framed", False, "'none'"),
    ):
        policy = (await api.ask("org_admin", "GET", path)).headers["Content-Security-Policy"]
        assert ("frame-src 'self'" in policy) is frames, path
        assert f"frame-ancestors {ancestors}" in policy, path
        assert "default-src 'none'" in policy


async def test_names_are_escaped(api: Api) -> None:
    uid = await api.new_status_page(title=NASTY)
    await api.new_monitor(name=NASTY)
    service = await api.new_service(name=NASTY)
    component = await api.new_component(uid, name=NASTY, group=NASTY, service=service)
    one = f"{all_of(api)}/{uid}"
    find = urlencode({"find": NASTY, "edit": component})
    for path in (all_of(api), one, f"{one}?{find}", f"{one}/preview", f"{one}/delete"):
        page = await seen(api, path)
        assert "<img" not in page, path
        assert "&lt;img src=x onerror=alert(1)&gt;" in page
        assert " style=" not in page
        assert page.count("<script") == page.count('<script type="module" src="/static/')


async def test_a_domain_is_claimed_proved_validated_and_removed(api: Api) -> None:
    uid = await api.new_status_page(title="Harbour")
    one, name = f"{all_of(api)}/{uid}", "status.harbour.example"
    answer = await send(api, one, act="domain", domain="Status.Harbour.example")
    assert answer.status_code == 303
    assert answer.headers["Location"].endswith("#own-host")
    page = await seen(api, one)
    assert value_of(page, "domain") == name
    copied = re.findall(r'data-copy="([^"]*)"', page[page.index('id="proof"') :])
    ((token,),) = await api.rows("select token from status_page_domain_claims")
    text = f"leadline-domain={token}"
    file = f"http://{name}/.well-known/leadline-domain"
    assert copied[:4] == [f"_leadline.{name}", text, file, text]
    for evidence, said in (
        ({}, "neither the record nor the file exists"),
        ({"file": "x"}, "with another value"),
        ({"is_answered": False}, "the name servers did not answer"),
    ):
        see(api, **evidence)
        assert (await send(api, one, act="domain", domain=name)).status_code == 303
        page = await seen(api, one)
        assert said in page
        assert ">Check again</button>" in page
    see(api, records=frozenset({token}))
    assert (await send(api, one, act="domain", domain=name)).status_code == 303
    page = await seen(api, one)
    assert f'The page is served at <a class="mono" href="https://{name}/">' in page
    assert 'id="proof"' not in page
    for wrong in ("not a name", "http://status.example", "127.0.0.1"):
        answer = await send(api, one, act="domain", domain=wrong)
        page = await text_of(answer)
        assert answer.status_code == 400
        assert "Domain" in page
        assert value_of(page, "domain") == wrong
    other = await api.new_status_page(title="Mill", slug="mill")
    answer = await send(api, f"{all_of(api)}/{other}", act="domain", domain=name)
    assert answer.status_code == 400
    assert "is already in use" in await text_of(answer)
    assert (await send(api, one, act="domain", domain="next.harbour.example")).status_code == 303
    assert f"The page stays at {name} until" in await seen(api, one)
    assert (await send(api, one, act="domain", domain="")).status_code == 303
    assert await api.rows("select domain from status_page_domains") == []


async def test_branding_is_edited_validated_and_kept(api: Api) -> None:
    uid = await api.new_status_page(slug="branded")
    one = f"{all_of(api)}/{uid}"
    body = {"accent_color": "#17559c", "logo_url": "https://cdn.example/logo.svg"}
    await api.ask("global_admin", "PUT", "/api/v1/settings/branding", body)
    page = await seen(api, one)
    assert re.search(r'<input id="accent_color"[^>]* placeholder="#17559c" value=""', page)
    given = {
        "act": "branding",
        "accent_color": "#AB1234",
        "logo_url": "https://own.example/logo.svg",
        "support_url": "",
        "footer_text": "Mill Ltd\r\nQuay 2",
    }
    for field, wrong, said in (
        ("accent_color", "red", "Accent must be a colour as #rrggbb."),
        ("logo_url", "http://own.example/", "Logo must be an https URL."),
        ("support_url", NASTY, "Support must be an https URL."),
        ("footer_text", "x" * 501, "Footer must be at most 500 characters."),
    ):
        answer = await send(api, one, **given | {field: wrong})
        page = await text_of(answer)
        assert answer.status_code == 400
        assert f'id="wrong-{field}" role="alert">{said}' in page
        assert f'Fix 1 error below: <a href="#{field}">' in page
        assert "<img" not in page
        assert "https://own.example/logo.svg" in page or field == "logo_url"
    answer = await send(api, one, **given)
    assert (answer.status_code, answer.headers["Location"]) == (303, f"{one}#branding")
    page = await seen(api, one)
    assert value_of(page, "accent_color") == "#AB1234"
    assert "\nMill Ltd\nQuay 2</textarea>" in page
    answer = await api.ask("org_admin", "GET", f"{one}/preview")
    assert "https://own.example" in answer.headers["Content-Security-Policy"]
    assert "/theme/ab1234" in await text_of(answer)


async def test_subscribers_are_filtered_by_address_and_removed(api: Api) -> None:
    uid = await api.new_status_page(title="Harbour")
    here = f"{all_of(api)}/{uid}/subscribers"
    assert first_line(await seen(api, here)) == "0 subscribers of Harbour"
    subscriber = await api.new_subscriber(uid)
    ((address,),) = await api.rows("select address from subscribers")
    page = await seen(api, here)
    assert address in page
    assert "not confirmed yet" in page
    async with api.pool.transaction("confirm") as tx:
        await tx.execute("update subscribers set confirmed_at = created_at")
    assert first_line(await seen(api, here)) == "1 subscriber of Harbour"
    part = address[1:6].upper()
    assert address in await seen(api, f"{here}?find={part}")
    page = await seen(api, f"{here}?find=%25")
    assert address not in page
    assert "No matching subscriber." in page
    # The URL of a chat is a secret: the filter finds the shown text only.
    async with api.pool.transaction("chat") as tx:
        await tx.execute(
            "update subscribers set kind = 'slack',"
            " address = 'https://hooks.slack.com/services/T0/B0/Secret1234'"
        )
    for part, is_found in (("HOOKS.slack.com/%E2%80%A61234", True), ("B0/", False), ("et1", False)):
        page = await seen(api, f"{here}?find={part}")
        assert ("hooks.slack.com/…1234" in page) is is_found, part
    for _ in range(2):
        assert (await send(api, here, remove=str(subscriber))).status_code == 303
    assert await api.rows("select 1 from subscribers") == []
    other = await api.new_status_page(title="Mill", slug="mill")
    kept = await api.new_subscriber(other)
    assert (await send(api, here, remove=str(kept))).status_code == 303
    assert await api.rows("select uid from subscribers") == [(kept,)]


async def test_a_listed_page_offers_its_badge_and_widget(api: Api) -> None:
    uid = await api.new_status_page(slug="shown")
    text = await seen(api, f"{all_of(api)}/{uid}")
    assert "/status/shown/badge.svg" in text
    assert "/status/shown/widget" in text
    hidden = await api.new_status_page(visibility=Visibility.INTERNAL)
    assert "badge.svg" not in await seen(api, f"{all_of(api)}/{hidden}")
