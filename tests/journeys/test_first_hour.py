"""The first hour of a user with real parts: nginx is checked, stopped, found down, started and
found up; curl sends pushes and reads the event stream, and the daemon is killed meanwhile.
"""

import subprocess
from itertools import pairwise

import psycopg
import pytest

from tests.support.processes.daemon_process import Daemon, Refusal

from .conftest import (
    Nginx,
    Stream,
    await_instant,
    await_results,
    eventually,
    project_of,
    status,
)

pytestmark = [pytest.mark.needs("nginx", "curl")]


def curl(*arguments: str) -> str:
    done = subprocess.run(["curl", "-sS", *arguments], capture_output=True, check=True, text=True)
    return done.stdout


def test_a_stopped_target_is_down_and_a_started_one_is_up(shared: Daemon, nginx: Nginx) -> None:
    leadline, project = shared, project_of(shared)
    stream = Stream(leadline)
    stream.await_open()
    made = leadline.api(
        "POST",
        f"/projects/{project}/monitors",
        {
            "name": "Shop",
            "type": "http",
            "target": nginx.url,
            "interval_seconds": 5,
            "timeout_seconds": 2,
        },
    )
    monitor = made["id"]
    eventually(lambda: status(leadline, monitor) == "up", 5)
    nginx.stop()
    eventually(lambda: status(leadline, monitor) == "down", 8)
    (failed,) = leadline.api("GET", f"/monitors/{monitor}/heartbeats?limit=1")
    assert failed["up"] is False
    assert failed["msg"] == "connect_refused 127.0.0.1"
    nginx.start()
    eventually(lambda: status(leadline, monitor) == "up", 8)
    eventually(lambda: stream.has_status("down") and stream.has_status("up"))
    stream.close()
    runs = leadline.api("GET", f"/projects/{project}/monitors/{monitor}/expected-runs")
    assert {run["verdict"] for run in runs["items"]} <= {"covered", "reserved"}
    days = leadline.api("GET", f"/monitors/{monitor}/availability?days=1")
    assert len(days) == 1
    assert days[0]["coverage"] <= 1


def test_a_push_is_committed_before_its_answer_and_silence_is_down(shared: Daemon) -> None:
    leadline, project = shared, project_of(shared)
    made = leadline.api(
        "POST",
        f"/projects/{project}/monitors",
        {
            "name": "Nightly",
            "type": "push",
            "interval_seconds": 5,
            "timeout_seconds": 1,
            "grace_seconds": 1,
        },
    )
    url, monitor = made["push_url"], made["id"]
    assert status(leadline, monitor) == "pending"
    assert '"up":true' in curl("-X", "POST", "--data-binary", "anything at all", url)
    assert '"up":true' in curl("-I", "-X", "HEAD", url) or status(leadline, monitor) == "up"
    assert status(leadline, monitor) == "up"
    assert '"up":false' in curl(f"{url}/3")
    assert status(leadline, monitor) == "down"
    curl(f"{url}?status=up&msg=fine&ping=12.6")
    newest = leadline.api("GET", f"/monitors/{monitor}/heartbeats?limit=1")[0]
    assert (newest["up"], newest["latency_ms"], newest["msg"]) == (True, 13, "fine")
    eventually(lambda: status(leadline, monitor) == "down", 9)
    newest = leadline.api("GET", f"/monitors/{monitor}/heartbeats?limit=1")[0]
    assert newest["msg"] == "push_missed"
    with pytest.raises(Refusal) as refused:
        leadline.raw("POST", "/api/v1/public/push/leadline_push_unknown")
    assert (refused.value.status, refused.value.body) == (404, b'{"error":"not_found"}')


def test_a_kill_loses_no_push_and_every_window_has_its_verdict(
    leadline: Daemon, nginx: Nginx
) -> None:
    project = project_of(leadline)
    common = {"interval_seconds": 5, "timeout_seconds": 2}
    checked = leadline.api(
        "POST",
        f"/projects/{project}/monitors",
        {"name": "Shop", "type": "http", "target": nginx.url, **common},
    )
    pushed = leadline.api(
        "POST", f"/projects/{project}/monitors", {"name": "Job", "type": "push", **common}
    )
    eventually(lambda: status(leadline, checked["id"]) == "up", 6)
    path = pushed["push_url"].removeprefix(leadline.url)
    accepted = []
    for n in range(40):
        leadline.raw("POST", f"{path}?msg=n{n}")
        accepted.append(f"n{n}")
    last = await_results(leadline, checked["id"])
    leadline.kill()
    # At least one window becomes due during the outage.
    await_instant(last + common["interval_seconds"])
    leadline.start()
    beats = leadline.api("GET", f"/monitors/{pushed['id']}/heartbeats?limit=1000")
    assert [beat["msg"] for beat in reversed(beats) if beat["msg"] != "push_missed"] == accepted
    await_results(leadline, checked["id"])
    with psycopg.connect(leadline.dsn) as connection:
        twice = connection.execute(
            "select monitor, due_at from ledger group by 1, 2 having count(*) > 1"
        ).fetchall()
        double = connection.execute(
            "select w.monitor, w.due"
            " from run_batches s, unnest(s.monitors, s.due_ats) as w(monitor, due)"
            " group by 1, 2 having count(*) > 1"
        ).fetchall()
    assert twice == double == []
    runs = leadline.api(
        "GET", f"/projects/{project}/monitors/{checked['id']}/expected-runs?limit=200"
    )["items"]
    dues = [run["due_at"] for run in runs]
    assert dues == sorted(dues, reverse=True)
    # Every due instant is present, including those of the outage.
    seconds = [float(due[17:23]) + 60 * int(due[14:16]) for due in dues]
    steps = {round((a - b) % 3600, 3) for a, b in pairwise(seconds)}
    assert steps == {5.0}
