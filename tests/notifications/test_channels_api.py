"""Notification channels: secrets are accepted and never returned, and an edit cannot redirect
them."""

from dataclasses import replace
from typing import Any, get_args

import pytest

from leadline.http.notifications.schemas.notifications import ChannelType
from leadline.probes.net.egress_policy import notify_policy
from leadline.probes.senders.channel_spec import MASK
from leadline.probes.senders.deliver import SPECS
from leadline.storage.engine.keyring import Keyring
from leadline.storage.notifications.queries import channels
from leadline.storage.notifications.tables import channels as table
from leadline.storage.notifications.transactions.channel_secrets import opened
from leadline.storage.notifications.transactions.edit_channels import CHANNELS_OF_PROJECT_MOST
from tests.support.app.cast import Api
from tests.support.peers.fake_services import service
from tests.support.processes.ports import refusing_port

TOKEN = "tk_canary5f1c"
NTFY = {"url": "https://ntfy.example.com", "topic": "ops", "token": TOKEN}


def test_the_types_of_the_wire_are_those_that_there_are_senders_for() -> None:
    assert set(get_args(ChannelType)) == set(SPECS)


async def make(api: Api, kind: str = "ntfy", status: int = 201, **config: str) -> Any:
    body = {"type": kind, "name": "Operators", "config": config or NTFY}
    path = f"/api/v1/projects/{api.project}/notification-channels"
    answer = await api.ask("editor", "POST", path, body)
    found = await answer.get_json()
    assert answer.status_code == status, found
    return found


async def patch(api: Api, made: Any, status: int = 200, **body: Any) -> Any:
    path = f"/api/v1/notification-channels/{made['id']}"
    answer = await api.ask("editor", "PATCH", path, body)
    found = await answer.get_json()
    assert answer.status_code == status, found
    return found


async def stored(api: Api, made: Any) -> dict[str, str]:
    async with api.pool.transaction("look", read_only=True) as tx:
        row = await channels.select_channel(tx, made["id"])
    assert row is not None
    return opened(row, api.context.keyring)


async def listed(api: Api, path: str = "") -> Any:
    path = path or f"/projects/{api.project}/notification-channels"
    return await (await api.ask("viewer", "GET", f"/api/v1{path}")).get_json()


async def test_a_secret_is_shown_as_a_mask_and_stored_sealed(api: Api) -> None:
    made = await make(api)
    assert made["config"] == {**NTFY, "token": MASK}
    assert made["project_id"] == str(api.project)
    assert await listed(api) == [made]
    assert await stored(api, made) == NTFY
    ((config, sealed),) = await api.rows(
        "select config::text, config_ciphertext from notification_channels"
    )
    assert TOKEN not in config
    assert TOKEN.encode() not in sealed
    ((action, target),) = await api.rows("select action, target from audit_entries")
    assert action == "channel.create"
    assert TOKEN not in target


@pytest.mark.parametrize("kept", ["", MASK])
async def test_a_blank_secret_keeps_what_is_stored_and_the_rest_stays(api: Api, kept: str) -> None:
    made = await make(api)
    after = await patch(api, made, config={"token": kept, "topic": "night"})
    assert after["config"] == {**NTFY, "topic": "night", "token": MASK}
    assert await stored(api, made) == {**NTFY, "topic": "night"}
    after = await patch(api, made, name="Night", enabled=False)
    assert (after["name"], after["enabled"]) == ("Night", False)
    assert await stored(api, made) == {**NTFY, "topic": "night"}


async def test_a_returned_config_can_be_written_back_unchanged(api: Api) -> None:
    made = await make(api)
    before = await api.rows("select config_ciphertext from notification_channels")
    assert await patch(api, made, config=made["config"]) == made
    assert await patch(api, made, config=NTFY, name=made["name"], enabled=True) == made
    assert await stored(api, made) == NTFY
    assert await api.rows("select config_ciphertext from notification_channels") == before
    assert await api.rows("select action from audit_entries") == [("channel.create",)]
    await patch(api, made, config={"token": "other"})
    assert len(await api.rows("select from audit_entries")) == 2


@pytest.mark.parametrize(
    "url", ["https://evil.example.com", "http://ntfy.example.com", "https://ntfy.example.com:8443"]
)
async def test_a_secret_is_not_sent_to_another_host_unless_it_is_given_again(
    api: Api, url: str
) -> None:
    made = await make(api)
    for kept in ({}, {"token": ""}, {"token": MASK}):
        refused = await patch(api, made, 400, config={"url": url, **kept})
        assert refused == {"error": "config.token: must be given again, as host or port changed"}
    assert await stored(api, made) == NTFY
    await patch(api, made, config={"url": url, "token": "other"})
    assert await stored(api, made) == {**NTFY, "url": url, "token": "other"}


async def test_leaving_the_host_out_again_is_a_move_too(api: Api) -> None:
    made = await make(api)
    refused = await patch(api, made, 400, config={"url": ""})
    assert refused["error"].startswith("config.token")


@pytest.mark.parametrize(
    ("kind", "config", "field"),
    [
        ("ntfy", {"topic": "a b"}, "config.topic"),
        ("ntfy", {"topic": "ops", "other": "x"}, "config.other"),
        ("webhook", {"url": "nowhere"}, "config.url"),
        ("webhook", {"url": "https://x.test/", "secret": TOKEN}, "config.secret"),
        ("slack", {"url": ""}, "config.url"),
        ("slack", {"url": MASK}, "config.url"),
        ("email", {"to": TOKEN}, "config.to"),
        ("apprise", {"url": f"json://{TOKEN}"}, "config.url"),
        ("carrier-pigeon", {"to": "x"}, "type"),
    ],
)
async def test_an_invalid_field_is_named_and_its_value_not_repeated(
    api: Api, kind: str, config: dict[str, str], field: str
) -> None:
    refused = await make(api, kind, 400, **config)
    assert refused["error"].startswith(field)
    assert TOKEN not in refused["error"]
    assert await listed(api) == []


async def test_the_refusal_of_a_key_states_its_length(api: Api) -> None:
    refused = await make(api, "opsgenie", 400, api_key="short")
    assert refused == {"error": "config.api_key: must be 8 to 128 letters, digits and dashes"}


async def test_the_whole_is_checked_after_an_edit(api: Api) -> None:
    made = await make(api)
    assert (await patch(api, made, 400, config={"topic": ""}))[
        "error"
    ] == "config.topic: is required"
    assert (await patch(api, made, 400, name=" "))["error"].startswith("name")
    assert (await patch(api, made, 400, type="slack"))["error"] == "invalid JSON body"


def without_keys(api: Api) -> None:
    object.__setattr__(api.context, "keyring", Keyring(None))


async def test_a_secret_needs_an_encryption_key(api: Api) -> None:
    without_keys(api)
    assert await make(api, status=400) == {"error": "encryption_key_missing"}
    await make(api, topic="ops")


async def test_secrets_that_no_key_opens_are_given_again_and_cannot_be_kept(api: Api) -> None:
    made = await make(api)
    object.__setattr__(api.context, "keyring", Keyring(b"o" * 32))
    tested = await api.ask("editor", "POST", f"/api/v1/notification-channels/{made['id']}/test")
    assert await tested.get_json() == {"ok": False, "reason": "decrypt_failed"}
    refused = await patch(api, made, 400, config={"topic": "night"})
    assert refused["error"].startswith("config.token")
    await patch(api, made, config={"token": "new"})
    assert await stored(api, made) == {**NTFY, "token": "new"}


async def test_a_project_has_a_limit_of_channels(api: Api, monkeypatch: Any) -> None:
    async def full(*_: Any) -> int:
        return CHANNELS_OF_PROJECT_MOST

    monkeypatch.setattr(table, "count_channels", full)
    assert await make(api, status=409) == {"error": "channel_quota"}


async def test_a_monitor_notifies_channels_of_its_own_project(api: Api) -> None:
    made = await make(api)
    monitor = (await api.new_monitor()).uid
    foreign = (await api.new_monitor("acme/mill")).uid
    path = f"/monitors/{monitor}/notifications"
    body = {"channel_id": made["id"]}
    for _ in range(2):
        answer = await api.ask("editor", "POST", f"/api/v1{path}", body)
        assert answer.status_code == 204
    assert await listed(api, path) == [made]
    answer = await api.ask("editor", "POST", f"/api/v1/monitors/{foreign}/notifications", body)
    assert await answer.get_json() == {"error": "channel_id: names no channel of this project"}
    gone = [
        (await api.ask("editor", "DELETE", f"/api/v1{path}/{made['id']}")).status_code
        for _ in range(2)
    ]
    assert gone == [204, 404]
    assert await listed(api, path) == []
    await api.ask("editor", "POST", f"/api/v1{path}", body)
    await api.ask("editor", "DELETE", f"/api/v1/notification-channels/{made['id']}")
    assert await listed(api, path) == []
    actions = [
        action for (action,) in await api.rows("select action from audit_entries order by id")
    ]
    assert [a for a in actions if a.startswith("channel")] == [
        "channel.create",
        "channel.attach",
        "channel.detach",
        "channel.attach",
        "channel.delete",
    ]


async def test_a_test_returns_its_outcome_as_a_bounded_reason(api: Api) -> None:
    async with service() as peer:
        made = await make(api, "webhook", url=f"{peer.url}/{TOKEN}")
        path = f"/api/v1/notification-channels/{made['id']}/test"
        blocked = await (await api.ask("editor", "POST", path)).get_json()
        assert blocked == {"ok": False, "reason": "target_blocked"}
        assert peer.got == []
        means = api.context.means
        open_reach = replace(means.reach, policy=notify_policy(allow_private=True))
        object.__setattr__(api.context, "means", replace(means, reach=open_reach))
        assert await (await api.ask("editor", "POST", path)).get_json() == {"ok": True}
    (got,) = peer.got
    assert got.json["event"] == "channel.test"
    assert "Operators" in str(got.json["lines"])
    with refusing_port() as port:
        away = await make(api, "webhook", url=f"http://127.0.0.1:{port}/{TOKEN}")
        path = f"/api/v1/notification-channels/{away['id']}/test"
        failed = await (await api.ask("editor", "POST", path)).get_json()
    assert failed == {"ok": False, "reason": "connect_refused"}


async def test_templates_are_previewed_stored_and_removed(api: Api) -> None:
    words = {"title_template": "[{severity}] {title}", "text_template": "{why}\n{runbook_url}"}
    path = f"/api/v1/projects/{api.project}/notification-channels/preview"
    answer = await api.ask("editor", "POST", path, words)
    assert answer.status_code == 200
    shown = await answer.get_json()
    assert shown["title"] == "[major] Checkout is down"
    assert shown["lines"] == ["http_status 503", "https://wiki.example.com/checkout"]
    made = await make(api, **NTFY, **words)
    assert made["config"]["text_template"] == words["text_template"]
    cleared = await patch(api, made, config={**NTFY, "token": MASK, "title_template": ""})
    assert not cleared["config"].get("title_template")
    assert (await stored(api, made))["text_template"] == words["text_template"]


@pytest.mark.parametrize("setting", ["title_template", "text_template"])
async def test_a_template_with_an_unknown_field_is_refused(api: Api, setting: str) -> None:
    for path in ("", "/preview"):
        body: dict[str, Any] = {setting: "{token}"}
        if not path:
            body = {"type": "ntfy", "name": "Operators", "config": {**NTFY, **body}}
        where = f"/api/v1/projects/{api.project}/notification-channels{path}"
        answer = await api.ask("editor", "POST", where, body)
        assert answer.status_code == 400
        assert f"config.{setting}" in (await answer.get_json())["error"]
