"""A user creates a service in the browser, with the keyboard, and sees it go down and recover."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from tests.support.app.browser import make_monitor
from tests.support.app.fixtures import Open, Target
from tests.support.processes.daemon_process import Daemon

pytestmark = [pytest.mark.needs("chromium")]


def test_a_service_is_created_and_its_screen_stays_live(
    open_page: Open, leadline: Daemon, project: str, target: Target
) -> None:
    make_monitor(leadline, project, target.url, name="Till")
    page = open_page(f"/projects/{project}")
    page.keyboard.press("g")
    page.keyboard.press("s")
    expect(page.get_by_role("heading", level=1)).to_have_text("No services yet")
    page.get_by_role("link", name="Add service").first.click()
    page.get_by_label("Name").fill("Checkout")
    page.get_by_role("combobox", name="Add a monitor").fill("til")
    expect(page.get_by_role("option", name="Till")).to_be_visible()
    page.get_by_role("combobox", name="Add a monitor").press("Enter")
    expect(page.get_by_label("Till counts toward the SLI")).to_be_checked()
    past = datetime.now(UTC) - timedelta(minutes=5)
    page.get_by_label("Backfill history from").fill(f"{past:%Y-%m-%dT%H:%M}")
    page.get_by_role("button", name="Continue to objective").last.click()
    expect(page).to_have_url(re.compile(r"services/new\?step=2$"))
    page.get_by_label("Availability").fill("99.9")
    page.get_by_role("button", name="Continue to paging").click()
    expect(page).to_have_url(re.compile(r"services/new\?step=3$"))
    page.get_by_role("button", name="Back").click()
    expect(page.get_by_label("Availability")).to_have_value("99.9")
    page.get_by_role("button", name="Continue to paging").click()
    page.get_by_role("button", name="Add service").click()
    first = page.get_by_role("heading", level=1)
    expect(first).to_have_text("Checkout is healthy")
    target.stop()
    expect(first).to_have_text("Checkout is down")
    expect(page.locator("#members").get_by_role("img", name="down", exact=True)).to_be_visible()
    target.start()
    expect(first).to_have_text("Checkout is healthy")
    page.get_by_role("link", name="Services", exact=True).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("The service is healthy")


def test_maintenance_is_scheduled_and_ended_without_scripts(
    open_page: Open, leadline: Daemon, project: str
) -> None:
    page = open_page(f"/projects/{project}/maintenance", scripts=False)
    page.get_by_role("link", name="Schedule maintenance").first.click()
    page.get_by_label("End").fill(f"{datetime.now(UTC) + timedelta(hours=2):%Y-%m-%dT%H:%M}")
    page.get_by_label("Reason").fill("New cables")
    page.get_by_role("button", name="Schedule maintenance").click()
    first = page.get_by_role("heading", level=1)
    expect(first).to_contain_text("The whole project is in maintenance until")
    page.locator("td.act summary").click()
    page.get_by_role("button", name="End now").click()
    expect(first).to_have_text("No active maintenance")
