"""Local failures never make a target down, and every window gets its verdict. Each test takes half
a minute; LEADLINE_SOAK=1 makes it more than a minute.
"""

import os
import signal
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.processes.daemon_process import Daemon
from tests.support.run.effort import IS_SOAK

from .conftest import Nginx, await_instant, await_results, eventually, project_of, status

pytestmark = [pytest.mark.needs("nginx")]
SECONDS = 70 if IS_SOAK else 20
CHECK_SECONDS = 5


@pytest.fixture
def watched(leadline: Daemon, nginx: Nginx) -> dict[str, str]:
    """A monitor that is up, and a push monitor that reports well within its interval."""
    project = project_of(leadline)
    checked = leadline.api(
        "POST",
        f"/projects/{project}/monitors",
        {
            "name": "Shop",
            "type": "http",
            "target": nginx.url,
            "interval_seconds": CHECK_SECONDS,
            "timeout_seconds": 3,
        },
    )
    pushed = leadline.api(
        "POST",
        f"/projects/{project}/monitors",
        {
            "name": "Job",
            "type": "push",
            "interval_seconds": 8,
            "timeout_seconds": 1,
            "grace_seconds": 4,
        },
    )
    leadline.raw("POST", pushed["push_url"].removeprefix(leadline.url))
    eventually(lambda: status(leadline, checked["id"]) == "up", 6)
    return {
        "project": project,
        "checked": checked["id"],
        "pushed": pushed["id"],
        "push_path": pushed["push_url"].removeprefix(leadline.url),
    }


def push(leadline: Daemon, watched: dict[str, str]) -> None:
    leadline.raw("POST", watched["push_path"])


def goes_on(leadline: Daemon, watched: dict[str, str]) -> None:
    """Waits for two new results; overdue deadlines have been judged by then."""
    await_results(leadline, watched["checked"], 2)
    assert status(leadline, watched["checked"]) == "up"


def false_alarms(leadline: Daemon, *monitors: str) -> list[Any]:
    found = []
    for monitor in monitors:
        beats = leadline.api("GET", f"/monitors/{monitor}/heartbeats?limit=1000")
        found += [beat for beat in beats if not beat["up"]]
    return found


def postgres_pids(leadline: Daemon) -> list[int]:
    assert leadline.process is not None
    pid = int((leadline.data_dir / "postgres" / "postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


@pytest.mark.soak
def test_a_frozen_daemon_makes_nothing_down(leadline: Daemon, watched: dict[str, str]) -> None:
    assert leadline.process is not None
    push(leadline, watched)
    os.kill(leadline.process.pid, signal.SIGSTOP)
    time.sleep(SECONDS)
    os.kill(leadline.process.pid, signal.SIGCONT)
    push(leadline, watched)
    goes_on(leadline, watched)
    assert false_alarms(leadline, watched["checked"], watched["pushed"]) == []


@pytest.mark.soak
def test_a_frozen_database_makes_nothing_down(leadline: Daemon, watched: dict[str, str]) -> None:
    push(leadline, watched)
    pids = postgres_pids(leadline)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(SECONDS)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    eventually(lambda: _answers(leadline), 30)
    push(leadline, watched)
    goes_on(leadline, watched)
    assert false_alarms(leadline, watched["checked"], watched["pushed"]) == []


def test_a_killed_database_recovers_with_every_result(
    leadline: Daemon, watched: dict[str, str]
) -> None:
    push(leadline, watched)
    before = leadline.api("GET", f"/monitors/{watched['pushed']}/heartbeats?limit=1000")
    os.kill(postgres_pids(leadline)[0], signal.SIGKILL)
    eventually(lambda: _answers(leadline), 30)
    push(leadline, watched)
    after = leadline.api("GET", f"/monitors/{watched['pushed']}/heartbeats?limit=1000")
    assert after[-len(before) :] == before
    assert len(after) == len(before) + 1
    goes_on(leadline, watched)
    assert false_alarms(leadline, watched["checked"], watched["pushed"]) == []


def test_every_window_during_an_absence_has_its_verdict(
    leadline: Daemon, watched: dict[str, str]
) -> None:
    last = await_results(leadline, watched["checked"])
    leadline.kill()
    # At least two windows become due during the outage.
    await_instant(last + 2 * CHECK_SECONDS)
    leadline.start()
    goes_on(leadline, watched)
    # Sealing happens two minutes later; this query reads the windows that it would settle.
    with psycopg.connect(leadline.dsn, autocommit=True) as connection:
        gaps = connection.execute(
            """
            select t.monitor, g.due from monitor_terms t
            join monitors m on m.org = t.org and m.id = t.monitor
            join shards s on s.id = t.shard
            cross join lateral generate_series(t.anchor, s.reserved_through,
              t.interval_seconds * interval '1 second') as g(due)
            where g.due > t.from_at and g.due <= s.reserved_through
              and not exists (select from ledger r
                where r.monitor = t.monitor and r.due_at = g.due)
              and not exists (select from run_batches x where exists (
                select from unnest(x.monitors, x.due_ats) as w(monitor, due)
                where w.monitor = t.monitor and w.due = g.due))
            """
        ).fetchall()
    assert gaps == []


def _answers(leadline: Daemon) -> bool:
    try:
        return bool(leadline.api("GET", "/me"))
    except Exception:
        return False
