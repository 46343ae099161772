"""A reader opens a status page in a browser without scripts, subscribes, and unsubscribes."""

import re
import urllib.request
from collections.abc import Iterator
from email.message import EmailMessage

import pytest
from playwright.sync_api import Page, expect

from tests.support.peers.mail_server import Box, Server, serving_mail
from tests.support.peers.real_servers import HOST
from tests.support.processes.chromium import browsing
from tests.support.processes.daemon_process import Daemon, daemon

from .conftest import eventually, project_of

pytestmark = [pytest.mark.needs("chromium")]

ADA = "ada@example.com"


@pytest.fixture
def mail() -> Iterator[Server]:
    with serving_mail(Box()) as server:
        yield server


@pytest.fixture
def leadline(mail: Server) -> Iterator[Daemon]:
    with daemon(
        LEADLINE_MAIL__ENABLED="true",
        LEADLINE_MAIL__SMTP_HOST=HOST,
        LEADLINE_MAIL__SMTP_PORT=str(mail.port),
        LEADLINE_MAIL__FROM="Harbour status <status@example.com>",
    ) as running:
        running.environment["LEADLINE_SERVER__PUBLIC_BASE_URL"] = running.url
        running.start()
        running.sign_in()
        yield running


@pytest.fixture
def reader() -> Iterator[Page]:
    """A browser without a session and without scripts."""
    with browsing() as browser:
        page = browser.new_context(java_script_enabled=False).new_page()
        page.set_default_timeout(30_000)
        yield page


def link_in(letter: EmailMessage, what: str) -> str:
    body = letter.get_body(("plain",))
    assert body is not None
    found = re.search(rf"http://\S*{what}\S*", body.get_content())
    assert found is not None, body.get_content()
    return found[0]


def letter(mail: Server, count: int) -> EmailMessage:
    """Waits for exactly this number of mails, and returns the last one."""
    eventually(lambda: len(mail.box.letters) >= count)
    assert len(mail.box.letters) == count
    return mail.box.letters[-1]


def test_a_subscriber_gets_an_incident_and_nothing_after_unsubscribing(
    leadline: Daemon, mail: Server, reader: Page
) -> None:
    project = project_of(leadline)
    (organization,) = leadline.api("GET", "/organizations")
    pages = f"/organizations/{organization['id']}/status-pages"
    given = {"slug": "harbour", "title": "Harbour", "project_id": project}
    page = leadline.api("POST", pages, given)
    component = {"name": "Ferries", "manual_status": "operational"}
    leadline.api("POST", f"/status-pages/{page['id']}/components", component)

    reader.goto(f"{leadline.url}/status/harbour")
    expect(reader.get_by_role("heading", name="Ferries")).to_be_visible()
    reader.get_by_role("link", name="Subscribe to updates").click()
    reader.get_by_label("E-mail address").fill(ADA)
    reader.get_by_role("button", name="Subscribe").click()
    expect(reader.get_by_role("heading", level=1)).to_have_text("Check your inbox")

    # A mail scanner follows the links of a mail, which must not confirm the subscription.
    confirm = link_in(letter(mail, 1), "/status/confirm/")
    with urllib.request.urlopen(confirm) as scanned:
        assert scanned.status == 200
    subscribers = f"/status-pages/{page['id']}/subscribers"
    (told,) = leadline.api("GET", subscribers)
    assert "confirmed_at" not in told
    reader.goto(confirm)
    reader.get_by_role("button", name="Confirm subscription").click()
    (told,) = leadline.api("GET", subscribers)
    assert told["email"] == ADA
    assert told["confirmed_at"]

    incident = {"title": "No ferries sail", "impact": "major", "body": "The harbour is frozen."}
    made = leadline.api("POST", f"/projects/{project}/incidents", incident)
    heard = letter(mail, 2)
    assert heard["To"] == ADA
    assert heard["Subject"] == "Harbour: No ferries sail"
    assert "The harbour is frozen." in str(heard.get_body(("plain",)))
    reader.goto(link_in(heard, "/status/harbour"))
    expect(reader.get_by_role("heading", name="No ferries sail")).to_be_visible()
    expect(reader.get_by_text("The harbour is frozen.")).to_be_visible()

    reader.goto(link_in(heard, "/status/unsubscribe/"))
    reader.get_by_role("button").click()
    assert leadline.api("GET", subscribers) == []
    update = {"status": "resolved", "body": "They sail again.", "public": True}
    leadline.api("POST", f"/incidents/{made['id']}/updates", update)
    reader.goto(f"{leadline.url}/status/harbour")
    # A browser can show a cached page for half a minute while it reloads.
    reader.reload()
    expect(reader.get_by_text("They sail again.")).to_be_visible()
    assert len(mail.box.letters) == 2
