"""The page of a project's channels: secrets stay unseen, and only editors write."""

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import pytest

from leadline.probes.senders import SPECS
from tests.support.app.cast import Api

TOKEN = "canary-71c2"


async def send(api: Api, who: str, act: str, project: str = "acme/shop", **form: str) -> Any:
    body = urlencode({"act": act, **form}).encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    path = f"/projects/{api.projects[project][1]}/channels"
    return await api.ask(who, "POST", path, data=body, headers=headers)


async def text_of(answer: Any) -> str:
    data = await answer.get_data()
    return str(data, "utf-8")


async def seen(api: Api, who: str = "viewer") -> str:
    answer = await api.ask(who, "GET", f"/projects/{api.project}/channels")
    assert answer.status_code == 200
    return await text_of(answer)


async def ntfy(api: Api) -> str:
    form = {"type": "ntfy", "name": "Night", "config.topic": "ops", "config.token": TOKEN}
    assert (await send(api, "editor", "add", **form)).status_code == 303
    ((uid,),) = await api.rows("select uid from notification_channels")
    return str(uid)


async def test_an_editor_adds_changes_turns_off_and_deletes_one(api: Api) -> None:
    assert "No notification channels yet" in await seen(api)
    channel = await ntfy(api)
    assert "1 notification channel" in await seen(api)
    form = {"channel": channel, "name": "Day", "config.topic": "day", "config.token": ""}
    assert (await send(api, "editor", "save", **form)).status_code == 303
    page = await seen(api, "editor")
    assert 'value="day"' in page
    assert "leave blank to keep the stored value" in page
    assert (await send(api, "editor", "disable", channel=channel)).status_code == 303
    assert "<td>disabled</td>" in await seen(api)
    assert (await send(api, "editor", "enable", channel=channel)).status_code == 303
    assert "<td>enabled</td>" in await seen(api)
    assert (await send(api, "editor", "delete", channel=channel)).status_code == 303
    assert "No notification channels yet" in await seen(api)


async def test_no_page_shows_a_secret_and_a_refused_form_does_not_either(api: Api) -> None:
    await ntfy(api)
    form = {"type": "ntfy", "name": "Other one", "config.topic": "a b", "config.token": TOKEN}
    wrong = await send(api, "editor", "add", **form)
    assert wrong.status_code == 400
    text = await text_of(wrong)
    assert "Topic: must be 1 to 64 letters" in text
    assert 'value="Other one"' in text
    assert TOKEN not in text
    assert TOKEN not in await seen(api, "editor")


async def test_the_page_shows_the_outcome_of_a_test(api: Api) -> None:
    channel = str(await api.new_channel())
    text = await text_of(await send(api, "editor", "test", channel=channel))
    assert "Test failed: target_blocked." in text


async def test_every_type_can_be_added_there(api: Api) -> None:
    page = await seen(api, "editor")
    for spec in SPECS.values():
        assert f'name="type" value="{spec.type}"' in page
        for setting in spec.settings:
            assert f'id="{spec.type}-{setting.name}"' in page


@pytest.mark.parametrize("act", ["save", "enable", "delete", "test"])
async def test_a_channel_of_another_project_is_not_found_from_this_one(api: Api, act: str) -> None:
    channel = str(await api.new_channel())
    answer = await send(api, "org_admin", act, "acme/mill", channel=channel, name="x")
    assert answer.status_code == 404
    assert (await send(api, "org_admin", act, channel="none")).status_code == 404


@pytest.mark.parametrize("act", ["add", "save", "enable", "delete", "test", "nothing"])
async def test_a_viewer_sees_no_form_and_is_refused(api: Api, act: str) -> None:
    channel = str(await api.new_channel())
    page = await seen(api)
    assert "config." not in page
    assert (await send(api, "viewer", act, channel=channel)).status_code == 403


async def test_a_used_channel_is_not_deleted_and_the_page_names_its_use(api: Api) -> None:
    channel = await ntfy(api)
    await api.new_policy(UUID(channel))
    refused = await send(api, "editor", "delete", channel=channel)
    assert refused.status_code == 400
    assert "In use by an escalation policy" in await text_of(refused)
    assert "1 notification channel" in await seen(api)
