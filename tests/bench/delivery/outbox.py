"""The outbox: deliveries a second to a fast receiver, what a dead endpoint with much that waits for
it costs the others, and the plan of a claim while much waits."""

import json
import signal
import socket
import statistics
import threading
import time
from typing import Any

import psycopg
from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from leadline.storage.notifications.tables import outbox_claims as claims

from ...support.processes.daemon_process import Daemon, daemon
from ..seed import first_project
from ..target import nginx
from ..usage import cpu_seconds, per_thousand

EVENTS = 6_000
WAITING = 10_000
TOLD = 200
PAGE = {
    "event": "incident.opened",
    "status": "down",
    "severity": "major",
    "title": "Shop is down",
    "lines": ["Project Default"],
    "why": "http_status shop.example.com",
    "since": 1_767_571_200_000_000,
    "path": "/incidents/1",
}
_CHANNEL = """
insert into notification_channels
  (org, uid, project, type, name, config, enabled, created_at, updated_at)
values (%(org)s, %(uid)s, %(project)s, 'webhook', 'bench', %(config)s, true, now(), now())
returning id
"""
_DESTINATION = """
insert into destinations (org, channel) values (%(org)s, %(channel)s) returning id
"""
_EVENTS = """
insert into outbox (org, uid, project, topic, destination, stream, thread, event, payload,
  ready, due_at, created_at, updated_at)
select %(org)s, t.uid, %(project)s, 'incident_event', d.id, t.stream, t.stream, 'incident.opened',
  %(page)s, t.ready, now(), now(), now()
from unnest(%(uids)s::uuid[], %(streams)s::uuid[], %(readies)s::boolean[]) with ordinality
    as t(uid, stream, ready, n)
  join unnest(%(destinations)s::int[]) with ordinality as d(id, n)
    on d.n = 1 + t.n %% cardinality(%(destinations)s::int[])
"""

Figures = dict[str, Any]


def outbox() -> Figures:
    with (
        nginx() as target,
        daemon(
            on_disk=True,
            LEADLINE_NOTIFICATION_EGRESS__ALLOW_PRIVATE_IPS="true",
            LEADLINE_LOG__LEVEL="error",
        ) as running,
    ):
        running.start()
        running.sign_in()
        figures: Figures = {
            "to_20_channels": _throughput(running, target.plain, 20, EVENTS, streams=EVENTS),
            "to_one_channel": _throughput(running, target.plain, 1, 1_500, streams=1_500),
            "one_stream": _throughput(running, target.plain, 1, 300, streams=1),
            "told_alone": _figures(running, target.plain),
        }
        with _Silent() as silent:
            _fill(running, silent.url, 1, WAITING, WAITING)
            time.sleep(3)
            figures["told_beside_a_silent_one"] = _figures(running, target.plain)
        # Stops the daemon; its PostgreSQL continues.
        assert running.process is not None
        running.process.send_signal(signal.SIGSTOP)
        figures["claim_10k"] = _claim(running)
        _fill(running, "http://127.0.0.1:1/", 30, 90_000, 90_000)
        figures["claim_100k"] = _claim(running)
        _fill(running, "http://127.0.0.1:1/", 2_000, 2_000, 2_000)
        figures["claim_2000_destinations"] = _claim(running)
        running.process.send_signal(signal.SIGCONT)
        return figures


class _Silent:
    """Accepts and never answers."""

    def __enter__(self) -> "_Silent":
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._open: list[socket.socket] = []
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/"
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def _accept(self) -> None:
        while True:
            try:
                self._open.append(self._socket.accept()[0])
            except OSError:
                return

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for one in self._open:
            one.close()


def _fill(running: Daemon, url: str, channels: int, events: int, streams: int) -> None:
    with psycopg.connect(running.dsn) as connection:
        org, project = first_project(connection)
        destinations = []
        for _ in range(channels):
            given = {"org": org, "project": project, "uid": uuid7(), "config": Jsonb({"url": url})}
            channel = connection.execute(_CHANNEL, given).fetchone()
            assert channel is not None
            made = connection.execute(_DESTINATION, {"org": org, "channel": channel[0]}).fetchone()
            assert made is not None
            destinations.append(made[0])
        names = [uuid7() for _ in range(streams)]
        connection.execute(
            _EVENTS,
            {
                "org": org,
                "project": project,
                "page": Jsonb(PAGE),
                "destinations": destinations,
                "uids": [uuid7() for _ in range(events)],
                "streams": [names[n % streams] for n in range(events)],
                "readies": [n < streams for n in range(events)],
            },
        )


def _throughput(running: Daemon, url: str, channels: int, events: int, streams: int) -> Figures:
    before = cpu_seconds(running)
    _fill(running, url, channels, events, streams)
    with psycopg.connect(running.dsn, autocommit=True) as connection:
        began, left = 0.0, events
        while left:
            (left,) = connection.execute(
                "select count(*) from outbox where status = 'pending'"
            ).fetchone() or (0,)
            if left < events and not began:
                began, first = time.monotonic(), left
            time.sleep(0.05)
        took = time.monotonic() - began
    spent = per_thousand(before, cpu_seconds(running), events)
    return {"a_second": round(first / took), "cpu_s_per_1000": spent}


def _figures(running: Daemon, url: str) -> Figures:
    """The time from the commit of a new incident over the API to the settlement of its delivery to
    a healthy webhook."""
    (organization,) = running.api("GET", "/organizations")
    (project,) = running.api("GET", f"/organizations/{organization['id']}/projects")
    hook = running.api("POST", f"/organizations/{organization['id']}/webhooks", {"url": url})
    for n in range(TOLD):
        running.api("POST", f"/projects/{project['id']}/incidents", {"title": f"Incident {n}"})
        time.sleep(0.02)
    with psycopg.connect(running.dsn, autocommit=True) as connection:
        query = """
            select 1000 * extract(epoch from o.updated_at - o.created_at), o.status
            from outbox o join destinations d on d.org = o.org and d.id = o.destination
              join webhooks w on w.org = d.org and w.id = d.webhook where w.uid = %s
        """
        until = time.monotonic() + 30
        while time.monotonic() < until:
            rows = connection.execute(query, [hook["id"]]).fetchall()
            if all(status == "delivered" for _, status in rows):
                break
            time.sleep(0.1)
    running.api("DELETE", f"/webhooks/{hook['id']}")
    delays = sorted(float(delay) for delay, _ in rows)
    return {
        "told": len(delays),
        "undelivered": sum(1 for _, status in rows if status != "delivered"),
        "p50_ms": round(statistics.median(delays), 1),
        "p99_ms": round(delays[int(len(delays) * 0.99)], 1),
        "worst_ms": round(delays[-1], 1),
    }


def _claim(running: Daemon) -> Figures:
    """Each statement of a claim: the time it takes and the pages it touches, warm."""
    with psycopg.connect(running.dsn, autocommit=True) as connection:
        connection.execute("update outbox set lease = null, due_at = now() where lease is not null")
        connection.execute("vacuum analyze outbox")
        connection.execute("update destinations set backoff_until = null")
        now = connection.execute("select (extract(epoch from now()) * 1e6)::bigint").fetchone()
        assert now is not None
        given: dict[str, Any] = dict.fromkeys(claims._KINDS, 50) | {"now": now[0]}
        found = connection.execute(claims._LOCK_WANTING, given).fetchall()
        some = {"orgs": [row[0] for row in found], "ids": [row[1] for row in found]}
        due = {"orgs": some["orgs"], "destinations": some["ids"], "counts": [5] * len(found)}
        return {
            "destinations": len(found),
            "lock_wanting": _explained(connection, claims._LOCK_WANTING, given),
            "demands": _explained(connection, claims._DEMANDS, {**some, "now": now[0]}),
            "lock_due": _explained(connection, claims._LOCK_DUE, {**due, "now": now[0]}),
            "backlog": _explained(connection, claims._BACKLOG, {"now": now[0]}),
        }


def _explained(
    connection: "psycopg.Connection[Any]", statement: str, given: dict[str, Any]
) -> Figures:
    explain = f"explain (analyze, buffers, format json) {statement}"
    for _ in range(3):
        row = connection.execute(explain, given).fetchone()
    assert row is not None
    plan = row[0][0] if isinstance(row[0], list) else json.loads(row[0])[0]
    top = plan["Plan"]
    return {
        "ms": round(plan["Execution Time"], 2),
        "buffers": top["Shared Hit Blocks"] + top["Shared Read Blocks"],
        "scans": sorted(_scans(top)),
    }


def _scans(node: dict[str, Any]) -> set[str]:
    """The tables that are read completely, and the used indexes."""
    found: set[str] = set()
    if node["Node Type"] == "Seq Scan":
        found.add(f"whole {node['Relation Name']}")
    if "Index Name" in node:
        found.add(node["Index Name"])
    for inner in node.get("Plans", []):
        found |= _scans(inner)
    return found
