"""The page of a project's channels: secrets stay unseen, and only editors write."""

import re
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import pytest

from leadline.probes.senders.channel_spec import TEMPLATES
from leadline.probes.senders.deliver import SPECS
from leadline.storage.core.instant import HOUR
from tests.support.app.cast import Api
from tests.support.app.serving import call

TOKEN = "canary-71c2"


async def send(api: Api, who: str, act: str, project: str = "acme/shop", **form: str) -> Any:
    body = urlencode({"act": act, **form}).encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    path = f"/projects/{api.projects[project][1]}/channels"
    return await api.ask(who, "POST", path, data=body, headers=headers)


async def text_of(answer: Any) -> str:
    data = await answer.get_data()
    return str(data, "utf-8")


async def seen(api: Api, who: str = "viewer", query: str = "") -> str:
    answer = await api.ask(who, "GET", f"/projects/{api.project}/channels{query}")
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
    page = await seen(api, "editor", f"?show=edit&uid={channel}")
    assert 'value="day"' in page
    assert "leave blank to keep the stored value" in page
    assert (await send(api, "editor", "disable", channel=channel)).status_code == 303
    assert "Disabled</span>" in await seen(api)
    assert (await send(api, "editor", "enable", channel=channel)).status_code == 303
    assert "No recent delivery</span>" in await seen(api)
    assert (await send(api, "editor", "delete", channel=channel)).status_code == 303
    assert "No notification channels yet" in await seen(api)


async def test_a_project_secret_is_the_value_of_a_setting(api: Api) -> None:
    channel = await ntfy(api)
    assert "project secret" not in await seen(api, "editor", f"?show=edit&uid={channel}")
    for name in ("chat", "other"):
        await call(
            api, "POST", f"/projects/{api.project}/secrets", {"name": name, "value": TOKEN}, 201
        )
    form = {"channel": channel, "name": "Day", "config.topic": "day", "config.token": ""}
    assert (await send(api, "editor", "save", **form, **{"config.token_ref": "chat"})).status_code
    path = f"/projects/{api.project}/notification-channels"
    (one,) = await call(api, "GET", path)
    assert one["config"]["token_ref"] == "chat"
    assert "token" not in one["config"]
    page = await seen(api, "editor", f"?show=edit&uid={channel}")
    assert "<option selected>chat</option><option>other</option>" in page
    used = {
        row["name"]: row["used_by"]
        for row in await call(api, "GET", f"/projects/{api.project}/secrets")
    }
    assert used["chat"] == {"total": 1, "file_managed": 0}
    assert used["other"] == {"total": 0, "file_managed": 0}
    # A typed value beside the reference is refused; in its place it is stored.
    both = {**form, "config.token": TOKEN, "config.token_ref": "chat"}
    refused = await send(api, "editor", "save", **both)
    assert refused.status_code == 400
    await send(api, "editor", "save", **{**both, "config.token_ref": ""})
    (one,) = await call(api, "GET", path)
    assert "token_ref" not in one["config"]
    assert one["config"]["token"]


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
    page = await seen(api, "editor", "?show=add")
    for spec in SPECS.values():
        assert f'name="type" value="{spec.type}"' in page
        for setting in spec.settings:
            # Templates are on the screen of the channel.
            is_there = f'id="{spec.type}-{setting.name}"' in page
            assert is_there == (setting not in TEMPLATES)


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


def used_by(page: str, name: str) -> str:
    """The cell Used by in the row of a channel."""
    (row,) = [row for row in page.split("<tr>") if f">{name}</b>" in row]
    (cell,) = re.findall(r'<td class="wide hide-m wrap">(.*?)</td>', row)
    return re.sub(r"<[^>]+>", "", cell)


async def attach(api: Api, channel: UUID, *monitors: UUID) -> None:
    for monitor in monitors:
        path = f"/api/v1/monitors/{monitor}/notifications"
        body = {"channel_id": str(channel)}
        assert (await api.ask("editor", "POST", path, body)).status_code == 204


async def test_a_channel_lists_what_uses_it(api: Api) -> None:
    """A service reaches a channel through a step, a schedule of a step, or its own schedule."""
    idle, direct, shift = [await api.new_channel(name=name) for name in ("idle", "direct", "shift")]
    policy, schedule = await api.new_policy(direct), await api.new_schedule(shift)
    through = await api.new_policy(schedule=schedule)
    await attach(api, direct, *[(await api.new_monitor(name=f"till {n}")).uid for n in range(22)])
    await attach(api, shift, (await api.new_monitor(name="night <job>")).uid)
    service = await api.new_service(name="Checkout", escalation_policy=str(policy))
    await api.new_service(name="Storefront", escalation_policy=str(through))
    await api.new_service(name="Accounts", oncall_schedule=str(schedule))
    page = await seen(api)
    assert used_by(page, "idle") == "none"
    assert used_by(page, "direct") == "22 monitors, 1 service, 1 escalation policy"
    assert used_by(page, "shift") == "1 monitor, 2 services, 1 schedule"
    page = await seen(api, query=f"?show=uses&uid={direct}")
    assert "<b>22 monitors</b>" in page
    assert page.count("till ") == 20
    assert "and 2 more." in page
    assert f'<a href="/services/{service}">Checkout</a>' in page
    # A viewer cannot open the form of a policy.
    assert f"/escalation-policies/{policy}" not in page
    page = await seen(api, "editor", f"?show=uses&uid={direct}")
    assert f'<a href="/escalation-policies/{policy}/edit">' in page
    page = await seen(api, query=f"?show=uses&uid={shift}")
    assert "night &lt;job&gt;" in page
    assert f'<a href="/projects/{api.project}/on-call?schedule={schedule}">' in page
    assert re.search(r">Accounts</a>, <a[^>]*>Storefront<", page)
    assert "No monitor or policy uses this channel." in await seen(
        api, query=f"?show=uses&uid={idle}"
    )


async def test_an_override_uses_a_channel_until_it_ends(api: Api) -> None:
    channel, other = await api.new_channel(name="deputy"), await api.new_channel()
    schedule = await api.new_schedule(other)
    now = api.context.clock()
    for start, end in ((-2, -1), (1, 2)):
        async with api.pool.transaction("override") as tx:
            await tx.execute(
                "insert into oncall_overrides (org, uid, schedule, channel, starts_at, ends_at,"
                " created_at) select s.org, gen_random_uuid(), s.id, c.id, at(%(start)s),"
                " at(%(end)s), at(%(now)s) from oncall_schedules s, notification_channels c"
                " where s.uid = %(schedule)s and c.uid = %(channel)s",
                start=now + start * HOUR,
                end=now + end * HOUR,
                now=now,
                schedule=schedule,
                channel=channel,
            )
        expected = "none" if end < 0 else "1 schedule"
        assert used_by(await seen(api), "deputy") == expected


async def test_the_deletion_names_the_uses_first(api: Api) -> None:
    channel = await api.new_channel()
    await attach(api, channel, (await api.new_monitor(name="Till")).uid)
    page = await seen(api, "editor", f"?show=delete&uid={channel}")
    assert ">Till</a>" in page
    assert 'value="delete"' in page
    policy = await api.new_policy(channel)
    page = await seen(api, "editor", f"?show=delete&uid={channel}")
    assert "cannot be deleted while" in page
    assert f"/escalation-policies/{policy}/edit" in page
    assert 'value="delete"' not in page
    assert 'value="disable"' in page
    assert ">Till</a>" in await seen(api, "editor", f"?show=edit&uid={channel}")


async def test_the_uses_of_a_channel_of_another_project_are_not_found(api: Api) -> None:
    channel = await api.new_channel()
    mill = f"/projects/{api.projects['acme/mill'][1]}/channels?show=uses&uid={channel}"
    assert (await api.ask("org_admin", "GET", mill)).status_code == 404
    path = f"/projects/{api.project}/channels?show=uses&uid="
    assert (await api.ask("viewer", "GET", f"{path}x")).status_code == 404
    path = path.replace("uses", "edit")
    assert (await api.ask("viewer", "GET", f"{path}{channel}")).status_code == 403


async def test_a_template_is_previewed_with_the_typed_words_and_stored_on_save(api: Api) -> None:
    channel = await ntfy(api)
    words = {"config.title_template": "[{severity}] {title}", "config.text_template": "A\r\n{why}"}
    form = {"channel": channel, "name": "Night", "config.topic": "typed", **words}
    page = await text_of(await send(api, "editor", "preview", **form))
    assert "<b>[major] Checkout is down</b>\nA\nhttp_status 503\n" in page
    assert 'value="typed"' in page
    assert TOKEN not in page
    assert "[{severity}]" not in await seen(api, "editor", f"?show=edit&uid={channel}")
    assert (await send(api, "editor", "save", **form)).status_code == 303
    ((stored,),) = await api.rows("select config from notification_channels")
    assert stored["text_template"] == "A\n{why}"
    page = await seen(api, "editor", f"?show=edit&uid={channel}")
    assert "A\n{why}</textarea>" in page


async def test_a_form_keeps_what_was_typed_and_names_the_secrets_to_type_again(api: Api) -> None:
    channel = await ntfy(api)
    again = "Type token again: it is not stored yet."
    form = {"channel": channel, "name": "Night", "config.topic": "ops", "config.token": "new-71c3"}
    ticked = re.compile(r'<input id="tickets-[a-z]+"[^>]*checked')
    for act, topic in (("preview", "ops"), ("save", "a b")):
        sent = {**form, "config.topic": topic}
        page = await text_of(await send(api, "editor", act, **sent, takes_tickets="on"))
        assert ticked.search(page)
        assert again in page
        assert "new-71c3" not in page
        page = await text_of(await send(api, "editor", act, **{**sent, "config.token": ""}))
        assert not ticked.search(page)
        assert again not in page
    assert again not in await seen(api, "editor", f"?show=edit&uid={channel}")
    body = {"name": "chat", "value": TOKEN}
    # Without a secret of the project, a required secret is typed; a stored one is kept.
    assert re.search(r'<input id="slack-url"[^>]* required', await seen(api, "editor", "?show=add"))
    await call(api, "POST", f"/projects/{api.project}/secrets", body, 201)
    page = await seen(api, "editor", "?show=add")
    assert not re.search(r'<input id="slack-url"[^>]* required', page)
    fresh = {"type": "ntfy", "name": "N", "config.topic": "a b", "config.url": "https://a.test"}
    wrong = await send(
        api, "editor", "add", **fresh, **{"config.token_ref": "chat"}, takes_tickets="on"
    )
    page = await text_of(wrong)
    assert wrong.status_code == 400
    assert 'value="a b"' in page
    assert page.count('value="https://a.test"') == 1
    assert page.count("<option selected>chat</option>") == 1
    assert len(ticked.findall(page)) == 1
    assert again not in page
    page = await text_of(await send(api, "editor", "add", **fresh, **{"config.token": TOKEN}))
    assert page.count(again) == 1
    assert TOKEN not in page


async def test_an_unknown_field_of_a_template_is_named_by_its_setting(api: Api) -> None:
    channel = await ntfy(api)
    for act in ("preview", "save"):
        form = {
            "channel": channel,
            "name": "N",
            "config.topic": "ops",
            "config.text_template": "{x}",
        }
        wrong = await send(api, "editor", act, **form)
        page = await text_of(wrong)
        assert wrong.status_code == 400
        assert "Text template: must contain no other fields than {title}, {status}" in page
        assert "{x}</textarea>" in page
