"""On-call: the time from a failing check to an SMS at a fake gateway with 1 000 people and 200
schedules, and 2 000 alerts in one minute: pages sent, alerts merged, alerts lost, and the order at
each destination."""

import random
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import psycopg
from uuid_utils.compat import uuid7

from ...support.peers.json_receiver import json_receiver
from ...support.processes.daemon_process import Daemon, daemon
from ..seed import first_project
from ..usage import cpu_seconds
from .time_to_notify import Target

# Each schedule has five of the people. A project has at most 100 schedules.
PEOPLE = 1_000
SCHEDULES = 200
PROJECTS = 4
INTERVAL_SECONDS = 20
# Targets stop one after another in this time.
STOPS_SECONDS = 100
SERVICES = 100
ALERTS = 2_000
OF_REQUEST = 10
STORM_SECONDS = 60
SETTLED_SECONDS = 120
_PEOPLE = """
with made as (
  insert into users (uid, email, display_name, created_at, updated_at)
  select u, 'person' || n || '@example.com', 'Person ' || n, now(), now()
  from unnest(%(users)s::uuid[]) with ordinality as t(u, n) order by n returning id, uid),
member as (
  insert into memberships (org, uid, user_id, project, role, created_at)
  select %(org)s, gen_random_uuid(), id, null, 'editor', now() from made)
insert into contact_methods (uid, user_id, kind, label, config, enabled, verified_at, created_at)
select gen_random_uuid(), id, 'sms', 'phone',
  jsonb_build_object('to', '+49' || (1000000000 + id)::text), true, now(), now()
from made
"""
_FAILED = """
select m.name, extract(epoch from o.began_at) + h.latency_ms / 1000.0,
  (select extract(epoch from min(x.created_at)) from outbox x where x.thread = i.uid)
from outages o join monitors m on m.id = o.monitor
  join heartbeats h on h.monitor = o.monitor and h.ts = o.began_at
  join incidents i on i.org = o.org and i.id = o.incident
"""
# Alert, its leader, whether a page of it or of its leader came after its creation, and whether such
# a page is due.
_ALERTS = """
select i.title, l.title, coalesce(
  (select true from incident_pages p where p.org = i.org and p.incident = coalesce(l.id, i.id)
    and p.at >= i.created_at and cardinality(p.paged) > 0 limit 1), false),
  coalesce(l.escalate_at, i.escalate_at) is not null
from incidents i left join incidents l on l.org = i.org and l.id = i.merged_into
where i.external_key is not null
"""

Figures = dict[str, Any]


@dataclass
class Gateway:
    """What the receiver got, in the order of arrival."""

    url: str = ""
    # (instant, phone number, text)
    messages: list[tuple[float, str, str]] = field(default_factory=list)
    # (incident, seq)
    events: list[tuple[str, int]] = field(default_factory=list)


@contextmanager
def gateway() -> Iterator[Gateway]:
    got = Gateway()

    def take(path: str, document: Any) -> None:
        if path == "/sms":
            got.messages.append((time.time(), document["to"], document["text"]))
        else:
            got.events.append((document["incident"]["id"], document["seq"]))

    with json_receiver(take) as got.url:
        yield got


@dataclass
class Place:
    """The n-th schedule, policy or service is in the project n % PROJECTS."""

    running: Daemon
    organization: str
    projects: list[str]
    policies: list[str]
    got: Gateway
    # Start of all alerts.
    began: str = field(default_factory=lambda: datetime.now(UTC).isoformat())

    def path(self, n: int) -> str:
        return f"/projects/{self.projects[n % PROJECTS]}"


def oncall() -> Figures:
    with (
        gateway() as got,
        daemon(
            on_disk=True,
            LEADLINE_NOTIFICATION_EGRESS__ALLOW_PRIVATE_IPS="true",
            LEADLINE_LOG__LEVEL="warning",
        ) as running,
    ):
        running.start()
        running.sign_in()
        place = _found(running, got)
        return {"storm": _storm(place), "failing_check": _failing_checks(place)}


def _found(running: Daemon, got: Gateway) -> Place:
    """Makes the gateway, the people, and a schedule and a policy for each five of them."""
    (organization,) = running.api("GET", "/organizations")
    path = f"/organizations/{organization['id']}/projects"
    (first,) = running.api("GET", path)
    more = [
        running.api("POST", path, {"name": f"Project {n}", "slug": f"project-{n}"})
        for n in range(1, PROJECTS)
    ]
    place = Place(running, organization["id"], [one["id"] for one in (first, *more)], [], got)
    call = {"url": f"{got.url}/sms", "body": '{"to": "{to}", "text": "{text}"}'}
    running.api("PUT", "/settings/gateway", {"provider": "http", "sms": call})
    people = [uuid7() for _ in range(PEOPLE)]
    with psycopg.connect(running.dsn, autocommit=True) as connection:
        org, _ = first_project(connection)
        connection.execute(_PEOPLE, {"users": people, "org": org})
    share = PEOPLE // SCHEDULES
    for n in range(SCHEDULES):
        body = {
            "name": f"Rota {n}",
            "shift_seconds": 7 * 86_400,
            "anchor_at": "2026-01-05T08:00:00Z",
            "timezone": "Europe/Berlin",
            "participants": [str(one) for one in people[n * share : (n + 1) * share]],
        }
        made = running.api("POST", f"{place.path(n)}/oncall-schedules", body)
        targets = [{"type": "schedule", "id": made["id"]}]
        steps = [{"after_seconds": after, "targets": targets} for after in (0, 900)]
        body = {"name": f"Policy {n}", "steps": steps}
        made = running.api("POST", f"{place.path(n)}/escalation-policies", body)
        place.policies.append(made["id"])
    return place


def _failing_checks(place: Place) -> Figures:
    running, chance = place.running, random.Random(1)
    place.got.messages.clear()
    targets = {f"port {n}": Target() for n in range(SCHEDULES)}
    for n, (name, target) in enumerate(targets.items()):
        body = {
            "name": name,
            "type": "tcp",
            "target": f"127.0.0.1:{target.port}",
            "interval_seconds": INTERVAL_SECONDS,
            "timeout_seconds": 5,
            "escalation_policy_id": place.policies[n],
        }
        running.api("POST", f"{place.path(n)}/monitors", body)
    time.sleep(INTERVAL_SECONDS + 2)
    before = cpu_seconds(running)
    began = time.monotonic()
    names = list(targets)
    chance.shuffle(names)
    for name in names:
        time.sleep(chance.uniform(0, 2 * STOPS_SECONDS / SCHEDULES))
        targets[name].close()
    _until(lambda: len(place.got.messages) >= SCHEDULES, INTERVAL_SECONDS + 30)
    wall = time.monotonic() - began
    spent = _spent(before, cpu_seconds(running))
    heard = {name: at for at, _, text in place.got.messages for name in [_name_in(text)]}
    with psycopg.connect(running.dsn, autocommit=True) as connection:
        rows = connection.execute(_FAILED).fetchall()
    failed = {name: (float(at), float(written)) for name, at, written in rows if written}
    both = [name for name in failed if name in heard]
    return {
        "monitors": SCHEDULES,
        "messages": len(place.got.messages),
        "to_the_outbox_ms": _spread([1_000 * (failed[n][1] - failed[n][0]) for n in both]),
        "to_the_gateway_ms": _spread([1_000 * (heard[n] - failed[n][0]) for n in both]),
        "wall_s": round(wall, 1),
        "cpu_s": spent,
    }


def _name_in(text: str) -> str:
    """Returns the name of the monitor in the title of a message."""
    words = text.splitlines()[0].split()
    return " ".join(words[words.index("port") :][:2]) if "port" in words else text


def _storm(place: Place) -> Figures:
    running, got = place.running, place.got
    got.messages.clear()
    _route(place)
    before = cpu_seconds(running)
    took, began = [], time.monotonic()
    for n in range(ALERTS // OF_REQUEST):
        due = began + n * STORM_SECONDS * OF_REQUEST / ALERTS
        time.sleep(max(due - time.monotonic(), 0))
        asked = time.monotonic()
        _send_alerts(place, n, "firing")
        took.append(1_000 * (time.monotonic() - asked))
    sent_in = time.monotonic() - began
    _until(lambda: _is_quiet(running), SETTLED_SECONDS)
    wall = time.monotonic() - began
    spent = _spent(before, cpu_seconds(running))
    figures = _told(place)
    for n in range(ALERTS // OF_REQUEST):
        _send_alerts(place, n, "resolved")
    _until(lambda: _is_quiet(running), SETTLED_SECONDS)
    return {
        "alerts": ALERTS,
        "sent_in_s": round(sent_in, 1),
        "request_ms": _spread(took),
        **figures,
        "order": _order(place),
        "wall_s": round(wall, 1),
        "cpu_s": spent,
    }


def _route(place: Place) -> None:
    running = place.running
    body: dict[str, Any] = {"url": f"{place.got.url}/hook"}
    running.api("POST", f"/organizations/{place.organization}/webhooks", body)
    routes: list[list[dict[str, str]]] = [[] for _ in range(PROJECTS)]
    for n in range(SERVICES):
        body = {"slug": f"service-{n}", "escalation_policy_id": place.policies[n]}
        made = running.api("POST", f"{place.path(n)}/services", body)
        routes[n % PROJECTS].append({"matchers": f'app="{n}"', "service_id": made["id"]})
    for n, found in enumerate(routes):
        running.api("PUT", f"{place.path(n)}/alert-routes", {"routes": found})


def _send_alerts(place: Place, n: int, status: str) -> None:
    """Sends the n-th request, which is about one service, as Alertmanager groups."""
    alerts = [
        {
            "status": status,
            "fingerprint": f"{number:016x}",
            "labels": {"alertname": "Load", "severity": "critical", "app": f"{n % SERVICES}"},
            "annotations": {"summary": f"alert {number} fires"},
            "startsAt": place.began,
            "endsAt": datetime.now(UTC).isoformat(),
        }
        for number in range(n * OF_REQUEST, (n + 1) * OF_REQUEST)
    ]
    place.running.api(
        "POST", f"{place.path(n)}/alerts/alertmanager", {"version": "4", "alerts": alerts}
    )


def _is_quiet(running: Daemon) -> bool:
    """Returns whether no message and no first step waits."""
    query = """
        select not exists (select from outbox where status = 'pending')
          and not exists (select from incidents where status <> 'resolved'
            and external_key is not null and merged_into is null and last_escalated_at is null)
    """
    with psycopg.connect(running.dsn, autocommit=True) as connection:
        row = connection.execute(query).fetchone()
    return row is not None and bool(row[0])


def _told(place: Place) -> Figures:
    with psycopg.connect(place.running.dsn, autocommit=True) as connection:
        rows = connection.execute(_ALERTS).fetchall()
    heard = Counter(text.splitlines()[0] for _, _, text in place.got.messages)

    def arrived(title: str) -> bool:
        return any(title in line for line in heard)

    leaders = {leader for _, leader, _, _ in rows if leader is not None}
    leads = {leader: arrived(leader) for leader in leaders}
    told, waiting = 0, 0
    for title, leader, is_told, is_due in rows:
        arrives = leads[leader] if leader is not None else arrived(title)
        told += is_told and arrives
        waiting += not is_told and is_due
    return {
        "incidents": len(rows),
        "pages_sent": sum(heard.values()),
        "pages_twice": sum(count - 1 for count in heard.values()),
        "merged": sum(leader is not None for _, leader, _, _ in rows),
        "told": told,
        "told_by_the_next_step": waiting,
        "lost": ALERTS - told - waiting,
    }


def _order(place: Place) -> Figures:
    """Returns the events that arrived before an earlier one of their incident, by destination."""
    seqs: dict[str, list[int]] = defaultdict(list)
    for incident, seq in place.got.events:
        seqs[incident].append(seq)
    texts: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for _, to, text in place.got.messages:
        line = text.splitlines()[0]
        number = line.split("alert ")[1].split()[0]
        texts[to, number].append("esolved" in line or "ecovered" in line)
    return {
        "webhook_events": len(place.got.events),
        "webhook_events_out_of_order": sum(found != sorted(found) for found in seqs.values()),
        "webhook_incidents_incomplete": sum(set(found) != {1, 2} for found in seqs.values())
        + ALERTS
        - len(seqs),
        "messages": len(place.got.messages),
        "messages_out_of_order": sum(found != sorted(found) for found in texts.values()),
        "recoveries": sum(any(found) for found in texts.values()),
    }


def _until(is_so: Callable[[], bool], seconds: float) -> None:
    until = time.monotonic() + seconds
    while not is_so() and time.monotonic() < until:
        time.sleep(0.2)


def _spent(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    return {who: round(after[who] - before[who], 2) for who in after}


def _spread(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    if not ordered:
        return {}
    return {
        "p50": round(statistics.median(ordered), 1),
        "p99": round(ordered[min(int(len(ordered) * 0.99), len(ordered) - 1)], 1),
        "worst": round(ordered[-1], 1),
    }
