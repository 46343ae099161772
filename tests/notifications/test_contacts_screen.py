"""The screen of the own contact methods: every action, and refusals with the input kept."""

from urllib.parse import urlencode

from leadline.storage.notifications.rules.contact_method import SENDS_MOST
from tests.support.app.cast import Api

PATH = "/profile/contacts"


async def shown(api: Api, query: str = "") -> str:
    answer = await api.ask("viewer", "GET", f"{PATH}{query}")
    assert answer.status_code == 200
    return str(await answer.get_data(), "utf-8")  # type: ignore[arg-type]


async def send(api: Api, status: int, **form: str) -> str:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    body = urlencode(form).encode()
    answer = await api.ask("viewer", "POST", PATH, data=body, headers=headers)
    text = str(await answer.get_data(), "utf-8")  # type: ignore[arg-type]
    assert answer.status_code == status, text
    return text


async def test_a_method_is_added_and_deleted(api: Api) -> None:
    assert "No contact methods yet" in await shown(api)
    assert 'name="config.user_id"' in await shown(api, "?kind=mattermost")
    form = {"act": "add", "kind": "sms", "label": "Mobile", "config.to": "030 1"}
    refused = await send(api, 400, **form)
    assert "must be a phone number such as +4930123456" in refused
    assert 'value="030 1"' in refused
    await send(api, 303, **{**form, "config.to": "+4930123456"})
    text = await shown(api)
    assert "not verified" in text
    assert "+4930123456" in text
    ((method,),) = await api.rows("select uid from contact_methods")
    assert "No valid code" not in text
    assert 'value="delete"' not in text
    asked = await shown(api, f"?delete={method}")
    assert "its rules are deleted" in asked
    assert 'value="delete"' in asked
    await send(api, 303, act="delete", method=str(method))
    assert "No contact methods yet" in await shown(api)


async def test_a_secret_of_a_method_is_not_shown(api: Api) -> None:
    url = "https://hooks.example/canary4t"
    form = {"act": "add", "kind": "slack", "label": "Chat", "config.url": url}
    await send(api, 303, **form)
    assert "canary4t" not in await shown(api)


async def test_a_code_that_cannot_be_sent_says_why_and_a_wrong_one_is_refused(api: Api) -> None:
    method = str(await api.new_contact_method("viewer", verified=False))
    assert "Not sent: target_blocked." in await send(api, 200, act="code", method=method)
    wrong = await send(api, 400, act="verify", method=method, code="12")
    assert "Code: wrong code." in wrong
    for _ in range(SENDS_MOST - 1):
        await send(api, 200, act="code", method=method)
    assert "Too many messages in an hour" in await send(api, 429, act="code", method=method)


async def test_rules_and_quiet_hours_are_saved(api: Api) -> None:
    method = str(await api.new_contact_method("viewer"))
    form = {"act": "rules", f"page-{method}": "0", f"ticket-{method}": "15"}
    quiet = {"quiet-from": "22:00", "quiet-until": "07:00", "quiet-zone": "Europe/Berlin"}
    await send(api, 303, **form, **quiet)
    text = await shown(api)
    assert f'name="ticket-{method}"' in text
    assert 'value="15"' in text
    assert 'value="22:00"' in text
    rules = await api.rows("select severity, delay_seconds from contact_rules order by severity")
    assert rules == [("page", 0), ("ticket", 900)]
    assert "must be 0 to 1440 minutes" in await send(
        api, 400, act="rules", **{f"page-{method}": "1441"}
    )
    typed = {f"page-{method}": "7", "quiet-from": "21:30", "quiet-zone": "Asia/Tokyo"}
    refused = await send(api, 400, act="rules", **typed)
    assert "Quiet until: must be a time such as 22:00." in refused
    for text in ('value="7"', 'value="21:30"', "<option selected>Asia/Tokyo"):
        assert text in refused, "what was typed stays"
    assert 'value="22:00"' not in refused
    assert "Rules saved." in await shown(api, "?done=rules")
    await send(api, 303, act="disable", method=method)
    assert "disabled" in await shown(api)
    await send(api, 303, act="enable", method=method)
