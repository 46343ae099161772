"""A pipeline and a real daemon: gate requests, recorded changes, and the documented recipes."""

import json
import os
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.app.recipes import Host
from tests.support.processes.daemon_process import LEADLINE, Daemon, Refusal
from tests.support.run.effort import varied

from .conftest import eventually, project_of

CLAUSES = (
    "budget_exhausted",
    "budget_consumed",
    "page_burn_firing",
    "ticket_burn_firing",
    "service_incident_open",
)
DEPLOY = ("--kind", "deploy", "--source", "shell")


@dataclass
class Pipeline:
    """A service without sealed time, and tokens of a pipeline."""

    leadline: Daemon
    organization: str
    project: str
    service: str

    def token(self, *actions: str, role: str = "editor") -> str:
        body = {"name": "ci", "role": role, **({"actions": actions} if actions else {})}
        path = f"/organizations/{self.organization}/tokens"
        return str(self.leadline.api("POST", path, body)["token"])

    def policy(self, assignment: str, unknown: str = "block", seen: int | None = None) -> int:
        body = {
            "expected_revision": seen,
            "schema_version": 2,
            "window_mode": "one",
            "window": "30d",
            "clauses": dict.fromkeys(CLAUSES, assignment),
            "budget_consumed_percent": 80,
            "max_seal_lag_seconds": 900,
            "unknown_behavior": unknown,
        }
        path = f"/projects/{self.project}/services/{self.service}/gate/policy"
        return int(self.leadline.api("PUT", path, body)["revision"])

    def call(self, token: str, *arguments: str, by: tuple[str, str] | None = None) -> Any:
        project, service = by or (self.project, self.service)
        environment = {**os.environ, "LEADLINE_URL": self.leadline.url, "LEADLINE_TOKEN": token}
        command = [LEADLINE, *arguments, "--project", project, "--service", service]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    def changes(self) -> list[dict[str, Any]]:
        """Returns the changes of today, the newest first."""
        now = datetime.now(UTC)
        ends = [f"{now + timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}" for days in (-1, 1)]
        path = f"/projects/{self.project}/services/{self.service}/changes"
        answer = self.leadline.api("GET", f"{path}?from={ends[0]}&to={ends[1]}")
        return list(answer["items"])


@pytest.fixture
def pipeline(shared: Daemon, request: pytest.FixtureRequest) -> Pipeline:
    """Each test has its own service."""
    (organization,) = shared.api("GET", "/organizations")
    project = project_of(shared)
    slug = f"s{abs(hash(request.node.name))}"
    service = shared.api("POST", f"/projects/{project}/services", {"slug": slug, "name": slug})
    return Pipeline(shared, organization["id"], project, service["id"])


def test_gate_check_exits_by_the_decision(pipeline: Pipeline) -> None:
    token = pipeline.token("gate:evaluate")
    done = pipeline.call(token, "gate", "check")
    assert done.returncode == 4, done.stderr
    revision = pipeline.policy("block", "warn")
    done = pipeline.call(token, "gate", "check")
    assert (done.returncode, done.stdout.startswith("WARN")) == (0, True), done.stderr
    revision = pipeline.policy("block", "block", revision)
    # The printed decision is the stored one.
    done = pipeline.call(token, "gate", "check", "--json")
    assert done.returncode == 2, done.stderr
    said = json.loads(done.stdout)
    path = f"/projects/{pipeline.project}/gate/decisions/{said['decision_id']}"
    assert pipeline.leadline.api("GET", path) == said
    tomorrow = {"reason": "the fix", "policy_revision": revision, "expires_at": _tomorrow(said)}
    path = f"/projects/{pipeline.project}/services/{pipeline.service}/gate/override"
    pipeline.leadline.api("POST", path, tomorrow)
    done = pipeline.call(token, "gate", "check")
    assert done.returncode == 0
    assert ": the fix" in done.stdout


def _tomorrow(decision: dict[str, Any]) -> str:
    at = datetime.fromisoformat(decision["evaluated_at"])
    return (at + timedelta(days=1)).isoformat()


def test_an_unauthorized_token_gets_no_decision(pipeline: Pipeline) -> None:
    narrow = pipeline.token("change:record")
    wrong = pipeline.call("leadline_nobody", "gate", "check")
    assert (wrong.returncode, "401 unauthorized" in wrong.stderr) == (1, True)
    refused = pipeline.call(narrow, "gate", "check")
    assert (refused.returncode, "403 forbidden" in refused.stderr) == (1, True)


def test_slugs_work_with_each_token(pipeline: Pipeline) -> None:
    path = f"/projects/{pipeline.project}/services/{pipeline.service}"
    slugs = ("default", str(pipeline.leadline.api("GET", path)["service"]["slug"]))
    for token in (pipeline.token(role="viewer"), pipeline.token("gate:evaluate")):
        done = pipeline.call(token, "gate", "check", by=slugs)
        assert done.returncode == 4, done.stderr


@pytest.mark.soak
def test_a_repeated_change_is_recorded_once(pipeline: Pipeline) -> None:
    token = pipeline.token("change:record")
    started = ("change", "record", *DEPLOY, "--external-id", "1", "--phase", "started")
    for word in ("Recorded: ", "Already recorded: "):
        done = pipeline.call(token, *started)
        assert (done.returncode, done.stdout.startswith(word)) == (0, True), done.stderr
    ended = (*started[:-1], "succeeded")
    assert pipeline.call(token, *ended).returncode == 0
    done = pipeline.call(token, *started[:-1], "failed")
    assert (done.returncode, "refused: 409 phase_order" in done.stderr) == (2, True)
    done = pipeline.call(pipeline.token("gate:evaluate"), *started)
    assert (done.returncode, "not recorded: 403" in done.stderr) == (1, True)


# tests/gate/test_pipeline_recipes_command.py runs every recipe in each run, against a scripted
# server.
@pytest.mark.parametrize("recipe", varied(["shell"], ["shell", "github", "gitlab"]))
def test_an_allowed_recipe_deploys_and_reports_start_and_end(
    pipeline: Pipeline, recipe: str, tmp_path: Path
) -> None:
    token = pipeline.token("gate:evaluate", "change:record")
    host = Host(tmp_path, pipeline.leadline.url, token, pipeline.project, pipeline.service)
    host.prepare()
    assert getattr(host, recipe)() == 4, host.said
    revision = pipeline.policy("block")
    assert getattr(host, recipe)() == 2, host.said
    assert host.argo() == 2
    assert not host.deployed
    pipeline.policy("ignore", seen=revision)
    assert getattr(host, recipe)() == 0, host.said
    assert host.deployed
    (change,) = pipeline.changes()
    assert [phase["phase"] for phase in change["phases"]] == ["started", "succeeded"]
    assert change["decision"]["state"] == "ALLOW"


def test_a_request_above_the_rate_limit_gets_no_decision(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = pipeline.token("gate:evaluate")
    monkeypatch.setattr(pipeline.leadline, "cookie", "")
    path = f"/projects/{pipeline.project}/services/{pipeline.service}/gate"

    over = threading.Event()

    def spend() -> None:
        # Continuously: the limit refills while the command starts.
        while not over.wait(0.01):
            with suppress(Refusal):
                pipeline.leadline.api("POST", path, {}, Authorization=f"Bearer {token}")

    def turned_away() -> str:
        """Returns the error of a command that got no decision, else an empty text."""
        done = pipeline.call(token, "gate", "check")
        return str(done.stderr) if done.returncode == 1 else ""

    with ThreadPoolExecutor(1) as spending:
        spent = spending.submit(spend)
        try:
            assert "429 principal_rate: retry after " in eventually(turned_away, 60)
        finally:
            over.set()
        spent.result()
