"""A job reports its runs with the URLs of the clients of Healthchecks, against a real daemon."""

import urllib.request
from typing import Any
from uuid import uuid4

from tests.support.processes.daemon_process import Daemon

from .conftest import eventually


def test_a_job_is_created_measured_and_found_too_long(leadline: Daemon) -> None:
    (organization,) = leadline.api("GET", "/organizations")
    (project,) = leadline.api("GET", f"/organizations/{organization['id']}/projects")
    path = f"/projects/{project['id']}"
    key = leadline.api("POST", f"{path}/push-key", {"creates_monitors": True})["push_key"]

    def ping(suffix: str, body: bytes = b"") -> None:
        url = f"{leadline.url}/ping/{key}/backup{suffix}"
        with urllib.request.urlopen(urllib.request.Request(url, body or None), timeout=30) as sent:
            assert sent.status == 200

    def runs() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = leadline.api("GET", f"/monitors/{monitor['id']}/push-runs")
        return found

    run = str(uuid4())
    ping(f"/start?create=1&rid={run}")
    ping(f"/0?rid={run}", b"42 files")
    (monitor,) = leadline.api("GET", f"{path}/monitors?q=backup")
    assert (monitor["slug"], monitor["type"], monitor["status"]) == ("backup", "push", "up")
    (ended,) = runs()
    assert (ended["run_id"], ended["outcome"], ended["exit_status"]) == (run, "succeeded", 0)

    settings = {"max_run_seconds": 1, "config": {"keep_bodies": True}}
    leadline.api("PATCH", f"/monitors/{monitor['id']}", settings)

    def starts_with_limit() -> bool:
        """Returns whether the process knows the new settings, two seconds later at the latest."""
        ping("/start")
        return "deadline_at" in runs()[0]

    eventually(starts_with_limit)
    (incident,) = eventually(lambda: leadline.api("GET", f"{path}/incidents?status=open"))
    assert incident["monitor_id"] == monitor["id"]
    (newest,) = leadline.api("GET", f"/monitors/{monitor['id']}/heartbeats?limit=1")
    assert (newest["up"], newest["msg"]) == (False, "push_overrun")
    assert runs()[0]["limit"] == "overrun"

    ping("/0", b"done after all")
    (body,) = leadline.api("GET", f"/monitors/{monitor['id']}/push-bodies")
    assert (body["text"], body["up"]) == ("done after all", True)
    eventually(lambda: not leadline.api("GET", f"{path}/incidents?status=open"))
