"""Stored addresses from before the path prefix lead to no other application of the host."""

import logging
from collections.abc import AsyncIterator
from dataclasses import replace

import msgspec
import pytest

from leadline.http.accounts.routes.oidc_login import Stopped, settings_in_force
from leadline.http.auth.passwords import Passwords
from leadline.http.wire.mail_config import mailing_now
from leadline.http.wire.options import HttpOptions
from leadline.probes.oidc.oidc_settings import OidcSettings
from leadline.probes.senders.mail_settings import MailSettings
from leadline.probes.senders.public_address import _report, redirect_outside_base_path
from leadline.storage.engine.pools import Pool
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api, open_api
from tests.support.app.serving import call

HERE = "https://apps.example.com/leadline"
ELSEWHERE = "https://apps.example.com"
OPTIONS = HttpOptions(public_base_url=HERE, base_path="/leadline")


@pytest.fixture
async def api(pool: Pool, passwords: Passwords) -> AsyncIterator[Api]:
    _report.cache_clear()
    async with open_api(pool, FROZEN_NOW, passwords, options=OPTIONS) as made:
        yield made


async def store(api: Api, name: str, value: msgspec.Struct) -> None:
    async with api.pool.transaction("store") as tx:
        await tx.execute(
            "insert into settings (name, value, updated_at)"
            " values (%(name)s, (%(value)s::text)::jsonb, now())",
            name=name,
            value=msgspec.json.encode(value).decode(),
        )


async def screen(api: Api, path: str) -> str:
    answer = await api.ask("global_admin", "GET", path)
    text: str = await answer.get_data(as_text=True)
    return " ".join(text.split())


async def test_links_of_mails_stay_below_the_prefix(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    await store(api, "mail", MailSettings(public_base_url=ELSEWHERE))
    with caplog.at_level(logging.WARNING, "leadline.public_address"):
        assert (await mailing_now(api.context)).base_url == HERE
        assert (await mailing_now(api.context)).base_url == HERE
    assert [record.message for record in caplog.records] == ["stored address ignored"]
    found = await call(api, "GET", "/settings/mail", who="global_admin")
    fault = "must have the path of server.base_path, /leadline"
    assert found["public_base_url_fault"] == fault
    assert f"The stored base URL is ignored: it {fault}." in await screen(api, "/admin/mail")


async def test_a_stored_address_below_the_prefix_is_used(api: Api) -> None:
    await store(api, "mail", MailSettings(public_base_url="https://b.example/leadline"))
    assert (await mailing_now(api.context)).base_url == "https://b.example/leadline"
    assert "public_base_url_fault" not in await call(
        api, "GET", "/settings/mail", who="global_admin"
    )


async def test_a_provider_never_redirects_outside_the_prefix(api: Api) -> None:
    callback = f"{HERE}/auth/callback"
    wrong = OidcSettings(
        enabled=True, issuer="https://id.test", redirect_url=f"{ELSEWHERE}/auth/callback"
    )
    await store(api, "oidc", wrong)
    assert (await settings_in_force(api.context)).redirect_url == callback
    configured = replace(OPTIONS, sign_on=OidcSettings(redirect_url=f"{callback}?configured"))
    context = replace(api.context, options=configured)
    assert (await settings_in_force(context)).redirect_url == f"{callback}?configured"
    context = replace(api.context, options=replace(OPTIONS, public_base_url=""))
    with pytest.raises(Stopped):
        await settings_in_force(context)
    found = await call(api, "GET", "/settings/oidc", who="global_admin")
    assert found["redirect_url_fault"] == "must be below the path of server.base_path, /leadline"
    assert "The stored redirect URL is ignored" in await screen(api, "/admin/single-sign-on")
    answer = await call(api, "PUT", "/settings/oidc", {"enabled": False}, 400, who="global_admin")
    assert answer == {"error": f"redirect_url: {found['redirect_url_fault']}"}


@pytest.mark.parametrize(
    ("url", "base", "inside"),
    [
        ("", "/leadline", True),
        ("https://a.test/auth/callback", "", True),
        ("https://a.test/leadline/auth/callback", "/leadline", True),
        ("https://a.test/leadline2/auth/callback", "/leadline", False),
        ("https://a.test/other/leadline/auth/callback", "/leadline", False),
        ("https://a.test/auth/callback?/leadline/", "/leadline", False),
    ],
)
def test_a_redirect_url_is_below_the_prefix(url: str, base: str, inside: bool) -> None:
    assert (redirect_outside_base_path(url, base) is None) == inside
