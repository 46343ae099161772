"""The recipes of docs/how-to/pipelines.md work, as far as they run on any machine."""

import json
import socket
import threading
from collections.abc import Iterator
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pytest

from tests.changes.test_change_record_command import CHANGES, row
from tests.support.app.pipeline_server import (
    DECISION,
    PROJECT,
    SERVICE,
    TOKEN,
    Server,
    decision,
    http,
    serving,
)
from tests.support.app.recipes import Host, documents
from tests.support.run.effort import varied

RECIPES = ("shell", "github", "gitlab")
# All three are run for an allowed release.
FAILING = varied(["github"], RECIPES)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        running.says[CHANGES] = lambda stream, over: keep(running, stream, over)
        yield running


def keep(server: Server, stream: socket.socket, over: threading.Event) -> None:
    body = json.loads(server.asked[-1].body)
    given = {name: body[name] for name in ("kind", "phase", "source", "external_id")}
    stream.sendall(http({"replayed": False, "change": row(**given)}, "201 Created"))


def changes(server: Server) -> list[dict[str, Any]]:
    return [json.loads(a.body) for a in server.asked if a.line.split()[1].endswith("/changes")]


@pytest.fixture
def host(server: Server, tmp_path: Path) -> Host:
    made = Host(tmp_path, server.url, TOKEN, PROJECT, SERVICE)
    made.prepare()
    return made


def serve_decision(server: Server, state: str) -> None:
    path = f"POST /api/v1/projects/{PROJECT}/services/{SERVICE}/gate"
    server.says[path] = http(decision(state))


@pytest.mark.parametrize(
    ("state", "recipe"),
    varied(zip(cycle(["ALLOW", "WARN"]), RECIPES), product(["ALLOW", "WARN"], RECIPES)),
)
def test_an_allowed_release_deploys_and_reports_start_and_end(
    server: Server, host: Host, recipe: str, state: str
) -> None:
    serve_decision(server, state)
    assert getattr(host, recipe)() == 0, host.said
    assert host.deployed
    began, ended = changes(server)
    assert (began["phase"], ended["phase"]) == ("started", "succeeded")
    assert (began["source"], began["external_id"]) == (ended["source"], ended["external_id"])
    assert began["decision_id"] == DECISION
    assert TOKEN not in "".join(host.said)


@pytest.mark.parametrize("recipe", FAILING)
def test_a_failed_deployment_is_reported_as_failed(server: Server, host: Host, recipe: str) -> None:
    serve_decision(server, "ALLOW")
    host.prepare(deploys=False)
    assert getattr(host, recipe)() != 0
    assert [change["phase"] for change in changes(server)] == ["started", "failed"]


@pytest.mark.parametrize("recipe", FAILING)
@pytest.mark.parametrize("state", ["BLOCK", "NOT_CONFIGURED", "no decision"])
def test_a_blocked_release_does_not_deploy(
    server: Server, host: Host, recipe: str, state: str
) -> None:
    if state != "no decision":
        serve_decision(server, state)
    status = getattr(host, recipe)()
    assert status == {"BLOCK": 2, "NOT_CONFIGURED": 4, "no decision": 1}[state], host.said
    assert not host.deployed
    asked = [asked.line.split()[1].rpartition("/")[2] for asked in server.asked]
    assert asked == ["gate"]


def test_the_lenient_shell_deploys_only_without_a_policy(server: Server, host: Host) -> None:
    serve_decision(server, "BLOCK")
    assert host.shell(otherwise=True) == 2
    assert not host.deployed
    serve_decision(server, "NOT_CONFIGURED")
    assert host.shell(otherwise=True) == 0, host.said
    assert host.deployed


@pytest.mark.parametrize("recipe", FAILING)
def test_an_outage_after_the_decision_does_not_stop_a_deployment(
    server: Server, host: Host, recipe: str
) -> None:
    serve_decision(server, "ALLOW")
    server.says[CHANGES] = b""
    assert getattr(host, recipe)() == 0, host.said
    assert host.deployed


@pytest.mark.parametrize(
    ("state", "status"), [("ALLOW", 0), ("WARN", 0), ("BLOCK", 2), ("NOT_CONFIGURED", 4)]
)
def test_the_rollout_job_exits_by_the_decision(
    server: Server, host: Host, state: str, status: int
) -> None:
    serve_decision(server, state)
    assert host.argo() == status, host.said
    assert len(server.asked) == 1


def test_the_rollout_job_runs_once_with_a_token_from_a_secret() -> None:
    template, _ = documents("Argo Rollouts")
    (metric,) = template["spec"]["metrics"]
    job = metric["provider"]["job"]["spec"]
    assert (metric["count"], metric["failureLimit"], job["backoffLimit"]) == (1, 0, 0)
    (container,) = job["template"]["spec"]["containers"]
    given = {variable["name"]: variable for variable in container["env"]}
    assert set(given) == {"LEADLINE_URL", "LEADLINE_TOKEN"}
    assert "value" not in given["LEADLINE_TOKEN"]
