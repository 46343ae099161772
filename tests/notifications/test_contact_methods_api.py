"""Contact methods of people: verification by a code, limits, privacy, personal rules and the
gateway for SMS and calls."""

import base64
import re
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs

import pytest

from leadline.probes.net.egress_policy import notify_policy
from leadline.probes.senders.channel_spec import MASK
from leadline.storage.core.instant import Instant
from leadline.storage.notifications.rules.contact_method import (
    CODE_ATTEMPTS,
    CODE_LASTS_US,
    METHODS_MOST,
    SENDS_MOST,
)
from tests.support.app.cast import Api
from tests.support.peers.fake_services import service

METHODS = "/me/contact-methods"
SECRET = "whsec_" + base64.b64encode(b"canary" * 5).decode()


async def call(
    api: Api, method: str, path: str, body: Any = None, status: int = 200, who: str = "viewer"
) -> Any:
    answer = await api.ask(who, method, f"/api/v1{path}", body)
    data = await answer.get_data()
    assert answer.status_code == status, data
    return await answer.get_json() if data else None


async def make(api: Api, url: str, status: int = 201, **given: Any) -> Any:
    body = {"kind": "webhook", "label": "mobile", "config": {"url": url}, **given}
    return await call(api, "POST", METHODS, body, status)


def reach_private(api: Api) -> None:
    """Opens the private network to senders, in which the fake services are."""
    means = api.context.means
    reach = replace(means.reach, policy=notify_policy(allow_private=True))
    object.__setattr__(api.context, "means", replace(means, reach=reach))


def code_in(got: Any) -> str:
    found = re.search(r"Your code is ([0-9]{6})", str(got.json["title"]))
    assert found is not None
    return found[1]


async def test_a_code_verifies_a_method_and_only_then_a_test_is_sent(api: Api) -> None:
    reach_private(api)
    async with service() as peer:
        made = await make(api, f"{peer.url}/hook")
        path = f"{METHODS}/{made['id']}"
        assert "verified_at" not in made
        refused = await call(api, "POST", f"{path}/test", None, 400)
        assert refused == {"error": "method: is not verified"}
        assert peer.got == []
        assert await call(api, "POST", f"{path}/code") == {"ok": True}
        code = code_in(peer.got[0])
        wrong = "000000" if code != "000000" else "111111"
        refused = await call(api, "POST", f"{path}/verify", {"code": wrong}, 400)
        assert refused == {"error": "code: wrong code"}
        done = await call(api, "POST", f"{path}/verify", {"code": f"{code[:3]} {code[3:]}"})
        assert done["verified_at"]
        assert await call(api, "POST", f"{path}/test") == {"ok": True}
        assert peer.got[1].json["title"] == "Leadline test message"
    stored = await api.rows(
        "select code_hash is null, verified_at is not null from contact_methods"
    )
    assert stored == [(True, True)]


async def test_a_code_ends_with_its_attempts_and_a_new_one_replaces_it(api: Api) -> None:
    reach_private(api)
    async with service() as peer:
        made = await make(api, peer.url)
        path = f"{METHODS}/{made['id']}"
        await call(api, "POST", f"{path}/code")
        first = code_in(peer.got[0])
        for _ in range(CODE_ATTEMPTS):
            await call(api, "POST", f"{path}/verify", {"code": "wrong"}, 400)
        refused = await call(api, "POST", f"{path}/verify", {"code": first}, 400)
        assert refused == {"error": "code: has expired: request a new one"}
        await call(api, "POST", f"{path}/code")
        second = code_in(peer.got[1])
        if first != second:
            await call(api, "POST", f"{path}/verify", {"code": first}, 400)
        await call(api, "POST", f"{path}/verify", {"code": second})


async def test_a_code_expires(api: Api) -> None:
    reach_private(api)
    async with service() as peer:
        made = await make(api, peer.url)
        path = f"{METHODS}/{made['id']}"
        await call(api, "POST", f"{path}/code")
        async with api.pool.transaction("expire") as tx:
            at = Instant(tx.now)
            await tx.execute(
                "update contact_methods set code_expires_at = at(%(now)s)"
                " where code_expires_at = at(%(until)s)",
                now=at,
                until=at + CODE_LASTS_US,
            )
        body = {"code": code_in(peer.got[0])}
        refused = await call(api, "POST", f"{path}/verify", body, 400)
    assert refused == {"error": "code: has expired: request a new one"}


async def test_codes_and_tests_of_all_methods_share_one_limit(api: Api) -> None:
    reach_private(api)
    async with service() as peer:
        one, two = await make(api, peer.url), await make(api, peer.url)
        for number in range(SENDS_MOST):
            made = (one, two)[number % 2]
            await call(api, "POST", f"{METHODS}/{made['id']}/code")
        answer = await api.ask("viewer", "POST", f"/api/v1{METHODS}/{one['id']}/code")
        assert answer.status_code == 429
        assert int(answer.headers["Retry-After"]) > 0
        await call(api, "DELETE", f"{METHODS}/{one['id']}", None, 204)
        await call(api, "POST", f"{METHODS}/{two['id']}/code", None, 429)
        assert len(peer.got) == SENDS_MOST


async def test_the_address_is_visible_to_the_person_only_and_secrets_to_nobody(api: Api) -> None:
    made = await make(
        api,
        "https://hooks.example/canary9z",
        config={"url": "https://hooks.example/canary9z", "secret": SECRET},
    )
    assert made["config"] == {"url": "https://hooks.example/canary9z", "secret": MASK}
    path = f"{METHODS}/{made['id']}"
    assert await call(api, "GET", METHODS) == [made]
    for who in ("editor", "org_admin", "global_admin"):
        assert await call(api, "GET", METHODS, who=who) == []
        await call(api, "DELETE", path, None, 404, who)
        await call(api, "POST", f"{path}/code", None, 404, who)
    plain = await api.rows("select config::text from contact_methods")
    assert SECRET not in plain[0][0]
    audited = await api.rows("select target from audit_entries")
    assert "canary9z" not in str(audited)


@pytest.mark.parametrize(
    ("kind", "config", "field"),
    [
        ("email", {"to": "a@example.com, b@example.com"}, "config.to"),
        ("sms", {"to": "0301234567"}, "config.to"),
        ("voice", {}, "config.to"),
        ("slack", {}, "config.bot_token"),
        ("slack", {"url": "https://hooks.slack.com/x", "user_id": "U1"}, "config.user_id"),
        ("mattermost", {"bot_token": "abc", "user_id": "u1"}, "config.server"),
        ("telegram", {"bot_token": "x", "chat_id": "1"}, "config.bot_token"),
        ("webhook", {"url": "ftp://x.example/"}, "config.url"),
    ],
)
async def test_an_invalid_address_is_refused_with_its_field(
    api: Api, kind: str, config: dict[str, str], field: str
) -> None:
    refused = await make(api, "", 400, kind=kind, config=config)
    assert refused["error"].startswith(f"{field}: ")


async def test_the_number_of_methods_is_bounded(api: Api) -> None:
    for _ in range(METHODS_MOST):
        await api.new_contact_method("viewer")
    assert await make(api, "http://x.example/", 409) == {"error": "contact_method_quota"}


async def test_personal_rules_are_stored_as_a_whole(api: Api) -> None:
    one = await api.new_contact_method("viewer")
    two = await api.new_contact_method("viewer", verified=False)
    foreign = await api.new_contact_method("editor")
    rules = "/me/notification-rules"
    body = {
        "page": [
            {"method_id": str(one), "delay_seconds": 0},
            {"method_id": str(two), "delay_seconds": 300},
        ],
        "ticket": [{"method_id": str(one), "delay_seconds": 60}],
        "quiet_hours": {"from": "22:00", "until": "07:30", "time_zone": "Europe/Berlin"},
    }
    assert await call(api, "PUT", rules, body) == body
    assert await call(api, "GET", rules) == body
    wrong = {"page": [{"method_id": str(foreign)}]}
    refused = await call(api, "PUT", rules, wrong, 400)
    assert refused == {"error": "page[0].method_id: must be a contact method of yours"}
    quiet = {"from": "22:00", "until": "07:30", "time_zone": "Mars/Base"}
    refused = await call(api, "PUT", rules, {"quiet_hours": quiet}, 400)
    assert refused["error"].startswith("quiet_hours.time_zone: ")
    assert await call(api, "GET", rules) == body
    await call(api, "PUT", rules, body)
    audited = await api.rows(
        "select target from audit_entries where action = 'contact_rules.update'"
    )
    assert len(audited) == 1
    assert "page=2 ticket=1 quiet=true" in audited[0][0]
    await call(api, "DELETE", f"{METHODS}/{one}", None, 204)
    assert await call(api, "GET", rules) == {
        "page": [{"method_id": str(two), "delay_seconds": 300}],
        "ticket": [],
        "quiet_hours": body["quiet_hours"],
    }


async def test_a_generic_gateway_sends_sms_with_write_only_headers(api: Api) -> None:
    reach_private(api)
    async with service() as peer:
        sms = {
            "url": f"{peer.url}/send?n={{to}}",
            "method": "PUT",
            "format": "json",
            "body": '{"phone": "{to}", "message": "{text}"}',
            "headers": {"X-Key": "canarykey7"},
        }
        given = {"provider": "http", "sms": sms}
        shown = await call(api, "PUT", "/settings/gateway", given, who="global_admin")
        assert shown["secrets_set"] is True
        assert "canarykey7" not in str(shown)
        method = await api.new_contact_method("viewer", "sms", to="+4930123456")
        assert await call(api, "POST", f"{METHODS}/{method}/test") == {"ok": True}
        (got,) = peer.got
        assert (got.method, got.path) == ("PUT", "/send?n=%2B4930123456")
        assert got.headers["x-key"] == "canarykey7"
        assert got.json["phone"] == "+4930123456"
        assert got.json["message"].startswith("Leadline test message")
        # Without headers the stored ones stay, but not for another address.
        del sms["headers"]
        await call(api, "PUT", "/settings/gateway", given, who="global_admin")
        sms["url"] = "http://elsewhere.example/{to}"
        refused = await call(api, "PUT", "/settings/gateway", given, 400, "global_admin")
        assert refused["error"].startswith("sms.headers: ")


async def test_twilio_sends_sms_and_calls(api: Api) -> None:
    reach_private(api)
    async with service() as peer:
        given = {
            "provider": "twilio",
            "account_sid": "AC123",
            "auth_token": "canarytoken7",
            "sender": "+15005550006",
            "base_url": peer.url,
        }
        shown = await call(api, "PUT", "/settings/gateway", given, who="global_admin")
        assert "canarytoken7" not in str(shown)
        for kind in ("sms", "voice"):
            method = await api.new_contact_method("viewer", kind, to="+4930123456")
            assert await call(api, "POST", f"{METHODS}/{method}/test") == {"ok": True}
    text, spoken = peer.got
    assert text.path == "/2010-04-01/Accounts/AC123/Messages.json"
    assert spoken.path == "/2010-04-01/Accounts/AC123/Calls.json"
    form = parse_qs(text.body.decode())
    assert form["To"] == ["+4930123456"]
    assert form["From"] == ["+15005550006"]
    assert form["Body"][0].startswith("Leadline test message")
    assert "<Say>Leadline. Leadline test message" in parse_qs(spoken.body.decode())["Twiml"][0]
    secret = base64.b64decode(text.headers["authorization"].removeprefix("Basic "))
    assert secret == b"AC123:canarytoken7"


async def test_a_call_says_the_digits_of_a_code_and_typing_them_verifies(api: Api) -> None:
    reach_private(api)
    async with service() as peer:
        voice = {"url": f"{peer.url}/call", "body": '{"to": "{to}", "say": "{text}"}'}
        given = {"provider": "http", "voice": voice}
        await call(api, "PUT", "/settings/gateway", given, who="global_admin")
        made = await make(api, "", kind="voice", config={"to": "0049 (0)30 / 123-456"})
        assert made["config"] == {"to": "+4930123456"}
        path = f"{METHODS}/{made['id']}"
        assert await call(api, "POST", f"{path}/code") == {"ok": True}
        said = re.search(r"Your code is ((?:[0-9], ){5}[0-9])\.", peer.got[0].json["say"])
        assert said is not None
        digits = said[1].replace(",", "")
        assert (await call(api, "POST", f"{path}/verify", {"code": digits}))["verified_at"]


async def test_without_a_gateway_an_sms_is_not_sent(api: Api) -> None:
    method = await api.new_contact_method("viewer", "sms", to="+4930123456")
    sent = await call(api, "POST", f"{METHODS}/{method}/test")
    assert sent == {"ok": False, "reason": "gateway_unavailable"}
