"""The commands that take over on-call: what they print, and the requests that they send."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner

from leadline.daemon.cli import main
from leadline.daemon.cli.client.oncall_document import (
    Application,
    people_in,
    people_of,
    write_document,
)
from leadline.daemon.cli.client.session import Api
from leadline.daemon.cli.service_lookup import ResourceNotFound
from leadline.http.importers import CannotImport
from leadline.http.importers.on_call import read_on_call
from tests.importers.test_on_call_models_rule import TOOLS, USERS, mail


@pytest.mark.parametrize("tool", TOOLS)
def test_the_document_and_the_report_are_printed(tool: str, tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(json.dumps(TOOLS[tool][0]))
    done = CliRunner().invoke(main, ["oncall-document", "import", tool, str(path)])
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    assert people_in(document) <= {mail(user) for user in USERS}
    assert "4 people, " in done.stderr
    if tool != "grafana-oncall":
        assert f"{mail('mara')} adds and confirms sms " in done.stderr


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"schedules": 7}', '{"schedules": {"a": 1}}'])
@pytest.mark.parametrize("tool", TOOLS)
def test_other_files_are_refused(tool: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(text)
    with pytest.raises(CannotImport):
        read_on_call(tool, path)


class Server:
    """Answers of a project that has one of the schedules already."""

    def __init__(
        self, schedules: list[Any] | None = None, policies: list[Any] | None = None
    ) -> None:
        self.schedules = schedules or [{"name": "Shop", "id": "old"}]
        self.policies = policies or []
        self.sent: list[tuple[str, str, Any]] = []
        self.server_time = datetime.fromisoformat("2026-02-01T00:00:00Z")

    async def get(self, path: str, _: str) -> Any:
        if path.endswith("/oncall-schedules"):
            return self.schedules
        return self.policies if path.endswith("/escalation-policies") else []

    async def send(self, method: str, path: str, body: Any, _: str) -> Any:
        self.sent.append((method, path, body))
        return {"id": "old" if method == "PUT" else f"new-{len(self.sent)}"}


async def test_schedules_are_written_before_the_steps_that_name_them(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(json.dumps(TOOLS["goalert"][0]))
    document = read_on_call("goalert", path).document
    server, people = Server(), {mail(user): f"id-{user}" for user in USERS}
    done = await write_document(cast("Api", server), document, Application("/projects/p", people))
    assert done.written[0] == "replaced Shop"
    assert [(method, path) for method, path, _ in server.sent[:1]] == [
        ("PUT", "/oncall-schedules/old")
    ]
    schedule = server.sent[0][2]
    assert schedule["participants"] == ["id-tomas", "id-aiko", "id-mara"]
    assert "overrides" not in schedule
    method, path_, policy = server.sent[-1]
    assert (method, path_) == ("POST", "/projects/p/escalation-policies")
    first, second = policy["steps"]
    assert {"type": "schedule", "id": "old"} in first["targets"]
    assert len(first["targets"]) == 2
    assert second == {"after_seconds": 300, "targets": [{"type": "person", "id": "id-mara"}]}
    overrides = [body for _, path, body in server.sent if path.endswith("/overrides")]
    assert {one["channel_id"] for one in overrides} == {"id-mara"}


def one_policy(target: dict[str, str]) -> dict[str, Any]:
    """Returns a document of a schedule and a policy."""
    schedule: dict[str, Any] = {"name": "Shop", "participants": [], "layers": [], "overrides": []}
    steps = [{"after_seconds": 0, "targets": [target]}]
    policies = [{"name": "Night", "steps": steps}]
    return {"schedules": [schedule], "escalation_policies": policies, "routes": []}


async def test_a_replacement_keeps_what_the_document_does_not_state() -> None:
    schedule = {"name": "Shop", "id": "old", "hand_off_email": True, "created_at": "x"}
    policy = {"name": "Night", "id": "p", "repeat_last": True, "ack_timeout_seconds": 900}
    server = Server([schedule], [policy])
    to = Application("/projects/p", {})
    await write_document(cast("Api", server), one_policy({"schedule": "Shop"}), to)
    (_, _, first), (method, path, second) = server.sent
    assert first == {"name": "Shop", "hand_off_email": True, "participants": [], "layers": []}
    assert (method, path) == ("PUT", "/escalation-policies/p")
    assert (second["repeat_last"], second["ack_timeout_seconds"]) == (True, 900)


@pytest.mark.parametrize(
    ("known", "target", "said"),
    [
        ([], "Gone", "no on-call schedules of the project: Gone"),
        ([{"name": "Shop", "id": key} for key in "ab"], "Shop", "several on-call schedules have"),
    ],
)
async def test_nothing_is_written_if_a_name_has_not_one_schedule(
    known: list[Any], target: str, said: str
) -> None:
    server = Server(known)
    document = one_policy({"schedule": target})
    with pytest.raises(ResourceNotFound, match=said):
        await write_document(cast("Api", server), document, Application("/projects/p", {}))
    assert server.sent == []


def test_people_are_members_of_the_project_or_of_its_organization() -> None:
    members: list[dict[str, Any]] = [
        {"email": "Ann@x", "user_id": "1"},
        {"email": "ben@x", "user_id": "2", "project_id": "p"},
        {"email": "eve@x", "user_id": "3", "project_id": "q"},
    ]
    assert people_of(members, "p", ["ann@x", "ben@x"]) == {"ann@x": "1", "ben@x": "2"}
    with pytest.raises(ResourceNotFound, match=r"^not members of the project: eve@x$"):
        people_of(members, "p", ["ann@x", "eve@x"])


def test_schedules_of_one_name_stay_apart_and_lost_targets_are_reported(tmp_path: Path) -> None:
    document: Any = json.loads(json.dumps(TOOLS["pagerduty"][0]))
    (schedule,), (policy,) = document["schedules"], document["escalation_policies"]
    document["schedules"].append({**schedule, "id": "S2"})
    document["schedules"].append({**schedule, "id": "S3", "schedule_layers": []})
    rule = {"escalation_delay_in_minutes": 5}
    policy["escalation_rules"] = [
        {**rule, "targets": [{"id": key, "type": "schedule_reference"}]} for key in ("S2", "S3")
    ]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(document))
    made = read_on_call("pagerduty", path)
    assert [one["name"] for one in made.schedules] == ["Shop", "Shop 2"]
    (imported,) = made.policies
    assert imported["steps"] == [{"after_seconds": 0, "targets": [{"schedule": "Shop 2"}]}]
    assert "escalation policy Night: target schedule_reference S3" in made.lost
    assert "schedule Shop: has no layer that can be imported" in made.lost


@pytest.mark.parametrize(
    ("zone", "start", "is_kept"),
    [
        ("America/New_York", "2026-02-02T03:00:00", False),
        ("America/New_York", "2026-02-02T12:00:00", True),
        ("Europe/Berlin", "2026-02-02T17:00:00", True),
        ("Europe/Berlin", "2026-02-02T16:00:00", False),
    ],
)
def test_shifts_of_one_level_that_can_overlap_are_reported(
    zone: str, start: str, is_kept: bool, tmp_path: Path
) -> None:
    shift: dict[str, Any] = {
        "type": "rolling_users",
        "frequency": "daily",
        "rolling_users": [["mara"]],
    }
    shift |= {"time_zone": "Europe/Berlin", "start": "2026-02-02T09:00:00", "duration": 28_800}
    document = {
        "users": [{"id": "mara", "username": "mara", "email": mail("mara")}],
        "schedules": [{"id": "S", "name": "Shop", "type": "web", "shifts": ["A", "B"]}],
        "on_call_shifts": [
            {**shift, "id": "A", "name": "A"},
            {**shift, "id": "B", "name": "B", "time_zone": zone, "start": start},
        ],
    }
    path = tmp_path / "export.json"
    path.write_text(json.dumps(document))
    made = read_on_call("grafana-oncall", path)
    assert (made.lost == []) == is_kept
    assert len(made.schedules[0]["layers"]) == is_kept
