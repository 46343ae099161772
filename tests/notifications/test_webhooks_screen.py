"""The screen of webhooks: the secret is shown once, and every action states its result."""

import re
from urllib.parse import urlencode

from tests.support.app.cast import Api

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


async def send(api: Api, who: str = "org_admin", **form: str) -> tuple[int, str, str]:
    path = f"/organizations/{api.org}/webhooks"
    answer = await api.ask(who, "POST", path, data=urlencode(form).encode(), headers=FORM)
    text = await answer.get_data(as_text=True)
    return answer.status_code, text, answer.headers.get("Location", "")


async def seen(api: Api, query: str = "") -> str:
    answer = await api.ask("org_admin", "GET", f"/organizations/{api.org}/webhooks{query}")
    assert answer.status_code == 200
    return await answer.get_data(as_text=True)


async def test_a_webhook_is_added_disabled_and_deleted(api: Api) -> None:
    assert "No webhooks yet" in await seen(api)
    status, page, _ = await send(api, act="add", url="https://hook.example.com/a")
    assert status == 200
    (secret,) = set(re.findall(r"whsec_[A-Za-z0-9+/=]+", page))
    page = await seen(api)
    assert secret not in page
    (uid,) = set(re.findall(r'name="uid" value="([^"]+)"', page))
    _, _, to = await send(api, act="disable", uid=uid)
    assert to.endswith("?done=disabled")
    assert "Disabled</span>" in await seen(api, "?done=disabled")
    assert "hook.example.com" in await seen(api, f"?show=delete&uid={uid}")
    _, _, to = await send(api, act="delete", uid=uid)
    assert "The webhook was deleted." in await seen(api, "?done=deleted")
    _, _, to = await send(api, act="delete", uid=uid)
    assert to.endswith("?done=gone")


async def test_a_test_states_its_result(api: Api) -> None:
    await send(api, act="add", url="http://127.0.0.1:1/")
    (uid,) = set(re.findall(r'name="uid" value="([^"]+)"', await seen(api)))
    status, page, _ = await send(api, act="test", uid=uid)
    assert status == 200
    assert "The test failed: " in page


async def test_a_refused_address_is_named_with_the_input_kept(api: Api) -> None:
    status, page, _ = await send(api, act="add", url="ftp://x")
    assert status == 400
    assert "URL: " in page
    assert 'value="ftp://x"' in page


async def test_a_secret_that_is_too_long_is_named_as_the_secret(api: Api) -> None:
    status, page, _ = await send(
        api, act="add", url="https://hook.example.com/a", secret="whsec_" + "a" * 4_096
    )
    assert status == 400
    assert "Secret: is too long." in page
    status, page, _ = await send(api, act="add", url="https://hook.example.com/" + "a" * 2_048)
    assert status == 400
    assert "URL: is too long." in page


async def test_a_webhook_of_another_organization_is_not_touched(api: Api) -> None:
    uid = str(await api.new_webhook())
    path = f"/organizations/{api.orgs['other'][1]}/webhooks"
    data = urlencode({"act": "delete", "uid": uid}).encode()
    answer = await api.ask("stranger", "POST", path, data=data, headers=FORM)
    assert answer.headers["Location"].endswith("?done=gone")
    assert uid in await seen(api)
