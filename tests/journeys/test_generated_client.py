"""A client can be generated from the OpenAPI document without a warning, and works."""

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support.processes.daemon_process import Daemon

NAME = "leadline_generated_client"


@pytest.fixture
def made(leadline: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    document = tmp_path / "openapi.json"
    document.write_text(json.dumps(leadline.api("GET", "/openapi.json")))
    bin_ = Path(sys.executable).parent
    ran = subprocess.run(
        [
            str(bin_ / "openapi-python-client"),
            "generate",
            f"--path={document}",
            f"--output-path={tmp_path / NAME}",
            "--meta=none",
            "--fail-on-warning",
        ],
        capture_output=True,
        text=True,
        timeout=300,
        env={"PATH": f"{bin_}:/usr/bin:/bin", "HOME": str(tmp_path)},
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-5_000:] + ran.stderr[-2_000:]
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path / NAME
    for name in [name for name in sys.modules if name.partition(".")[0] == NAME]:
        del sys.modules[name]


def part(name: str) -> ModuleType:
    return importlib.import_module(f"{NAME}.{name}")


@pytest.mark.soak
def test_a_generated_client_creates_and_reads_a_monitor(leadline: Daemon, made: Path) -> None:
    (organization,) = leadline.api("GET", "/organizations")
    path = f"/organizations/{organization['id']}/tokens"
    token = leadline.api("POST", path, {"name": "ci", "role": "editor"})["token"]
    client = part("client").AuthenticatedClient(base_url=leadline.url, token=token)
    models = part("models")

    def call(module: str, *given: Any, **named: Any) -> Any:
        return part(f"api.{module}").sync(*given, client=client, **named)

    (place,) = call("organizations.get_organizations")
    assert str(place.id) == organization["id"]
    (project,) = call("projects.get_organizations_org_id_projects", place.id)
    draft = models.CreateMonitor(
        name="Till", type_=models.MonitorType.HTTP, target="http://127.0.0.1:9/", tags=["shop"]
    )
    monitor = call("monitors.post_projects_project_id_monitors", project.id, body=draft)
    assert (monitor.name, monitor.interval_seconds, monitor.tags) == ("Till", 60, ["shop"])
    (listed,) = call("monitors.get_projects_project_id_monitors", project.id)
    assert listed.id == monitor.id
    assert listed.type_ is models.MonitorType.HTTP
    draft.interval_seconds = 1
    refused = call("monitors.post_projects_project_id_monitors", project.id, body=draft)
    assert refused.error == "interval_seconds: must be 5 to 86400 seconds"
