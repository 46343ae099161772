"""A user chooses dependencies, channels and tags by typing, with and without scripts."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.app.browser import PHONE, make_monitor
from tests.support.app.fixtures import Open, Target
from tests.support.processes.daemon_process import Daemon

pytestmark = [pytest.mark.needs("chromium")]


def opened(page: Page) -> None:
    page.get_by_label("Name", exact=True).fill("Till")
    page.get_by_text("Alerting", exact=True).click()
    page.get_by_text("More", exact=True).last.click()


def made_of(leadline: Daemon, project: str, name: str) -> dict[str, object]:
    (made,) = [m for m in leadline.api("GET", f"/projects/{project}/monitors") if m["name"] == name]
    return {key: made[key] for key in ("tags", "depends_on")}


def test_choices_are_made_with_the_keyboard(
    open_page: Open, leadline: Daemon, project: str, target: Target
) -> None:
    uids = [
        make_monitor(leadline, project, target.url, name=name, tags=["network"])
        for name in ("Router <east>", "Router west")
    ]
    page = open_page(f"/projects/{project}/monitors/new?type=push")
    opened(page)
    field = page.get_by_role("combobox", name="Depends on")
    expect(field).to_have_attribute("aria-expanded", "false")
    expect(page.get_by_role("button", name="Add", exact=True)).to_have_count(0)
    field.press_sequentially("router")
    expect(page.get_by_role("option")).to_have_count(2)
    expect(field).to_have_attribute("aria-expanded", "true")
    first = page.get_by_role("option").first
    expect(field).to_have_attribute("aria-activedescendant", str(first.get_attribute("id")))
    field.press("ArrowDown")
    field.press("Enter")
    expect(page.locator(".tok")).to_have_text(["Router west"])
    expect(field).to_be_focused()
    # Enter before the list appears waits for the list of the typed text.
    field.fill("east")
    field.press("Enter")
    expect(page.locator(".tok")).to_have_text(["Router west", "Router <east>"])
    # A chosen monitor is in the list, but is not added again.
    field.press_sequentially("west")
    expect(page.get_by_role("option", name="Router west added")).to_be_disabled()
    field.press("Escape")
    expect(page.get_by_role("option")).to_have_count(0)
    field.fill("")
    page.get_by_role("button", name="Remove Router <east>").click()
    expect(page.locator(".tok")).to_have_text(["Router west"])
    tags = page.get_by_role("combobox", name="Tags")
    tags.press_sequentially("new one,")
    expect(page.get_by_role("button", name="Remove new one")).to_be_visible()
    tags.press_sequentially("net")
    page.get_by_role("option", name="network").click()
    # A test of the form replaces its content, and the choices and fields stay usable.
    page.get_by_label("Expected interval").fill("soon")
    tags.fill("typed only")
    page.get_by_role("button", name="Add monitor").click()
    expect(page.get_by_label("Expected interval")).to_have_attribute("aria-invalid", "true")
    expect(page.locator(".tok")).to_have_text(["new one", "network", "typed only", "Router west"])
    page.get_by_role("radio", name=re.compile("^TCP")).check(force=True)
    expect(page.get_by_label("Address")).to_be_visible()
    page.get_by_role("radio", name=re.compile("^Push")).check(force=True)
    expect(page.get_by_label("Grace")).to_be_visible()
    expect(page.locator(".tok")).to_have_count(4)
    tags.press_sequentially("last,")
    expect(page.locator(".tok")).to_have_count(5)
    page.get_by_label("Expected interval").fill("60")
    page.get_by_role("button", name="Add monitor").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Till")
    assert made_of(leadline, project, "Till") == {
        "tags": ["new one", "network", "typed only", "last"],
        "depends_on": [uids[1]],
    }


def test_choices_are_made_with_buttons_without_scripts(
    open_page: Open, leadline: Daemon, project: str, target: Target
) -> None:
    uid = make_monitor(leadline, project, target.url, name="Switch")
    page = open_page(f"/projects/{project}/monitors/new?type=push", scripts=False)
    opened(page)
    page.get_by_label("Tags").fill("a, b")
    page.locator('button[value="add.tags"]').click()
    expect(page.locator(".tok")).to_have_text(["a", "b"])
    page.get_by_role("button", name="Remove a", exact=True).click()
    page.get_by_label("Depends on").fill("swit")
    page.get_by_label("Name", exact=True).fill("Without scripts")
    page.get_by_role("button", name="Add monitor").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Without scripts")
    made = made_of(leadline, project, "Without scripts")
    assert made == {"tags": ["b"], "depends_on": [uid]}


def test_long_names_and_the_list_fit_a_phone(
    open_page: Open, leadline: Daemon, project: str, target: Target
) -> None:
    make_monitor(leadline, project, target.url, name="W" * 200)
    page = open_page(f"/projects/{project}/services/new", viewport=PHONE)
    field = page.get_by_role("combobox", name="Add a monitor")
    for _ in range(2):
        field.press_sequentially("WWW")
        expect(page.locator(".list")).to_be_visible()
        expect(page.locator(".list [role=option]")).to_have_count(1)
        box = page.locator(".list").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        field.press("Enter")
        field.fill("")
    expect(page.get_by_label("counts toward the SLI")).to_have_count(1)
    expect(page.get_by_label("counts toward the SLI")).to_be_checked()
