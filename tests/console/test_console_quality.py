"""Every page in light and dark, on a desk and on a phone: readable by everybody, and small."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import axe_core_python
import pytest
from playwright.sync_api import Page, expect

from tests.daemon_process import Daemon

from .conftest import PHONE, Open, Target, make_monitor

pytestmark = [pytest.mark.needs("chromium")]

AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text()
PAGE_BYTES_MOST = 100_000
PAGES = [
    "/sign-in",
    "/projects/{project}",
    "/projects/{project}?q=nothing-is-called-so",
    "/monitors/{good}",
    "/monitors/{bad}",
    "/monitors/{push}",
    "/monitors/{paused}",
    "/monitors/{bad}/edit",
    "/monitors/{bad}/delete",
    "/projects/{project}/channels",
    "/projects/{project}/monitors/new",
    "/projects/{project}/monitors/new?type=tcp",
    "/projects/{project}/monitors/new?type=push",
    "/monitors/01a20031-f412-7194-981b-2db4350507bf",
]


@pytest.fixture(scope="module")
def places(leadline: Daemon, project: str) -> Iterator[dict[str, str]]:
    server = Target()
    server.start()
    for kind, config in (
        ("ntfy", {"topic": "ops", "token": "tk"}),
        ("email", {"to": "somebody-with-a-long-name@a-company-with-a-long-name.example.com"}),
    ):
        channel = {"type": kind, "name": f"Operators by {kind}", "config": config}
        leadline.api("POST", f"/projects/{project}/notification-channels", channel)
    made = {
        "project": project,
        "good": make_monitor(leadline, project, server.url, name="Good", tags=["Shop"]),
        "bad": make_monitor(
            leadline,
            project,
            "http://127.0.0.1:1/a/path/that/is/very/long/and/has/no/place/to/break/in/a/column",
            name="A name that is longer than any line of a telephone has room for, certainly",
            description="What it is for.",
        ),
        "push": make_monitor(leadline, project, "", name="Push", type="push"),
        "paused": make_monitor(leadline, project, server.url, name="Paused", enabled=False),
    }
    yield made
    server.stop()


@pytest.fixture(scope="module")
def empty_project(leadline: Daemon) -> str:
    (organization,) = leadline.api("GET", "/organizations")
    body = {"slug": "empty", "name": "Empty"}
    made = leadline.api("POST", f"/organizations/{organization['id']}/projects", body)
    return str(made["id"])


def violations(page: Page) -> list[str]:
    page.evaluate(AXE)
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{item['impact']} {item['id']}: {node['target']} {node['failureSummary']}"
        for item in found["violations"]
        if item["impact"] in ("serious", "critical", "moderate")
        for node in item["nodes"]
    ]


def overflow(page: Page) -> int:
    found: int = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return found


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_and_nothing_is_wider_than_a_phone(
    open_page: Open, places: dict[str, str], path: str
) -> None:
    filled = path.format(**places)
    for scheme in ("light", "dark"):
        page = open_page(filled, scheme=scheme, bypass_csp=True)
        for details in page.locator("details > summary").all():
            details.click()
        assert violations(page) == [], scheme
        page.set_viewport_size(PHONE)
        assert overflow(page) <= 0, scheme
        assert violations(page) == [], f"{scheme}, phone"
        assert len(page.content().encode()) < PAGE_BYTES_MOST


def test_the_first_page_and_a_form_with_errors_are_for_everybody_too(
    open_page: Open, empty_project: str
) -> None:
    page = open_page(f"/projects/{empty_project}", bypass_csp=True)
    expect(page.get_by_role("heading", level=1)).to_have_text("Nothing is watched yet")
    assert violations(page) == []
    page.get_by_label("Address").fill("gopher://x")
    page.get_by_role("button", name="Watch it").click()
    assert violations(page) == []
    page.goto(f"/projects/{empty_project}/monitors/new")
    page.get_by_role("button", name="Add monitor").click()
    expect(page.get_by_role("alert")).to_contain_text("have to be mended")
    assert violations(page) == []
    page.set_viewport_size(PHONE)
    assert overflow(page) <= 0


def test_a_page_of_a_hundred_rows_stays_small_and_the_rest_is_a_page_away(
    open_page: Open, leadline: Daemon, empty_project: str
) -> None:
    (organization,) = leadline.api("GET", "/organizations")
    body = {"slug": "many", "name": "Many"}
    made = leadline.api("POST", f"/organizations/{organization['id']}/projects", body)
    for number in range(105):
        make_monitor(
            leadline,
            made["id"],
            "http://127.0.0.1:1/",
            name=f"Monitor number {number:03}",
            tags=[f"Group {number // 10:02}"],
            interval_seconds=3600,
        )
    page = open_page(f"/projects/{made['id']}")
    expect(page.locator("tr[data-live]")).to_have_count(100)
    assert len(page.content().encode()) < PAGE_BYTES_MOST
    page.get_by_role("link", name="Next").click()
    expect(page.locator("tr[data-live]")).to_have_count(5)
    expect(page.get_by_role("table").get_by_role("link", name="Monitor number 104")).to_be_visible()
    page.goto(f"/projects/{made['id']}?q=number+042")
    expect(page.locator("tr[data-live]")).to_have_count(1)


def test_without_scripts_everything_can_be_read_and_done(
    open_page: Open, leadline: Daemon, places: dict[str, str]
) -> None:
    page = open_page(f"/projects/{places['project']}", scripts=False)
    expect(page.get_by_role("link", name="Good").last).to_be_visible()
    # Nobody keeps it up to date, so nothing calls it live.
    expect(page.locator("[data-stream]")).to_contain_text("As of")
    page.goto(f"/monitors/{places['paused']}")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("heading", level=1)).not_to_contain_text("is paused")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("is paused")


def test_what_the_pointer_is_over_is_not_moved_by_an_update(
    open_page: Open, leadline: Daemon, project: str, places: dict[str, str]
) -> None:
    server = Target()
    server.start()
    make_monitor(leadline, project, server.url, name="Zebra", tags=["Zoo"])
    page = open_page(f"/projects/{project}")
    row = page.locator("tr[data-live]").filter(has_text="Zebra")
    expect(row.get_by_role("img", name="up", exact=True)).to_be_visible()
    expect(page.locator("[data-stream]")).to_contain_text("Live")
    row.hover()
    before = row.bounding_box()
    page.evaluate(
        """() => {
          window.tinted = 0;
          new MutationObserver(() => {
            window.tinted += document.querySelectorAll('tr.changed').length;
          }).observe(document.querySelector('main'), {attributes: true, subtree: true});
        }"""
    )
    server.stop()
    expect(row.get_by_role("img", name="down", exact=True)).to_be_visible()
    assert row.bounding_box() == before
    assert page.evaluate("window.tinted") > 0
    page.mouse.move(2, 2)
    expect(page.locator("#attention").get_by_role("link", name="Zebra")).to_be_visible()
