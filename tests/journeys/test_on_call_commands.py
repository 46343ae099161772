"""A person on call works with the commands only, against a real daemon."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.support.processes.daemon_process import LEADLINE, Daemon
from tests.support.processes.ports import refusing_port

from .conftest import eventually


def test_a_person_on_call_handles_an_outage(leadline: Daemon, tmp_path: Path) -> None:
    (organization,) = leadline.api("GET", "/organizations")
    path = f"/organizations/{organization['id']}/tokens"
    tokens = {
        role: str(leadline.api("POST", path, {"name": role, "role": role})["token"])
        for role in ("editor", "viewer")
    }
    kept = {k: v for k, v in os.environ.items() if not k.startswith("LEADLINE_")}
    environment = {**kept, "XDG_CONFIG_HOME": str(tmp_path)}

    def run(*arguments: str, stdin: str = "", status: int = 0) -> Any:
        command = [LEADLINE, *arguments]
        done = subprocess.run(command, env=environment, input=stdin, capture_output=True, text=True)
        assert done.returncode == status, done.stderr
        return done

    for role, token in tokens.items():
        to_file = ("--profile", role, "--store", "file", "--token-stdin")
        run("login", "--url", leadline.url, *to_file, stdin=token)
    run("profiles", "use", "editor")
    with refusing_port() as port:
        target = f"127.0.0.1:{port}"
        run(
            "monitors",
            "add",
            "Database",
            "--type",
            "tcp",
            "--target",
            target,
            "--interval",
            "5s",
            "--set",
            "failure_threshold=1",
            "--set",
            "auto_incident=true",
        )
        (found,) = eventually(lambda: json.loads(run("incidents", "list", "--json").stdout))
    number = str(found["number"])
    refused = run("incidents", "ack", number, "--profile", "viewer", status=1)
    assert "403 forbidden" in refused.stderr
    assert "acknowledged by editor" in run("incidents", "ack", number).stdout
    run("incidents", "note", number, "The disk is full.")
    run("incidents", "resolve", number, "-m", "It is back.")
    shown = json.loads(run("incidents", "show", number, "--json").stdout)
    assert (shown["status"], shown["acknowledged_by_name"]) == ("resolved", "editor")
    texts = [one["body"] for one in shown["updates"]]
    assert texts[-2:] == ["The disk is full.", "It is back."]
