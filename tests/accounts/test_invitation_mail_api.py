"""E-mails of invitations: the link of each attempt, retries and the limit of resends."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from leadline.daemon.loops.mailers import invitation_mailer
from leadline.daemon.loops.mailers.invitation_mailer import InvitationMailer
from leadline.http.server.app import make_app
from leadline.http.server.route_table import ROUTES
from leadline.probes.net.egress_policy import probe_policy
from leadline.probes.senders.send_result import NotDelivered, SendFailure
from leadline.probes.senders.subscriber_mail import send_letter
from leadline.storage.accounts.rules.invitation import ATTEMPTS_MOST
from tests.accounts.test_password_resets_api import BASE
from tests.support.app.cast import Api
from tests.support.peers.mail_server import Box, Server, mail_of, serving_mail


@dataclass
class World:
    api: Api
    mailer: InvitationMailer
    server: Server


@pytest.fixture
async def world(api: Api) -> AsyncIterator[World]:
    with serving_mail(Box()) as server:
        way = replace(api.context.reach, policy=probe_policy())
        means = replace(api.context.means, mail=mail_of(way, server.port), to_mail_server=way)
        options = replace(api.context.options, public_base_url=BASE)
        context = replace(api.context, means=means, options=options)
        client = make_app(context, ROUTES).test_client(use_cookies=False)
        mailer = InvitationMailer(api.pool, context.keyring, means, BASE, context.clock)
        yield World(replace(api, context=context, client=client), mailer, server)


def without_server(world: World) -> InvitationMailer:
    """A mailer whose mail server refuses every connection."""
    reach = world.mailer.means.mail
    assert reach is not None
    return replace(world.mailer, means=replace(world.mailer.means, mail=replace(reach, port=1)))


async def invite(world: World, email: str) -> Any:
    path = f"/api/v1/organizations/{world.api.org}/members"
    body = {"email": email, "role": "viewer"}
    answer = await world.api.ask("org_admin", "POST", path, body)
    assert answer.status_code == 202
    return await answer.get_json()


def text_of(letter: Any) -> str:
    return str(letter.get_body(("plain",)).get_content())


def token_in(letter: Any) -> str:
    (found,) = set(re.findall(rf"{BASE}/invitations/(leadline_invitation_\w+)", text_of(letter)))
    return str(found)


async def test_an_invitation_is_sent_and_accepted_with_its_link(world: World) -> None:
    made = await invite(world, "new@example.com")
    assert "accept_url" not in made
    assert await world.mailer.pass_once() == 1
    (letter,) = world.server.box.letters
    assert letter["To"] == "new@example.com"
    assert "Acme" in letter["Subject"]
    path = f"/api/v1/public/invitations/{token_in(letter)}/accept"
    body = {"password": "a long password"}
    assert (await world.api.ask("nobody", "POST", path, body)).status_code == 200
    assert await world.mailer.pass_once() == 0


async def test_an_invitation_is_sent_again_after_a_minute(world: World) -> None:
    made = await invite(world, "new@example.com")
    await world.mailer.pass_once()
    path = f"/api/v1/invitations/{made['id']}/resend"
    refused = await world.api.ask("org_admin", "POST", path)
    assert refused.status_code == 429
    assert refused.headers["Retry-After"] == "60"
    async with world.api.pool.transaction("age") as tx:
        await tx.execute("update invitations set mailed_at = mailed_at - interval '61 seconds'")
    assert (await world.api.ask("org_admin", "POST", path)).status_code == 202
    await world.mailer.pass_once()
    first, second = (token_in(letter) for letter in world.server.box.letters)
    assert first != second
    page = f"/invitations/{first}"
    assert (await world.api.ask("nobody", "GET", page)).status_code == 404
    assert (await world.api.ask("nobody", "GET", f"/invitations/{second}")).status_code == 200


async def test_a_failed_mail_is_sent_again_a_minute_after_its_request(world: World) -> None:
    """The fourth retry is later than a minute, and a resend does not wait for it."""
    made = await invite(world, "new@example.com")
    for _ in range(4):
        await make_due(world)
        assert await without_server(world).pass_once() == 1
    path = f"/api/v1/invitations/{made['id']}/resend"
    assert (await world.api.ask("org_admin", "POST", path)).status_code == 429
    async with world.api.pool.transaction("age") as tx:
        await tx.execute(
            "update invitations set mail_due_at = mail_due_at - interval '61 seconds',"
            " expires_at = expires_at - interval '61 seconds'"
        )
    assert (await world.api.ask("org_admin", "POST", path)).status_code == 202
    await world.mailer.pass_once()
    assert len(world.server.box.letters) == 1


@pytest.mark.parametrize("delivered", [True, False])
async def test_an_attempt_that_a_resend_overtook_changes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, delivered: bool
) -> None:
    made = await invite(world, "new@example.com")
    path = f"/api/v1/invitations/{made['id']}/resend"

    async def overtaken(letter: Any, means: Any) -> None:
        monkeypatch.setattr(invitation_mailer, "send_letter", send_letter)
        async with world.api.pool.transaction("age") as tx:
            await tx.execute(
                "update invitations set expires_at = expires_at - interval '61 seconds'"
            )
        assert (await world.api.ask("org_admin", "POST", path)).status_code == 202
        if not delivered:
            raise NotDelivered(SendFailure.RETRY, "the server is away")
        await send_letter(letter, means)

    monkeypatch.setattr(invitation_mailer, "send_letter", overtaken)
    await world.mailer.pass_once()
    assert (await listed(world))[0] == "waiting"
    assert await world.mailer.pass_once() == 1
    assert (await listed(world))[0] == "sent"
    assert len(world.server.box.letters) == 1 + delivered
    page = f"/invitations/{token_in(world.server.box.letters[-1])}"
    assert (await world.api.ask("nobody", "GET", page)).status_code == 200


async def test_known_and_unknown_addresses_get_the_same_mail(world: World) -> None:
    await world.api.new_user("known@example.com", "hash")
    for email in ("known@example.com", "other@example.com"):
        await invite(world, email)
    await world.mailer.pass_once()
    texts = {
        re.sub(r"leadline_invitation_\w+", "", text_of(letter))
        for letter in world.server.box.letters
    }
    assert len(texts) == 1


async def test_the_mail_server_is_tested_with_a_message_to_the_own_address(world: World) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await world.api.ask(
        "global_admin", "POST", "/admin/mail", data=b"act=test", headers=form
    )
    page = await answer.get_data(as_text=True)
    assert "The mail server accepted the test to global_admin@example.com." in page
    (letter,) = world.server.box.letters
    assert letter["To"] == "global_admin@example.com"


async def test_a_test_without_a_mail_server_states_the_reason(api: Api) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await api.ask("global_admin", "POST", "/admin/mail", data=b"act=test", headers=form)
    assert "The test was not sent. E-mail is off." in await answer.get_data(as_text=True)


async def listed(world: World) -> tuple[str, str]:
    """The state of the only invitation in the API, and its line in the console."""
    organization = f"/organizations/{world.api.org}"
    answer = await world.api.ask("org_admin", "GET", f"/api/v1{organization}/invitations")
    (one,) = await answer.get_json()
    answer = await world.api.ask("org_admin", "GET", f"{organization}/people")
    page = await answer.get_data(as_text=True)
    (line,) = re.findall(r'<small[^>]*title="Invited by[^>]*>([^<]*)<', page)
    return str(one["mail"]), str(line)


async def make_due(world: World) -> None:
    async with world.api.pool.transaction("due") as tx:
        await tx.execute(
            "update invitations set mail_due_at = at(%(now)s) where mail_due_at is not null",
            now=tx.now,
        )


async def test_the_state_of_the_mail_is_shown_until_it_is_given_up(world: World) -> None:
    """A later failure also takes back that an earlier e-mail was sent: its link has ended."""
    made = await invite(world, "new@example.com")
    assert await listed(world) == ("waiting", "Invited by org_admin, e-mail waiting")
    await world.mailer.pass_once()
    assert await listed(world) == ("sent", "Invited by org_admin, e-mail sent")
    async with world.api.pool.transaction("age") as tx:
        await tx.execute("update invitations set mailed_at = mailed_at - interval '61 seconds'")
    path = f"/api/v1/invitations/{made['id']}/resend"
    assert (await world.api.ask("org_admin", "POST", path)).status_code == 202
    broken = without_server(world)
    for attempt in range(ATTEMPTS_MOST):
        assert await listed(world) == ("waiting", "Invited by org_admin, e-mail waiting"), attempt
        await make_due(world)
        assert await broken.pass_once() == 1
    assert await listed(world) == ("failed", "E-mail not delivered, invited by org_admin")
    # It can be sent again immediately.
    assert (await world.api.ask("org_admin", "POST", path)).status_code == 202
    await world.mailer.pass_once()
    assert await listed(world) == ("sent", "Invited by org_admin, e-mail sent")


async def test_an_invitation_without_a_mail_server_has_no_mail(api: Api) -> None:
    path = f"/api/v1/organizations/{api.org}/members"
    body = {"email": "new@example.com", "role": "viewer"}
    made = await (await api.ask("org_admin", "POST", path, body)).get_json()
    assert made["mail"] == "none"


async def test_a_mail_test_states_which_setting_is_missing(world: World) -> None:
    api = world.api
    body = {"enabled": True, "smtp_host": "127.0.0.1", "from": "a@example.com"}
    body["public_base_url"] = ""
    answer = await api.ask("global_admin", "PUT", "/api/v1/settings/mail", body)
    assert answer.status_code == 200
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await api.ask("global_admin", "POST", "/admin/mail", data=b"act=test", headers=form)
    page = await answer.get_data(as_text=True)
    assert "The test was not sent. E-mails with links are off: set the base URL" in page
