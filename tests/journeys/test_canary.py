"""A canary checks an asynchronous service end to end, with a secret. Each role is its own process,
in a network of the test, because canaries reach only public addresses.
"""

import base64
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
import trio
import trustme

from tests.support.peers.job_queue import HERE, KEY, THERE, Queue, polled, streamed, working
from tests.support.peers.own_network import own_network
from tests.support.processes.daemon_process import Daemon, Refusal, daemon
from tests.support.processes.ports import free_port

from .conftest import eventually, project_of, status

# Four processes and an agent, for a minute. test_canary_values.py is the shorter journey.
pytestmark = [pytest.mark.needs("ip", "root"), pytest.mark.soak]
SEALING_KEY = base64.b64encode(b"k" * 32).decode()
AGENT_TOKEN = "token-of-the-edge-1234"
PLACES = {"core": HERE, "edge": THERE}


@contextmanager
def served(queue: Queue, authority: trustme.CA) -> Iterator[None]:
    """Runs the service in a thread, in the current network."""
    ready, over = threading.Event(), threading.Event()

    async def serve() -> None:
        async with working(queue, authority):
            ready.set()
            await trio.to_thread.run_sync(over.wait)

    thread = threading.Thread(target=trio.run, args=(serve,))
    thread.start()
    try:
        assert ready.wait(30)
        yield
    finally:
        over.set()
        thread.join()


class Fleet:
    """A process for each role on one PostgreSQL, and an agent that has no database."""

    def __init__(self, stack: ExitStack, dsn: str, authorities: Path) -> None:
        self.members: dict[str, Daemon] = {}
        common: dict[str, Any] = {
            "LEADLINE_DATABASE__DSN": dsn,
            "LEADLINE_DATABASE__POOL_SIZE": "6",
            "LEADLINE_SECURITY__ENCRYPTION_KEY": SEALING_KEY,
            "LEADLINE_SECURITY__ADMIN_EMAIL": "admin@localhost",
            "LEADLINE_SECURITY__ADMIN_PASSWORD": "correct-horse",
            "LEADLINE_PULL__AGENTS": f'[{{name="attic", region="edge", token="{AGENT_TOKEN}"}}]',
            "SSL_CERT_FILE": str(authorities),
        }
        for name in ("scheduler", "api", "worker", "worker2"):
            member = stack.enter_context(daemon(**common))
            member.password = "correct-horse"
            if name != "api":
                self._listens_for_operators_alone(member)
            self.members[name] = member
        self.agent = stack.enter_context(
            daemon(
                SSL_CERT_FILE=str(authorities),
                LEADLINE_PULL__TOKEN=AGENT_TOKEN,
                LEADLINE_PULL__SERVER_URL=self.members["api"].url,
                LEADLINE_PROBER__REGIONS='["edge"]',
            )
        )

    def _listens_for_operators_alone(self, member: Daemon) -> None:
        member.environment["LEADLINE_SERVER__OPS_LISTEN"] = f"127.0.0.1:{member.port}"
        member.environment["LEADLINE_SERVER__LISTEN"] = f"127.0.0.1:{free_port()}"

    def start(self) -> None:
        for name, member in self.members.items():
            member.start(role=name.rstrip("2"))
        self.api.sign_in()

    @property
    def api(self) -> Daemon:
        return self.members["api"]


@pytest.fixture
def queue() -> Queue:
    return Queue()


@pytest.fixture
def fleet(dsn: str, queue: Queue, tmp_path: Path) -> Iterator[Fleet]:
    authority = trustme.CA()
    authorities = tmp_path / "authorities.pem"
    authority.cert_pem.write_to_path(str(authorities))
    with own_network(HERE, THERE), ExitStack() as stack:
        stack.enter_context(served(queue, authority))
        fleet = Fleet(stack, dsn, authorities)
        fleet.start()
        yield fleet


def workflow(region: str, **given: Any) -> dict[str, Any]:
    at = f"https://{PLACES[region]}/v1/jobs"
    make = streamed if region == "edge" else polled
    made = make(**given)
    made["submit"]["url"] = at
    made["completion"]["url"] = made["completion"]["url"].replace(
        "https://jobs.example/v1/jobs", at
    )
    return made


def canary(fleet: Fleet, project: str, region: str) -> Any:
    return fleet.api.api(
        "POST",
        f"/projects/{project}/monitors",
        {
            "name": f"Orders from {region}",
            "type": "async_canary",
            "region": region,
            "interval_seconds": 10,
            "timeout_seconds": 9,
            "config": {"workflow": workflow(region), "canary_secret_key_ref": "shop-api"},
        },
    )


def has_status(api: Daemon, monitor: Any, word: str) -> bool:
    return bool(status(api, monitor["id"]) == word)


def refused(fleet: Fleet) -> set[tuple[str, str]]:
    with psycopg.connect(fleet.api.environment["LEADLINE_DATABASE__DSN"]) as connection:
        return set(
            connection.execute(
                "select reason, (select msg from heartbeats h where h.monitor = r.monitor"
                " and h.msg = r.reason limit 1) from ledger r where verdict = 'withheld'"
            ).fetchall()
        )


def everything_kept(fleet: Fleet) -> str:
    """Returns the content of the database and the logs as text."""
    with psycopg.connect(fleet.api.environment["LEADLINE_DATABASE__DSN"]) as connection:
        names = connection.execute(
            "select format('%I', tablename) from pg_tables where schemaname = 'public'"
        ).fetchall()
        rows = [
            str(connection.execute(f"select t::text from {name} t").fetchall()) for (name,) in names
        ]
    logs = [member.log.read_text() for member in (*fleet.members.values(), fleet.agent)]
    return "\n".join([*rows, *logs])


def test_workers_and_agents_run_canaries_and_refusals_are_reported(
    fleet: Fleet, queue: Queue
) -> None:
    api = fleet.api
    project = project_of(api)
    api.api("POST", f"/projects/{project}/secrets", {"name": "shop-api", "value": KEY})
    queue.on["/v1/jobs/"] = state_and_event(queue)
    fleet.agent.begin("agent")
    made = {region: canary(fleet, project, region) for region in PLACES}
    for monitor in made.values():
        eventually(partial(has_status, api, monitor, "up"), 40)
    asked = queue.to("/v1/jobs")
    assert {one.address for one in asked} == {HERE, THERE}
    submitted = [one for one in asked if one.method == "POST"]
    assert {one.headers["authorization"] for one in submitted} == {KEY}
    assert len(set(queue.keys)) == len(queue.keys), "each run has its own idempotency key"
    assert KEY not in everything_kept(fleet)
    metrics = [
        fleet.members[name].raw("GET", "/metrics")[2].decode() for name in ("worker", "worker2")
    ]
    assert any(
        'leadline_canary_stages_total{outcome="passed",stage="cleanup_validation"}' in text
        for text in metrics
    )

    # The service fails: both monitors report a class and a host.
    queue.states = ["failed"]
    for region, monitor in made.items():
        eventually(partial(has_status, api, monitor, "down"), 40)
        newest = api.api("GET", f"/monitors/{monitor['id']}/heartbeats?limit=1")[0]
        assert PLACES[region] in newest["msg"]
        assert KEY not in newest["msg"]
    queue.states = ["done"]

    # A worker is killed: the other one continues.
    fleet.members["worker"].kill()
    eventually(lambda: status(api, made["core"]["id"]) == "up", 60)

    # No runner is left: each window is refused, with the reason.
    fleet.members["worker2"].kill()
    fleet.agent.kill()
    eventually(lambda: ("no_capable_runner", "no_capable_runner") in refused(fleet), 90)
    eventually(lambda: status(api, made["core"]["id"]) == "down", 30)


def state_and_event(queue: Queue) -> Any:
    """Sends the state of a job by polling, and its end as an event."""

    async def handle(asked: Any, stream: Any) -> None:
        if asked.path.endswith("/events"):
            said = "done" if queue.states[0] == "done" else "failed"
            head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
            body = b'{"result": {"total": 7, "prefix": "canary-81"}}'
            await stream.send_all(head + b"event: " + said.encode() + b"\ndata: " + body + b"\n\n")
        else:
            state = queue.state()
            head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
            await stream.send_all(head % len(state) + state)

    return handle


def test_a_test_of_an_unsaved_canary_refuses_its_binding_by_name(fleet: Fleet) -> None:
    api = fleet.api
    project = project_of(api)
    api.api("POST", f"/projects/{project}/secrets", {"name": "shop-api", "value": KEY})
    body = {
        "name": "Orders",
        "type": "async_canary",
        "config": {"workflow": workflow("core"), "canary_secret_key_ref": "shop-api"},
    }
    with pytest.raises(Refusal) as refusal:
        api.api("POST", f"/projects/{project}/monitors/test", body)
    assert refusal.value.status == 400
    assert b"canary_secret_key_ref" in refusal.value.body
    plain = workflow("core", submit={"headers": []}, completion={"headers": []})
    plain["secrets"] = {}
    found = api.api(
        "POST", f"/projects/{project}/monitors/test", {**body, "config": {"workflow": plain}}
    )
    assert found["up"] is True, found
