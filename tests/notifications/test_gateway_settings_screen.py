"""Form of the gateway for SMS and calls: it sets what the API has, and shows no secret."""

from typing import Any

from leadline.storage.engine.keyring import Keyring
from tests.notifications.test_contact_methods_api import reach_private
from tests.server.test_setting_screen import shown, typed
from tests.support.app.cast import Api
from tests.support.app.serving import call
from tests.support.worlds.leasing import REFUSED, receiving, take

PATH = "/admin/gateway"
NOTHING = {
    "base_url": "https://api.twilio.com",
    **{
        f"{service}_{name}": value
        for service in ("sms", "voice")
        for name, value in (("method", "POST"), ("format", "json"))
    },
}


async def setting(api: Api) -> Any:
    return await call(api, "GET", "/settings/gateway", who="global_admin")


def http(url: str, **given: str) -> dict[str, str]:
    body = '{"to": "{to}", "message": "{text}"}'
    return {**NOTHING, "provider": "http", "sms_url": url, "sms_body": body, **given}


async def test_twilio_is_set_and_its_token_is_kept(api: Api) -> None:
    assert "No gateway is set" in await shown(api, PATH)
    form = {**NOTHING, "provider": "twilio", "account_sid": "AC1", "sender": "+4930123456"}
    status, page = await typed(api, PATH, **form)
    assert (status, "Auth token: is required." in page) == (400, True)
    assert 'value="AC1"' in page
    assert (await typed(api, PATH, **form, auth_token="s3cret-token"))[0] == 303
    assert (await typed(api, PATH, **{**form, "sender": "+4930123457"}))[0] == 303
    found = await setting(api)
    assert (found["configured"], found["sender"], found["secrets_set"]) == (
        True,
        "+4930123457",
        True,
    )
    page = await shown(api, PATH)
    assert "SMS and calls are sent by Twilio, from +4930123457." in page
    _, page = await typed(api, PATH, act="preview", test_to="+49 30 1", test_service="voice")
    assert "Phone number: must be a number" in page
    _, page = await typed(api, PATH, act="preview", test_to="0049 30 123456", test_service="voice")
    assert "POST https://api.twilio.com/2010-04-01/Accounts/AC1/Calls.json" in page
    assert "To=%2B4930123456" in page
    assert "authorization: …" in page
    assert "s3cret" not in page


async def test_another_api_is_previewed_and_tested(api: Api) -> None:
    reach_private(api)
    async with receiving() as receiver:
        url = receiver.url("/send?to={to}")
        status, page = await typed(api, PATH, **http(url, sms_headers="X-Key s3cret"))
        assert status == 400
        assert "Headers: each line must be a name, a colon and a value." in page
        assert "s3cret" not in page
        form = http(url, sms_headers="X-Key: s3cret")
        assert (await typed(api, PATH, **form))[0] == 303
        assert [(await setting(api))[one]["headers_set"] for one in ("sms", "voice")] == [
            True,
            False,
        ]
        test = {"test_to": "+4930123456", "test_service": "sms"}
        _, page = await typed(api, PATH, act="preview", **test)
        assert "/send?to=%2B4930123456" in page
        assert "x-key: …" in page
        assert "s3cret" not in page
        assert receiver.got == []
        _, page = await typed(api, PATH, act="test", **test)
        assert "The gateway accepted the SMS to +4930123456." in page
        (arrival,) = receiver.got
        assert arrival.headers["x-key"] == "s3cret"
        assert arrival.document == {
            "to": "+4930123456",
            "message": "Leadline: test of the gateway.",
        }

        async def refuse(_arrival: Any, stream: Any) -> None:
            await stream.send_all(REFUSED)

        receiver.otherwise = refuse
        _, page = await typed(api, PATH, act="test", **test)
        assert "did not accept the SMS to +4930123456: http_status 503" in page
        receiver.otherwise = take
        _, page = await typed(api, PATH, act="test", **{**test, "test_service": "voice"})
        assert "Nothing was sent: no gateway for calls is saved" in page
        # Blank keeps the headers, another URL requires them again, and a dash removes them.
        assert (await typed(api, PATH, **http(url)))[0] == 303
        assert (await setting(api))["sms"]["headers_set"] is True
        other = receiver.url("/other")
        _, page = await typed(api, PATH, **http(other))
        assert "must be given again, as the URL changed." in page
        assert (await typed(api, PATH, **http(other, sms_headers="-")))[0] == 303
        assert (await setting(api))["sms"]["headers_set"] is False
    rows = await api.rows("select target from audit_entries where action = 'settings.gateway'")
    assert {row[0] for row in rows} == {"settings:gateway provider=http"}


async def test_a_header_is_given_once(api: Api) -> None:
    reach_private(api)
    url = "http://sms.example/send?to={to}"
    for lines in ("X-Key: a\nX-Key: b", "Content-Type: a\ncontent-type: b"):
        status, page = await typed(api, PATH, **http(url, sms_headers=lines))
        assert status == 400
        assert "Headers: each name is given once, " in page
    assert (await setting(api))["configured"] is False
    sms = {"url": url, "body": '{"t": "{text}"}', "headers": {"X-Key": "a", "x-key": "b"}}
    given = {"provider": "http", "sms": sms}
    refused = await call(api, "PUT", "/settings/gateway", given, status=400, who="global_admin")
    assert refused["error"].startswith("sms.headers: must name each header once")


async def test_a_save_keeps_no_secret_that_no_key_opens(api: Api) -> None:
    reach_private(api)
    right, wrong = api.context.keyring, Keyring(b"w" * 32)
    url = "http://sms.example/send?to={to}"

    def under(keyring: Keyring) -> None:
        object.__setattr__(api.context, "keyring", keyring)

    form = {**http(url), "voice_url": url, "voice_body": '{"t": "{text}"}'}
    twilio = {**NOTHING, "provider": "twilio", "account_sid": "AC1", "sender": "+4930123456"}
    assert (await typed(api, PATH, **form, sms_headers="X-Key: s3cret"))[0] == 303
    under(wrong)
    found = await setting(api)
    assert [found[one]["headers_set"] for one in ("sms", "voice")] == [True, False]
    assert (await shown(api, PATH)).count("Stored.") == 1
    status, page = await typed(api, PATH, **form)
    assert status == 400
    assert "Headers: must be given again or removed, as no configured key opens them." in page
    under(right)
    assert (await setting(api))["sms"]["headers_set"] is True
    # The ways on: the headers, or a dash.
    under(wrong)
    assert (await typed(api, PATH, **form, sms_headers="X-Key: s3cret"))[0] == 303
    assert (await setting(api))["sms"]["headers_set"] is True
    under(right)
    assert (await typed(api, PATH, **form))[0] == 400
    assert (await typed(api, PATH, **form, sms_headers="-"))[0] == 303
    assert (await setting(api))["sms"]["headers_set"] is False
    assert (await typed(api, PATH, **twilio, auth_token="s3cret-token"))[0] == 303
    under(wrong)
    status, page = await typed(api, PATH, **twilio)
    assert status == 400
    assert "Auth token: must be given again, as no configured key opens it." in page
    assert (await typed(api, PATH, **twilio, auth_token="other-token"))[0] == 303
