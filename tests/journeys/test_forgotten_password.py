"""The e-mail server is set in the console, and a user without a password signs in through a reset
mail, in a browser without scripts.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.peers.mail_server import Box, Server, serving_mail
from tests.support.peers.real_servers import HOST
from tests.support.processes.chromium import browsing
from tests.support.processes.daemon_process import Daemon, daemon

from .test_status_page_readers import letter, link_in

pytestmark = [pytest.mark.needs("chromium")]

CARL = "carl@example.com"
PASSWORD = "six blind mice"


@pytest.fixture
def mail() -> Iterator[Server]:
    with serving_mail(Box()) as server:
        yield server


@pytest.fixture
def leadline() -> Iterator[Daemon]:
    with daemon() as running:
        running.start()
        running.sign_in()
        yield running


@pytest.fixture
def browser_page() -> Iterator[Page]:
    with browsing() as browser:
        page = browser.new_context(java_script_enabled=False).new_page()
        page.set_default_timeout(30_000)
        yield page


@pytest.mark.soak
def test_a_password_is_reset_by_mail(
    leadline: Daemon, mail: Server, browser_page: Page, tmp_path: Path
) -> None:
    page = browser_page
    leadline.api("POST", "/admin/users", {"email": CARL, "display_name": "Carl"})
    page.goto(f"{leadline.url}/sign-in")
    expect(page.get_by_role("link", name="Forgot password?")).to_have_count(0)

    page.get_by_label("E-mail").fill("admin@localhost")
    page.get_by_label("Password").fill(leadline.password)
    page.get_by_role("button", name="Sign in").click()
    page.goto(f"{leadline.url}/admin/mail")
    expect(page.get_by_text("E-mail is off.")).to_be_visible()
    page.get_by_label("Enable e-mail").check()
    page.get_by_label("Server", exact=True).fill(HOST)
    page.get_by_label("Port").fill(str(mail.port))
    page.get_by_label("From").fill("Leadline <up@example.com>")
    page.get_by_label("Base URL of this installation").fill(leadline.url)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text(f"E-mails are sent by {HOST}")).to_be_visible()
    page.screenshot(path=tmp_path / "mail.png", full_page=True)

    page.context.clear_cookies()
    page.goto(f"{leadline.url}/sign-in")
    page.get_by_role("link", name="Forgot password?").click()
    page.get_by_label("E-mail").fill(CARL)
    page.get_by_role("button", name="Send reset link").click()
    expect(page.get_by_text("we sent a reset link")).to_be_visible()
    heard = letter(mail, 1)
    assert heard["To"] == CARL
    page.goto(link_in(heard, "/reset/"))
    page.screenshot(path=tmp_path / "choose.png", full_page=True)
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_label("Repeat password").fill(PASSWORD)
    page.get_by_role("button", name="Set password").click()
    expect(page.get_by_text("Password changed")).to_be_visible()
    page.screenshot(path=tmp_path / "signin.png", full_page=True)
    page.get_by_label("E-mail").fill(CARL)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="No project access yet")).to_be_visible()

    # The link can be used only once.
    page.context.clear_cookies()
    page.goto(link_in(heard, "/reset/"))
    page.get_by_label("New password").fill("another one of mine")
    page.get_by_label("Repeat password").fill("another one of mine")
    page.get_by_role("button", name="Set password").click()
    expect(page.get_by_role("heading", name="This link has expired")).to_be_visible()
