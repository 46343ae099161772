"""Processes of different roles on one PostgreSQL, and one of them killed: no run happens twice, no
result is lost, and every replica of the API returns the same data.
"""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest

from tests.support.processes.daemon_process import Daemon, daemon
from tests.support.processes.ports import free_port

from .conftest import Nginx, eventually, project_of, status

pytestmark = [pytest.mark.needs("nginx")]
JOB = {"name": "Job", "type": "push"}
KEY = base64.b64encode(b"k" * 32).decode()


@pytest.fixture
def roles(dsn: str) -> Iterator[dict[str, Daemon]]:
    with ExitStack() as stack:
        running: dict[str, Daemon] = {}
        for name in ("api", "api2", "scheduler", "worker", "worker2"):
            role = name.rstrip("2")
            process = stack.enter_context(
                daemon(
                    LEADLINE_DATABASE__DSN=dsn,
                    LEADLINE_SECURITY__ENCRYPTION_KEY=KEY,
                    LEADLINE_SECURITY__ADMIN_EMAIL="admin@localhost",
                    LEADLINE_SECURITY__ADMIN_PASSWORD="correct-horse",
                    LEADLINE_DATABASE__POOL_SIZE="6",
                )
            )
            if role != "api":
                process.environment["LEADLINE_SERVER__OPS_LISTEN"] = f"127.0.0.1:{process.port}"
                process.environment["LEADLINE_SERVER__LISTEN"] = f"127.0.0.1:{free_port()}"
            process.password = "correct-horse"
            running[name] = process
        # The scheduler creates the partitions that the others write to.
        for name in ("scheduler", "api", "api2", "worker", "worker2"):
            running[name].start(role=name.rstrip("2"))
        yield running


def test_separate_roles_run_each_window_once_after_a_kill(
    roles: dict[str, Daemon], nginx: Nginx, dsn: str
) -> None:
    api, replica = roles["api"], roles["api2"]
    api.sign_in()
    replica.cookie = api.cookie
    project = project_of(api)
    made = [
        api.api(
            "POST",
            f"/projects/{project}/monitors",
            {
                "name": f"Shop {n}",
                "type": "http",
                "target": nginx.url,
                "interval_seconds": 5,
                "timeout_seconds": 2,
            },
        )
        for n in range(12)
    ]
    eventually(lambda: all(status(replica, m["id"]) == "up" for m in made), 15)
    job = api.api(
        "POST",
        f"/projects/{project}/monitors",
        {"name": "Job", "type": "push", "interval_seconds": 5, "timeout_seconds": 1},
    )
    path = job["push_url"].removeprefix(api.url)
    for n in range(10):
        (api if n % 2 else replica).raw("POST", f"{path}?msg=n{n}")
    beats = replica.api("GET", f"/monitors/{job['id']}/heartbeats?limit=100")
    assert sorted(beat["msg"] for beat in beats) == sorted(f"n{n}" for n in range(10))
    roles["worker"].kill()
    killed_at = time.time()
    eventually(lambda: presences_of(dsn) == 4, 20)
    # The remaining worker runs each monitor at least twice.
    eventually(lambda: run_least_often(dsn, killed_at) >= 2, 20)
    nginx.stop()
    eventually(lambda: all(status(api, m["id"]) == "down" for m in made), 12)
    with psycopg.connect(dsn, autocommit=True) as connection:
        recent = connection.execute(
            "select count(*), count(distinct (monitor, due_at)) from ledger"
        ).fetchone()
        missed = connection.execute(
            "select count(*) from ledger where verdict = 'missed'"
        ).fetchone()
        doubled = connection.execute(
            "select monitor, due_at from heartbeats h join ledger r using (monitor)"
            " where h.ts >= r.due_at and h.ts < r.due_at + interval '1 second'"
            " group by 1, 2 having count(*) > 2"
        ).fetchall()
    assert recent is not None
    assert recent[0] == recent[1] > 30
    assert missed == (0,), "no window is sealed yet, so no window is missed yet"
    assert doubled == []
    with psycopg.connect(dsn) as connection:
        present = connection.execute("select unnest(roles) from presences").fetchall()
    assert {"scheduler", "api", "worker"} <= {role for (role,) in present}


@pytest.mark.soak
def test_the_scheduler_applies_a_bundle_that_the_api_accepted(roles: dict[str, Daemon]) -> None:
    api, replica = roles["api"], roles["api2"]
    api.sign_in()
    replica.cookie = api.cookie
    project = project_of(api)
    bundle = {**api.api("GET", f"/projects/{project}/bundle"), "monitors": {"job": JOB}}
    path = f"/api/v1/projects/{project}/bundle/apply"
    code, _, body = api.raw("POST", path, bundle, Prefer="respond-async")
    assert code == 202
    operation = f"/operations/{json.loads(body)['id']}"
    eventually(lambda: replica.api("GET", operation)["state"] == "succeeded", 15)
    assert replica.api("GET", operation)["result"]["applied"] is True
    assert [one["name"] for one in api.api("GET", f"/projects/{project}/monitors")] == ["Job"]


def presences_of(dsn: str) -> int:
    """Counts the processes that have recently renewed their presence."""
    with psycopg.connect(dsn) as connection:
        found = connection.execute(
            "select count(distinct process) from presences where through_at > now() -"
            " interval '12 seconds'"
        ).fetchone()
    assert found is not None
    return int(found[0])


def run_least_often(dsn: str, since: float) -> int:
    """Returns the smallest number of runs of a web check that were due after `since`."""
    with psycopg.connect(dsn) as connection:
        found = connection.execute(
            "select min(n) from (select count(r.due_at) as n from monitors m"
            " left join ledger r on r.monitor = m.id and r.due_at > to_timestamp(%s)"
            " and r.verdict::text like 'covered%%' where m.type = 'http' group by m.id) as counted",
            [since],
        ).fetchone()
    assert found is not None
    return int(found[0])
