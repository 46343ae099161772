"""A document of on-call against the API: a second call changes nothing, and settings stay."""

from datetime import UTC, datetime
from typing import Any, cast

from leadline.daemon.cli.client.oncall_document import Application, people_of, write_document
from leadline.daemon.cli.client.session import Api as Caller
from leadline.http.importers.on_call.document import layer_of
from leadline.storage.core.instant import HOUR, Instant, to_text
from tests.conftest import FROZEN_NOW
from tests.oncall.test_oncall_api import call
from tests.support.app.cast import Api


class Adapter:
    """Requests of the command to the app of the test, as an organization administrator."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.server_time = datetime.fromtimestamp(FROZEN_NOW / 1_000_000, UTC)

    async def get(self, path: str, _: str) -> Any:
        return await call(self.api, "GET", path, who="org_admin")

    async def send(self, method: str, path: str, body: Any, _: str) -> Any:
        status = 201 if method == "POST" else 200
        return await call(self.api, method, path, body, status, who="org_admin")


async def test_a_second_application_changes_nothing_and_keeps_settings(api: Api) -> None:
    adapter, project = Adapter(api), str(api.project)
    members = await adapter.get(f"/organizations/{api.org}/members", "")
    email = next(one["email"] for one in members if one.get("project_id") in (None, project))
    ids = people_of(members, project, [email])
    later = [to_text(Instant(FROZEN_NOW + hours * HOUR)) for hours in (1, 2)]
    override = {"person": email, "starts_at": later[0], "ends_at": later[1]}
    layer = layer_of("Shop", [email], FROZEN_NOW, 86_400, "Europe/Berlin")
    target = [{"schedule": "Shop"}, {"person": email}]
    document = {
        "schedules": [{**layer, "layers": [], "overrides": [override]}],
        "escalation_policies": [
            {"name": "Night", "steps": [{"after_seconds": 0, "targets": target}]}
        ],
        "routes": [],
    }
    path = f"/projects/{project}"

    async def apply() -> list[str]:
        to = Application(path, ids)
        return (await write_document(cast("Caller", adapter), document, to)).written

    assert await apply() == ["created Shop", "created an override of Shop", "created Night"]
    (schedule,) = await adapter.get(f"{path}/oncall-schedules", "")
    (policy,) = await adapter.get(f"{path}/escalation-policies", "")
    unstored = ("id", "project_id", "created_at", "updated_at")
    bodies = [
        {key: value for key, value in one.items() if key not in unstored}
        for one in (schedule, policy)
    ]
    kept = {"repeat_last": True, "ack_timeout_seconds": 900}
    before = (
        await adapter.send(
            "PUT", f"/oncall-schedules/{schedule['id']}", {**bodies[0], "hand_off_email": True}, ""
        ),
        await adapter.send("PUT", f"/escalation-policies/{policy['id']}", bodies[1] | kept, ""),
    )
    assert await apply() == ["replaced Shop", "replaced Night"]
    (schedule,) = await adapter.get(f"{path}/oncall-schedules", "")
    (policy,) = await adapter.get(f"{path}/escalation-policies", "")
    assert (schedule, policy) == before
    assert schedule["hand_off_email"]
    assert {key: policy[key] for key in kept} == kept
