"""A person on call works with the commands only, against a real daemon."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from leadline.daemon.cli.api_client import ANSWER_BYTES_MOST
from tests.support.processes.daemon_process import LEADLINE, Daemon
from tests.support.processes.ports import refusing_port

from .conftest import eventually


class Person:
    """A person with the commands, signed in with a profile for each role."""

    def __init__(self, leadline: Daemon, folder: Path) -> None:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("LEADLINE_")}
        self.environment = {**kept, "XDG_CONFIG_HOME": str(folder)}
        (organization,) = leadline.api("GET", "/organizations")
        path = f"/organizations/{organization['id']}/tokens"
        for role in ("editor", "viewer"):
            token = str(leadline.api("POST", path, {"name": role, "role": role})["token"])
            to_file = ("--profile", role, "--store", "file", "--token-stdin")
            self.run("login", "--url", leadline.url, *to_file, stdin=token)
        self.run("profiles", "use", "editor")

    def run(self, *arguments: str, stdin: str = "", status: int = 0) -> Any:
        command = [LEADLINE, *arguments]
        done = subprocess.run(
            command, env=self.environment, input=stdin, capture_output=True, text=True
        )
        assert done.returncode == status, done.stderr
        return done


@pytest.mark.soak
def test_lists_larger_than_one_answer_are_complete(leadline: Daemon, tmp_path: Path) -> None:
    """Large settings make a page of monitors larger than the commands read at once."""
    run = Person(leadline, tmp_path).run
    (organization,) = leadline.api("GET", "/organizations")
    (project,) = leadline.api("GET", f"/organizations/{organization['id']}/projects")
    count = ANSWER_BYTES_MOST // 60_000 + 2
    for at in range(count):
        body = {
            "name": f"Large {at}",
            "slug": f"large-{at}",
            "type": "http",
            "target": "http://127.0.0.1:9/",
            "enabled": False,
            "config": {"body": "x" * 60_000},
        }
        leadline.api("POST", f"/projects/{project['id']}/monitors", body)
    found = json.loads(run("monitors", "list", "--json").stdout)
    assert sorted(one["slug"] for one in found) == sorted(f"large-{at}" for at in range(count))
    assert json.loads(run("status", "--json").stdout)["monitors"]["paused"] == count
    run("monitors", "show", "large-1")


@pytest.mark.soak
def test_events_continue_after_a_restart(leadline: Daemon, tmp_path: Path) -> None:
    person = Person(leadline, tmp_path)
    command = [LEADLINE, "events", "--results", "--json"]
    pipe = subprocess.PIPE
    with refusing_port() as port:
        to_port = ("--type", "tcp", "--target", f"127.0.0.1:{port}", "--interval", "5s")
        person.run("monitors", "add", "Database", *to_port)
        # A shell starts background jobs, such as this run of the tests, with SIGINT ignored.
        follower = subprocess.Popen(
            ["env", "--default-signal=INT", *command],
            env=person.environment,
            stdout=pipe,
            stderr=pipe,
        )
        assert follower.stdout is not None
        first = json.loads(follower.stdout.readline())
        leadline.stop()
        leadline.start()
        types = [first["type"]]
        while types[-2:] != ["gap", "status"]:
            types.append(json.loads(follower.stdout.readline())["type"])
    follower.send_signal(signal.SIGINT)
    _, said = follower.communicate(timeout=30)
    assert follower.returncode == 130, said
    assert b"Traceback" not in said
    assert b"can be missing" in said


@pytest.mark.soak
def test_a_person_on_call_handles_an_outage(leadline: Daemon, tmp_path: Path) -> None:
    run = Person(leadline, tmp_path).run
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
