"""The editor of a status page in a browser shows each saved change in the preview frame."""

from typing import Any
from uuid import uuid4

import pytest
from playwright.sync_api import expect

from tests.support.app.browser import PHONE, make_monitor
from tests.support.app.fixtures import Open
from tests.support.processes.daemon_process import Daemon
from tests.support.run.effort import varied

pytestmark = [pytest.mark.needs("chromium")]


def make_page(leadline: Daemon, project: str, **given: Any) -> dict[str, Any]:
    organization = leadline.api("GET", "/organizations")[0]["id"]
    body = {"slug": f"p-{uuid4()}", "title": "Harbour Goods", "project_id": project, **given}
    made: dict[str, Any] = leadline.api("POST", f"/organizations/{organization}/status-pages", body)
    return made


@pytest.mark.parametrize("scripts", varied([True], [True, False]))
def test_the_preview_frame_shows_each_saved_change(
    open_page: Open, leadline: Daemon, project: str, scripts: bool
) -> None:
    name = f"Till {uuid4()}"
    make_monitor(leadline, project, "", name=name, type="push")
    made = make_page(leadline, project, visibility="internal")
    page = open_page(f"/projects/{project}/status-pages/{made['id']}", scripts=scripts)
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("heading", level=1)).to_have_text("No components yet")

    page.get_by_label("Search", exact=True).fill(name.upper())
    page.get_by_role("button", name="Filter").click()
    page.get_by_label(f"Name of {name} on the page").fill("Checkout <b>")
    page.get_by_role("button", name=f"Add monitor {name}").click()
    expect(frame.get_by_role("heading", name="Checkout <b>")).to_be_visible()
    expect(page.get_by_label("Search", exact=True)).to_have_value(name.upper())

    page.get_by_text("Add a manual component").click()
    page.get_by_label("Name", exact=True).fill("Telephone")
    page.get_by_label("Status", exact=True).select_option("Major outage")
    page.get_by_role("button", name="Add component").click()
    expect(frame.get_by_role("heading", level=1)).to_have_text("Major outage")

    page.get_by_role("button", name="Move Telephone up").click()
    expect(frame.locator(".parts > li").first).to_contain_text("Telephone")
    page.get_by_label("Actions for Telephone").click()
    page.get_by_role("link", name="Edit Telephone").click()
    page.get_by_label("Name", exact=True).first.fill("Phone")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(frame.get_by_role("heading", level=1)).to_have_text("Major outage")
    page.get_by_label("Actions for Phone").click()
    page.get_by_role("button", name="Remove Phone").click()
    expect(frame.locator(".parts > li")).to_have_count(1)


def test_on_a_phone_the_preview_is_below_the_forms(
    open_page: Open, leadline: Daemon, project: str
) -> None:
    made = make_page(leadline, project)
    page = open_page(f"/projects/{project}/status-pages/{made['id']}")
    beside, form = page.locator("iframe").bounding_box(), page.locator("#title").bounding_box()
    assert beside is not None
    assert form is not None
    assert beside["x"] > form["x"] + form["width"] - 1
    page.set_viewport_size(PHONE)
    below, form = page.locator("iframe").bounding_box(), page.locator("#title").bounding_box()
    assert below is not None
    assert form is not None
    assert below["y"] > form["y"] + form["height"]


def test_a_link_of_the_preview_opens_a_new_tab(
    open_page: Open, leadline: Daemon, project: str
) -> None:
    made = make_page(leadline, project)
    page = open_page(f"/projects/{project}/status-pages/{made['id']}")
    with page.expect_popup() as opened:
        page.frame_locator("iframe").get_by_role("link", name="Harbour Goods").click()
    expect(opened.value.get_by_role("heading", level=1)).to_have_text("No components yet")
