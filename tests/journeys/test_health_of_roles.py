"""Each role reports its health and the metrics of its own work, and no others."""

import base64
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser, expect

from tests.support.app.fixtures import Target
from tests.support.processes.daemon_process import Daemon, Refusal, daemon
from tests.support.processes.ports import free_port
from tests.support.worlds.databases import Databases

from .conftest import eventually, project_of

KEY = base64.b64encode(b"k" * 32).decode()
# One metric of each kind of work.
SCHEDULES = "leadline_windows_reserved_total"
PROBES = "leadline_runs_started_total"
ANSWERS = "leadline_gate_decision_duration_seconds_count"
SENDS = "leadline_outbox_pending"
SURVEYS = "leadline_pull_pending_jobs"
KEEPS_HOUSE = "leadline_gate_ledger_ahead_seconds"
OF_ROLE = {
    "api": {ANSWERS, SENDS, SURVEYS},
    "scheduler": {SCHEDULES, SENDS, SURVEYS, KEEPS_HOUSE},
    "worker": {PROBES},
}
ALL = set().union(*OF_ROLE.values())


@pytest.fixture(scope="module")
def roles(databases: Databases, migrated: str) -> Iterator[dict[str, Daemon]]:
    dsn = databases.lend(migrated)
    with ExitStack() as stack:
        stack.callback(databases.give_back, dsn)
        running: dict[str, Daemon] = {}
        for role in ("scheduler", "api", "worker"):
            process = stack.enter_context(
                daemon(
                    LEADLINE_DATABASE__DSN=dsn,
                    LEADLINE_SECURITY__ENCRYPTION_KEY=KEY,
                    LEADLINE_SECURITY__ADMIN_EMAIL="admin@localhost",
                    LEADLINE_SECURITY__ADMIN_PASSWORD="correct-horse",
                    LEADLINE_DATABASE__POOL_SIZE="6",
                    LEADLINE_PROBER__REGIONS="core,attic",
                    LEADLINE_PULL__REGIONS='[{name = "cellar"}]',
                )
            )
            process.password = "correct-horse"
            if role != "api":
                process.environment["LEADLINE_SERVER__OPS_LISTEN"] = f"127.0.0.1:{process.port}"
                process.environment["LEADLINE_SERVER__LISTEN"] = f"127.0.0.1:{free_port()}"
            process.start(role=role)
            running[role] = process
        yield running


def metrics_of(process: Daemon) -> str:
    status, headers, body = process.raw("GET", "/metrics")
    assert status == 200
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    return body.decode()


@pytest.mark.parametrize("role", OF_ROLE)
def test_every_role_serves_health_checks(roles: dict[str, Daemon], role: str) -> None:
    process = roles[role]
    for path, said in (("/healthz", "ok"), ("/readyz", "ready")):
        status, _, body = process.raw("GET", path)
        assert (status, json.loads(body)["status"]) == (200, said)


@pytest.mark.parametrize("role", OF_ROLE)
def test_each_role_has_the_metrics_of_its_work(roles: dict[str, Daemon], role: str) -> None:
    def metric_names() -> set[str]:
        names = set(re.findall(r"^(\w+)", metrics_of(roles[role]), re.MULTILINE))
        return names & ALL

    # The first measurements of the fleet and the outbox are made soon after the start.
    eventually(lambda: metric_names() == OF_ROLE[role], 20)


@pytest.mark.parametrize("role", ["scheduler", "worker"])
def test_the_health_listener_serves_no_api(roles: dict[str, Daemon], role: str) -> None:
    for path in ("/api/v1/version", "/api/v1/admin/fleet", "/admin/fleet", "/sign-in"):
        with pytest.raises(Refusal) as refused:
            roles[role].raw("GET", path)
        assert refused.value.status == 404, path


def test_the_fleet_shows_processes_and_pending_jobs(roles: dict[str, Daemon]) -> None:
    api = roles["api"]
    api.sign_in()
    fleet = api.api("GET", "/admin/fleet")
    assert {one["roles"][0]: one.get("region") for one in fleet["processes"]} == {
        "api": None,
        "scheduler": None,
        "worker": "core",
    }
    found = {one["name"]: (one["live"], one["workers"]) for one in fleet["regions"]}
    assert found == {"core": (True, 1), "attic": (True, 1), "cellar": (False, 0)}
    api.api(
        "POST",
        f"/projects/{project_of(api)}/monitors",
        {"name": "Far", "type": "tcp", "target": "127.0.0.1:1", "region": "cellar"},
    )

    def waits() -> bool:
        found = re.search(
            r'^leadline_pull_pending_jobs\{region="cellar"\} (\S+)', metrics_of(api), re.MULTILINE
        )
        return found is not None and float(found[1]) >= 1

    # The region has no prober: its load is sampled every 15 s.
    eventually(waits, 40)
    (cellar,) = [r for r in api.api("GET", "/admin/fleet")["regions"] if r["name"] == "cellar"]
    assert cellar["pending_jobs"] >= 1
    assert cellar["lag_seconds"] > 0


@pytest.mark.soak
def test_the_console_is_live_in_a_process_without_workers(
    roles: dict[str, Daemon], chromium: Browser, target: Target
) -> None:
    """The stream of the api process has no result of the worker; the page asks for them."""
    api = roles["api"]
    api.sign_in()
    project = project_of(api)
    monitor = api.api(
        "POST",
        f"/projects/{project}/monitors",
        {"name": "Watched from afar", "type": "http", "target": target.url, "interval_seconds": 5},
    )["id"]
    far = {"name": "Unserved", "type": "tcp", "target": "127.0.0.1:1", "region": "cellar"}
    unserved = api.api("POST", f"/projects/{project}/monitors", far)["id"]
    context = chromium.new_context(base_url=api.url, viewport={"width": 1_440, "height": 900})
    try:
        name, _, value = api.cookie.partition("=")
        context.add_cookies([{"name": name, "value": value, "url": api.url}])
        overview, page = context.new_page(), context.new_page()
        overview.goto(f"/projects/{project}?q=afar")
        page.goto(f"/monitors/{monitor}")
        heading = page.get_by_role("heading", level=1)
        row = overview.locator("tr[data-live]").filter(has_text="Watched from afar")
        for state in ("up", "down", "up"):
            # A hidden tab does not ask.
            page.bring_to_front()
            expect(heading).to_have_text(f"Watched from afar is {state}", timeout=30_000)
            overview.bring_to_front()
            expect(row.get_by_role("img", name=state, exact=True)).to_be_visible(timeout=30_000)
            if state == "up":
                target.stop()
            else:
                target.start()
        expect(overview.locator("#lede")).to_contain_text(
            re.compile(
                r"Region cellar has no live worker or agent: \d monitors? (is|are) not checked"
            )
        )
        page.goto(f"/monitors/{unserved}")
        expect(page.locator("#lede")).to_contain_text(
            "Region cellar has no live worker or agent; no check runs."
        )
    finally:
        context.close()
