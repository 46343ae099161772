"""A user signs in at a real OpenID provider in a browser, links a local account to it, and signs
out at both.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.openid.provider import CLIENT, SECRET, Provider, providing
from tests.support.processes.chromium import browsing
from tests.support.processes.daemon_process import Daemon, daemon

pytestmark = [pytest.mark.needs("chromium", "node", "oidc-provider")]


@pytest.fixture
def places() -> Iterator[tuple[Daemon, Provider]]:
    with daemon() as running:
        back = f"{running.url}/auth/callback"
        with providing(redirect_uris=[back], post_logout_uris=[f"{running.url}/sign-in"]) as there:
            running.environment |= {
                "LEADLINE_SERVER__PUBLIC_BASE_URL": running.url,
                "LEADLINE_OIDC__ENABLED": "true",
                "LEADLINE_OIDC__ISSUER": there.issuer,
                "LEADLINE_OIDC__CLIENT_ID": CLIENT,
                "LEADLINE_OIDC__CLIENT_SECRET": SECRET,
                "LEADLINE_OIDC__POST_LOGOUT_URL": f"{running.url}/sign-in",
                "LEADLINE_OIDC__BUTTON_LABEL": "Sign in by the harbour",
                "LEADLINE_OIDC__BOOTSTRAP_ADMINS": "boss@example.com",
            }
            running.start()
            running.sign_in()
            yield running, there


@pytest.fixture
def page() -> Iterator[Page]:
    with browsing() as browser:
        made = browser.new_context().new_page()
        made.set_default_timeout(30_000)
        yield made


def prove(page: Page, person: str) -> None:
    """The provider's own forms."""
    page.locator("input[name=login]").fill(person)
    page.locator("input[name=password]").fill("any")
    page.locator("button[type=submit]").click()
    page.get_by_role("button", name="Continue").click()


def test_sign_in_and_sign_out_through_the_provider(
    places: tuple[Daemon, Provider], page: Page, tmp_path: Path
) -> None:
    leadline, provider = places
    page.goto(f"{leadline.url}/admin/fleet")
    page.screenshot(path=tmp_path / "signin.png", full_page=True)
    page.get_by_role("link", name="Sign in by the harbour").click()
    prove(page, "boss")
    # The sign-in leads to the requested screen, with the rights of the user.
    expect(page).to_have_url(f"{leadline.url}/admin/fleet")
    expect(page.get_by_role("heading", level=1)).to_have_text("1 region probed")
    page.goto(f"{leadline.url}/admin/single-sign-on")
    expect(page.get_by_text(f"Users can sign in at {provider.issuer}.")).to_be_visible()
    page.screenshot(path=tmp_path / "settings.png", full_page=True)
    page.goto(f"{leadline.url}/profile")
    page.screenshot(path=tmp_path / "profile.png", full_page=True)
    page.get_by_role("button", name="Sign out").click()
    # Sign-out leads to the provider, which asks whether to end its own session, and back.
    page.get_by_role("button", name="Yes, sign me out").click()
    expect(page).to_have_url(f"{leadline.url}/sign-in")

    page.get_by_label("E-mail").fill("admin@localhost")
    page.get_by_label("Password").fill(leadline.password)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.goto(f"{leadline.url}/profile")
    page.get_by_role("button", name=f"Link to {provider.issuer}").click()
    prove(page, "ada")
    expect(page.get_by_text("Single sign-on is linked to this account.")).to_be_visible()
    expect(page.get_by_text(f"You can sign in at {provider.issuer} as ada.")).to_be_visible()
    page.screenshot(path=tmp_path / "linked.png", full_page=True)
