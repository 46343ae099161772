"""The commands that take over on-call: what they print, and the requests that they send."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner

from leadline.daemon.cli import main
from leadline.daemon.cli.client.session import Api
from leadline.daemon.cli.oncall_document import Application, people_in, write_document
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

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, Any]] = []
        self.server_time = datetime.fromisoformat("2026-02-01T00:00:00Z")

    async def get(self, path: str, _: str) -> Any:
        return [{"name": "Shop", "id": "old"}] if path.endswith("/oncall-schedules") else []

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
