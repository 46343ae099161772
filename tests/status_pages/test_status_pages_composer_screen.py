"""The preview of an incident update shows the public text and the pages that will show it. The
tests compare it with the public page after the update.
"""

import re
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

import pytest
from playwright.sync_api import expect

from leadline.storage.incidents.rules.incident import IncidentStatus
from leadline.storage.status_pages.rules.status_page import Visibility
from tests.support.app.browser import PHONE
from tests.support.app.cast import Api
from tests.support.app.fixtures import Open
from tests.support.processes.daemon_process import Daemon
from tests.support.run.effort import varied

from ..server.test_console_quality_screen import overflow, violations
from .test_status_pages_preview_screen import make_page

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
NASTY = "<img src=x onerror=alert(1)>\"'&"


async def send(api: Api, incident: UUID, who: str = "editor", **form: Any) -> tuple[int, str]:
    body = urlencode(form).encode()
    answer = await api.ask(who, "POST", f"/incidents/{incident}", data=body, headers=FORM)
    return answer.status_code, await answer.get_data(as_text=True)


async def previewed(api: Api, incident: UUID, **form: Any) -> str:
    status, text = await send(api, incident, act="preview", **form)
    assert status == 200
    return outside_of(text)


def outside_of(page: str) -> str:
    found = re.search(
        r'id="outside" tabindex="-1">(.*?)</div>\s*<section [^>]*"(?:answer|told)-title"',
        page,
        re.DOTALL,
    )
    assert found is not None
    return found[1]


async def count_updates(api: Api) -> int:
    ((many,),) = await api.rows("select count(*) from incident_updates")
    return int(many)


async def test_the_preview_matches_the_public_page(api: Api) -> None:
    monitor = await api.new_monitor(name="inner-name-1")
    page = await api.new_status_page(slug="harbour", title="Harbour Goods")
    await api.new_component(page, name="Checkout", monitor=monitor.uid)
    incident = await api.new_incident(title="Payments fail", monitor=monitor.uid)
    written = await count_updates(api)
    form = {"status": "identified", "body": "One & two.\r\nThree.", "public": "true"}
    shown = await previewed(api, incident, **form)
    assert await count_updates(api) == written
    assert "<b>Harbour Goods</b></span>" in shown
    assert "Public. Affects: Checkout." in shown
    assert "Subject: <b>Harbour Goods: Payments fail</b>" in shown
    assert "inner-name-1" not in shown
    assert (await send(api, incident, act="update", **form))[0] == 303
    answer = await api.ask("nobody", "GET", "/status/harbour")
    public = await answer.get_data(as_text=True)
    for words in ("Payments fail", "Identified", "One &amp; two.\nThree."):
        assert words in shown
        assert words in public


async def test_an_automatic_incident_is_titled_with_the_component_name(api: Api) -> None:
    monitor = await api.new_monitor(name="inner-name-1")
    for slug, name in (("one", "Checkout"), ("two", "Till")):
        page = await api.new_status_page(slug=slug, title=f"Page {slug}")
        await api.new_component(page, name=name, monitor=monitor.uid)
    incident = await api.new_incident(title="inner-name-1 is down", monitor=monitor.uid)
    async with api.pool.transaction("opened by itself") as tx:
        await tx.execute("update incidents set source = 'auto'")
    shown = await previewed(api, incident, status="identified", body="We know.", public="true")
    assert "<b>Checkout is down</b>" in shown
    assert "<b>Till is down</b>" in shown
    assert "inner-name-1" not in shown


async def test_the_preview_says_that_no_public_page_shows_the_update(api: Api) -> None:
    monitor = await api.new_monitor()
    incident = await api.new_incident(monitor=monitor.uid)
    form = {"status": "identified", "body": "We know."}
    assert "Not shown on any status page" in await previewed(api, incident, **form, public="true")
    page = await api.new_status_page(visibility=Visibility.INTERNAL, title="Inside")
    await api.new_component(page, monitor=monitor.uid)
    shown = await previewed(api, incident, **form, public="true")
    assert "Shown only on internal status pages." in shown
    assert "<b>Inside</b>" in shown
    assert "Members only." in shown
    assert "Subject:" not in shown
    other = await api.new_status_page(visibility=Visibility.UNLISTED, title="Quiet")
    await api.new_component(other, monitor=monitor.uid)
    shown = await previewed(api, incident, **form, public="true")
    assert "not public" not in shown
    assert "<b>Quiet</b>" in shown
    assert "Anyone with the link can open it." in shown
    shown = await previewed(api, incident, **form)
    assert "Internal note: not public." in shown
    assert "Quiet" not in shown


async def test_an_incident_without_a_source_is_on_pages_of_its_project(
    api: Api,
) -> None:
    await api.new_status_page(title="Of the shop")
    await api.new_status_page(title="Of the mill", project=api.projects["acme/mill"][1])
    await api.new_status_page(title="Of all", project=None)
    incident = await api.new_incident()
    shown = await previewed(api, incident, status="identified", body="We know.", public="true")
    assert "Of the shop" in shown
    assert "Of the mill" not in shown
    assert "Of all" not in shown


async def test_a_preview_keeps_the_input_and_shows_errors(api: Api) -> None:
    incident = await api.new_incident()
    status, text = await send(api, incident, act="preview", status="monitoring", body="Half a sent")
    assert status == 200
    assert "\nHalf a sent</textarea>" in text
    assert 'value="monitoring" checked' in text
    assert re.search(r'<input id="public"[^>]*checked', text) is None
    for form, said in (
        ({"status": "investigating", "body": " "}, "is required if"),
        ({"status": "identified", "body": "x" * 10_001}, "must be at most 10000 characters"),
    ):
        status, text = await send(api, incident, act="preview", public="true", **form)
        assert status == 400
        assert said in text
        assert form["body"] not in outside_of(text).split()
    assert (await send(api, incident, act="preview", status="nonsense", body="x"))[0] == 400
    await send(api, incident, act="update", status="monitoring", body="x")
    status, text = await send(api, incident, act="preview", status="identified", body="Back")
    assert status == 400
    assert "Status can only move forward" in text
    assert "\nBack</textarea>" in text


async def test_a_note_on_a_resolved_incident_has_a_preview(api: Api) -> None:
    await api.new_status_page(title="Harbour Goods")
    incident = await api.new_incident(status=IncidentStatus.RESOLVED)
    form = {"for": "all", "body": "Money was sent back."}
    assert "Internal note: not public" in await previewed(api, incident, **form)
    status, text = await send(api, incident, act="preview", public="true", **form)
    assert status == 200
    assert "Money was sent back.</p>" in outside_of(text)
    assert re.search(r'<input id="public"[^>]*checked', text)


async def test_a_preview_needs_the_right_to_write_and_escapes_text(api: Api) -> None:
    page = await api.new_status_page(title=NASTY)
    await api.new_component(page, name=NASTY)
    incident = await api.new_incident(title=NASTY)
    assert (await send(api, incident, "viewer", act="preview", body="x"))[0] == 403
    assert (await send(api, incident, "stranger", act="preview", body="x"))[0] == 404
    form = {"status": "identified", "body": NASTY, "public": "true"}
    status, text = await send(api, incident, act="preview", **form)
    assert status == 200
    assert "<img" not in text
    assert outside_of(text).count("&lt;img src=x onerror=alert(1)&gt;") >= 5


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("scripts", [True, False])
def test_the_preview_follows_the_input(
    open_page: Open, leadline: Daemon, project: str, scripts: bool
) -> None:
    title = f"Harbour {uuid4()}"
    make_page(leadline, project, title=title)
    body = {"title": "Payments fail", "status": "investigating"}
    incident = leadline.api("POST", f"/projects/{project}/incidents", body)["id"]
    page = open_page(f"/incidents/{incident}", scripts=scripts)
    outside = page.locator("#outside .mail").filter(has_text=title)
    page.get_by_label("Message").press_sequentially("We look <b>into</b> it.")
    if not scripts:
        expect(outside).not_to_contain_text("We look")
        page.get_by_role("button", name="Preview").click()
    expect(outside).to_contain_text("We look <b>into</b> it.")
    expect(outside).to_contain_text("Investigating")
    page.get_by_role("radio", name="Identified").check(force=True)
    if not scripts:
        page.get_by_role("button", name="Preview").click()
    expect(outside).to_contain_text("Identified")
    expect(page.get_by_label("Message")).to_have_value("We look <b>into</b> it.")
    page.get_by_role("button", name="Publish update").click()
    expect(page.locator("ol.time")).to_contain_text("We look <b>into</b> it.")


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("scheme", varied(["dark"], ["light", "dark"]))
def test_a_preview_is_accessible_and_fits_a_phone(
    open_page: Open, leadline: Daemon, project: str, scheme: Any
) -> None:
    make_page(leadline, project, title=f"Harbour-{'x' * 120}")
    body = {"title": f"Payments-{'x' * 120}", "status": "investigating"}
    incident = leadline.api("POST", f"/projects/{project}/incidents", body)["id"]
    page = open_page(f"/incidents/{incident}", scheme=scheme, bypass_csp=True)
    page.get_by_label("Message").fill("x" * 200)
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#outside .mail").first).to_contain_text("x" * 200)
    assert violations(page) == []
    page.set_viewport_size(PHONE)
    assert overflow(page) <= 0
    assert violations(page) == []
