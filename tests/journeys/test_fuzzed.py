"""Every documented operation is called with valid and invalid input as three principals: no
response is a server error or undocumented.

The generated input is the same in each run. `LEADLINE_FUZZ_EXAMPLES` sets the number of examples
per operation.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.daemon_process import Daemon, daemon
from tests.support.run.effort import IS_SOAK, varied

EXAMPLES = os.environ.get("LEADLINE_FUZZ_EXAMPLES", "4" if IS_SOAK else "1")
# The coverage phase takes three quarters of the time.
PHASES = "examples,coverage,fuzzing" if IS_SOAK else "examples,fuzzing"
SECONDS_MOST = 900
# Limits of a failure message.
FOUND_LINES, LOG_LINES, LINE_LONGEST = 20, 15, 300
# Routes that end the session of the caller, or do not end by themselves.
NOT_ASKED = (
    "/api/v1/events",
    "/auth/logout",
    "/api/v1/me/password",
    # The requests use ids of earlier answers, which include the session of the caller.
    "/api/v1/me/sessions/{sessionID}",
    # This could require two-factor authentication of the caller.
    "/api/v1/settings/auth-policy",
)
NOWHERE = "01890000-0000-7000-8000-000000000000"
# A value that violates a rule outside of the schema is 400, 409 or 422; a missing feature is 503.
CONFIG = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", "4xx", "503"]
[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", "503"]
"""


@pytest.fixture(scope="module")
def leadline() -> Iterator[Daemon]:
    tries = "600"
    with daemon(
        LEADLINE_LOG__LEVEL="error", LEADLINE_LOCAL__LOGIN_RATE_LIMIT_PER_MINUTE=tries
    ) as running:
        running.start()
        running.sign_in()
        yield running


@pytest.fixture(scope="module")
def places(leadline: Daemon) -> dict[str, str]:
    """Creates one object for each id in a path, so that requests reach existing objects."""
    (organization,) = leadline.api("GET", "/organizations")
    org = f"/organizations/{organization['id']}"
    (project,) = leadline.api("GET", f"{org}/projects")
    home = f"/projects/{project['id']}"

    def made(path: str, **given: Any) -> str:
        return str(leadline.api("POST", path, given)["id"])

    target = {"type": "http", "target": "http://127.0.0.1:9/"}
    monitor = made(f"{home}/monitors", name="Till", **target)
    channel = made(f"{home}/notification-channels", type="ntfy", name="Ops", config={"topic": "x"})
    shift = {"shift_seconds": 86_400, "anchor_at": "2026-01-05T09:00:00Z"}
    page = made(f"{org}/status-pages", slug="harbour", title="Harbour")
    steps = [{"after_seconds": 0, "targets": [{"type": "channel", "id": channel}]}]
    soon = datetime.now(UTC) + timedelta(days=30)
    until = {
        "starts_at": soon.isoformat(),
        "ends_at": (soon + timedelta(hours=1)).isoformat(),
    }
    return {
        "orgID": organization["id"],
        "projectID": project["id"],
        "monitorID": monitor,
        "serviceID": made(f"{home}/services", slug="checkout", name="Checkout"),
        "incidentID": made(f"{home}/incidents", title="Slow", impact="minor"),
        "templateID": made(f"{home}/incident-templates", name="Slow", title="Slow"),
        "muteID": made(f"{home}/mutes", matchers="tag=db", reason="x", ends_at=until["ends_at"]),
        "channelID": channel,
        "scheduleID": made(
            f"{home}/oncall-schedules", name="Days", participants=[channel], **shift
        ),
        "policyID": made(f"{home}/escalation-policies", name="Ladder", steps=steps),
        "maintenanceID": made(f"{home}/maintenance", monitor_id=monitor, **until),
        "webhookID": made(f"{org}/webhooks", url="https://hooks.example.com/x"),
        "pageID": page,
        "componentID": made(
            f"/status-pages/{page}/components", name="Ferries", manual_status="operational"
        ),
        "slug": "harbour",
    }


def token(leadline: Daemon, organization: str, **given: Any) -> str:
    path = f"/organizations/{organization}/tokens"
    return str(leadline.api("POST", path, {"name": "fuzz", **given})["token"])


def credential(leadline: Daemon, organization: str, who: str) -> tuple[str, str]:
    """Returns the security scheme of the principal, and its credential."""
    if who == "global admin":
        leadline.sign_in()
        return "session", leadline.cookie.partition("=")[2]
    if who == "pipeline":
        return "bearer", token(leadline, organization, role="viewer", actions=["gate:evaluate"])
    return "bearer", token(leadline, organization, role="org_admin")


def narrowed(document: dict[str, Any], scheme: str) -> dict[str, Any]:
    """Limits the document to the operations of one scheme; the others stay unchanged and are
    refused.
    """
    for item in document["paths"].values():
        for operation in item.values():
            ways = operation.get("security") if isinstance(operation, dict) else None
            if ways and any(scheme in way for way in ways):
                operation["security"] = [{scheme: []}]
    return document


def config_of(scheme: str, secret: str, named: dict[str, str]) -> str:
    """Deletions get an id without an object, because the other operations need the existing
    objects.
    """
    key = "bearer" if scheme == "bearer" else "api_key"
    ids = "\n".join(f'"path.{name}" = "{value}"' for name, value in named.items())
    gone = "\n".join(f'"path.{name}" = "{NOWHERE}"' for name in named)
    return f"""{CONFIG}
[auth.openapi.{scheme}]
{key} = "{secret}"
[parameters]
{ids}
[[operations]]
include-method = "DELETE"
[operations.parameters]
{gone}
"""


def report(code: int, output: str, log: str) -> str:
    """Returns a short message: the exit, the first finding and the end of the daemon's log."""
    ended = f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
    parts = re.split(r"^=+ (?:FAILURES|ERRORS|SUMMARY) =+$", output, flags=re.MULTILINE)
    if len(parts) > 1:
        found = _lines_of(parts[1])[:FOUND_LINES]
    else:
        found = _lines_of(output)[-FOUND_LINES:]
    told = _lines_of(log)[-LOG_LINES:]
    return "\n".join([f"schemathesis {ended}", *found, "The log of the daemon ends with:", *told])


def _lines_of(text: str) -> list[str]:
    return [line[:LINE_LONGEST] for line in text.splitlines() if line.strip()]


def test_a_report_has_the_exit_the_first_finding_and_the_log() -> None:
    log = "\n".join(f"log {n}" for n in range(50))
    failures = "\n\n".join(f"failure {n}" for n in range(50))
    found = report(1, f"Loaded\n==== FAILURES ====\n{failures}\n=== SUMMARY ===\n1", log)
    assert found.splitlines()[:2] == ["schemathesis ended with 1", "failure 0"]
    assert found.splitlines()[-LOG_LINES:] == [f"log {n}" for n in range(35, 50)]
    assert len(found.splitlines()) < 40
    killed = report(-signal.SIGKILL, "Loaded\nasked a lot\n", "")
    assert killed.splitlines()[:3] == ["schemathesis ended by SIGKILL", "Loaded", "asked a lot"]


@pytest.mark.parametrize(
    "who",
    varied([] if IS_SOAK else ["global admin"], ["global admin", "org admin's token", "pipeline"]),
)
def test_fuzzing_finds_no_fault(
    leadline: Daemon, places: dict[str, str], tmp_path: Path, who: str
) -> None:
    leadline.sign_in()
    scheme, secret = credential(leadline, places["orgID"], who)
    document = tmp_path / "openapi.json"
    document.write_text(json.dumps(narrowed(leadline.api("GET", "/openapi.json"), scheme)))
    config = tmp_path / "schemathesis.toml"
    config.write_text(config_of(scheme, secret, places))
    ran = subprocess.run(
        [
            str(Path(sys.executable).with_name("schemathesis")),
            f"--config-file={config}",
            "--no-color",
            "run",
            str(document),
            f"--url={leadline.url}",
            "--checks=all",
            "--continue-on-failure",
            f"--phases={PHASES}",
            f"--max-examples={EXAMPLES}",
            "--seed=1",
            "--generation-deterministic",
            "--request-timeout=60",
            # The time to generate input depends on the machine.
            "--suppress-health-check=all",
            *(f"--exclude-path={path}" for path in NOT_ASKED),
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS_MOST,
        cwd=tmp_path,
        check=False,
    )
    log = leadline.log.read_text()
    if ran.returncode != 0 or "Traceback" in log:
        output = tmp_path / "output"
        output.write_text(ran.stdout + ran.stderr)
        found = report(ran.returncode, ran.stdout + ran.stderr, log)
        pytest.fail(f"{found}\nAll of the output: {output}", pytrace=False)
    # The credential is still valid at the end.
    named = {"Cookie": f"leadline_session={secret}"}
    named = named if scheme == "session" else {"Authorization": f"Bearer {secret}"}
    leadline.cookie = ""
    assert leadline.raw("GET", "/api/v1/me", **named)[0] == 200
