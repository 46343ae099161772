"""The default escalation policy of a project is one of its own, and not deleted while chosen."""

from typing import Any
from uuid import uuid4

from tests.oncall.test_oncall_api import call
from tests.support.app.cast import Api


async def test_the_default_policy_is_chosen_and_kept(api: Api) -> None:
    project = f"/projects/{api.project}"
    path = f"{project}/default-escalation-policy"
    assert await call(api, "GET", path) == {"escalation_policy_id": None}
    hook: dict[str, Any] = {"type": "webhook", "name": "a", "config": {"url": "https://a.example/"}}
    channel = await call(api, "POST", f"{project}/notification-channels", hook, 201)
    steps = [{"after_seconds": 0, "targets": [{"type": "channel", "id": channel["id"]}]}]
    body = {"name": "night", "steps": steps}
    policy = await call(api, "POST", f"{project}/escalation-policies", body, 201)
    chosen = {"escalation_policy_id": policy["id"]}
    assert await call(api, "PUT", path, chosen) == chosen
    assert await call(api, "GET", path, who="viewer") == chosen
    await call(api, "PUT", path, chosen, 403, who="viewer")
    await call(api, "DELETE", f"/escalation-policies/{policy['id']}", status=409)
    refused = await call(api, "PUT", path, {"escalation_policy_id": str(uuid4())}, 400)
    assert "escalation_policy_id" in str(refused)
    await call(api, "PUT", path, {"escalation_policy_id": None})
    await call(api, "DELETE", f"/escalation-policies/{policy['id']}", status=204)
