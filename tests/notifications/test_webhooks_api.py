"""Webhooks of organizations: a secret that is shown once, and deliveries signed with it."""

import hashlib
import hmac
from dataclasses import replace
from typing import Any

import pytest

from leadline.http.notifications.schemas.notifications import Webhook
from leadline.probes.net.egress_policy import notify_policy
from leadline.probes.senders.webhook import key_of, secret_from
from leadline.storage.notifications.rules.webhook import WEBHOOKS_OF_ORGANIZATION_MOST
from leadline.storage.notifications.tables import webhooks as table
from tests.support.app.cast import Api
from tests.support.peers.fake_services import service

SECRET = secret_from(b"canary-31" * 3)


def path_of(api: Api) -> str:
    return f"/api/v1/organizations/{api.org}/webhooks"


async def make(api: Api, status: int = 201, **body: Any) -> Any:
    given = {"url": "https://hook.example.com/x", **body}
    answer = await api.ask("org_admin", "POST", path_of(api), given)
    found = await answer.get_json()
    assert answer.status_code == status, found
    return found


async def listed(api: Api) -> Any:
    return await (await api.ask("org_admin", "GET", path_of(api))).get_json()


async def test_a_secret_is_made_and_shown_once(api: Api) -> None:
    made = await make(api)
    key = key_of(made.pop("secret"))
    assert key is not None
    assert len(key) == 32
    assert made["created_by_email"] == "org_admin@example.com"
    assert await listed(api) == [made]
    assert set(made) <= set(Webhook.__struct_fields__)
    other = await make(api)
    assert key_of(other["secret"]) != key


async def test_a_given_secret_is_stored_sealed(api: Api) -> None:
    made = await make(api, secret=SECRET, project_id=str(api.project), enabled=False)
    assert (made["secret"], made["enabled"]) == (SECRET, False)
    assert made["project_id"] == str(api.project)
    ((sealed,),) = await api.rows("select secret_ciphertext from webhooks")
    assert SECRET.encode() not in sealed
    assert SECRET not in str(await api.rows("select * from audit_entries"))


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"url": "ftp://x.test"}, "url"),
        ({"url": "https://u:canary@x.test/"}, "url"),
        ({"secret": "canary"}, "secret"),
        ({"secret": ""}, "secret"),
        ({"project_id": "0195e3a0-0000-7000-8000-000000000001"}, "project_id"),
    ],
)
async def test_an_invalid_field_is_named_and_its_value_not_repeated(
    api: Api, body: dict[str, str], field: str
) -> None:
    error = (await make(api, 400, **body))["error"]
    assert error.startswith(f"{field}: ")
    assert "canary" not in error


async def test_a_project_of_another_organization_is_refused(api: Api) -> None:
    foreign = str(api.projects["other/shop"][1])
    assert (await make(api, 400, project_id=foreign))["error"].startswith("project_id")


async def test_one_is_turned_off_and_on_and_removed(api: Api) -> None:
    made = await make(api)
    path = f"/api/v1/webhooks/{made['id']}"
    for enabled in (False, False, True):
        answer = await api.ask("org_admin", "PATCH", path, {"enabled": enabled})
        found = await answer.get_json()
        assert found["enabled"] is enabled
        assert "secret" not in found
    statuses = [(await api.ask("org_admin", "DELETE", path)).status_code for _ in range(2)]
    assert statuses == [204, 404]
    actions = await api.rows("select action from audit_entries order by id")
    assert [action for (action,) in actions] == [
        "webhook.create",
        "webhook.update",
        "webhook.update",
        "webhook.delete",
    ]


async def test_an_organization_has_a_limit_of_webhooks(api: Api, monkeypatch: Any) -> None:
    async def full(*_: Any) -> int:
        return WEBHOOKS_OF_ORGANIZATION_MOST

    monkeypatch.setattr(table, "count_webhooks", full)
    assert await make(api, 409) == {"error": "webhook_quota"}


async def test_a_test_is_signed_with_the_stored_secret_and_keeps_out_of_private_networks(
    api: Api,
) -> None:
    async with service() as peer:
        made = await make(api, url=f"{peer.url}/x", secret=SECRET)
        path = f"/api/v1/webhooks/{made['id']}/test"
        blocked = await (await api.ask("org_admin", "POST", path)).get_json()
        assert blocked == {"ok": False, "reason": "target_blocked"}
        means = api.context.means
        open_reach = replace(means.reach, policy=notify_policy(allow_private=True))
        object.__setattr__(api.context, "means", replace(means, reach=open_reach))
        assert await (await api.ask("org_admin", "POST", path)).get_json() == {"ok": True}
    (got,) = peer.got
    assert got.headers["x-leadline-event"] == "webhook.test"
    expected = hmac.new(b"canary-31" * 3, got.body, hashlib.sha256).hexdigest()
    assert got.headers["x-leadline-signature"] == f"sha256={expected}"
