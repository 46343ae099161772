"""kill -9 of the daemon while it pages people: no page is missing, and no person is paged twice
within an attempt."""

import http.client
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
import pytest
from uuid_utils.compat import uuid7

from tests.bench.seed import first_project
from tests.journeys.conftest import eventually
from tests.support.peers.json_receiver import json_receiver
from tests.support.processes.daemon_process import Daemon, Refusal, daemon

ALERTS: Final = 80
KILLS: Final = 10
# The second step follows while the daemon is killed again.
STEP_SECONDS: Final = 2
_PERSON: Final = """
with made as (
  insert into users (uid, email, display_name, created_at, updated_at)
  values (%(uid)s, %(name)s || '@example.com', %(name)s, now(), now()) returning id),
member as (
  insert into memberships (org, uid, user_id, project, role, created_at)
  select %(org)s, gen_random_uuid(), id, null, 'viewer', now() from made)
insert into contact_methods (uid, user_id, kind, label, config, enabled, verified_at, created_at)
select gen_random_uuid(), id, 'webhook', l, jsonb_build_object('url', %(url)s || l), true, now(),
  now()
from made, unnest('{one,two}'::text[]) l
"""
_ROWS: Final = """
select o.uid::text, i.title, c.name, o.event, o.status, o.attempts
from outbox o join incidents i on i.uid = o.thread
  join destinations d on d.org = o.org and d.id = o.destination
  join notification_channels c on c.org = d.org and c.id = d.channel
"""


@contextmanager
def receiver() -> Iterator[tuple[str, Counter[str]]]:
    """Yields a URL and the number of arrivals of each message."""
    got: Counter[str] = Counter()

    def take(_: str, document: Any) -> None:
        got[document["id"]] += 1
        # A kill can come between the arrival and the answer.
        time.sleep(0.02)

    with json_receiver(take) as url:
        yield f"{url}/", got


def read(running: Daemon, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(running.dsn, autocommit=True) as connection:
        return connection.execute(query.encode()).fetchall()


def found(running: Daemon, url: str) -> str:
    """Makes two people, who are paged one after the other. Returns the path of the project."""
    (organization,) = running.api("GET", "/organizations")
    (project,) = running.api("GET", f"/organizations/{organization['id']}/projects")
    path = f"/projects/{project['id']}"
    people = [uuid7() for _ in range(2)]
    with psycopg.connect(running.dsn, autocommit=True) as connection:
        org, _ = first_project(connection)
        for name, uid in zip(("ada", "bob"), people, strict=True):
            given = {"uid": uid, "name": name, "org": org, "url": url}
            connection.execute(_PERSON.encode(), given)
    steps = [
        {"after_seconds": n * STEP_SECONDS, "targets": [{"type": "person", "id": str(uid)}]}
        for n, uid in enumerate(people)
    ]
    policy = running.api("POST", f"{path}/escalation-policies", {"name": "Night", "steps": steps})
    routes = {"routes": [], "default": {"escalation_policy_id": policy["id"]}}
    running.api("PUT", f"{path}/alert-routes", routes)
    return path


def alert(running: Daemon, path: str, n: int) -> None:
    """Sends an alert until it is accepted, as Alertmanager does."""
    alerts = [{"status": "firing", "fingerprint": f"{n:016x}", "annotations": {"summary": f"a{n}"}}]
    for _ in range(600):
        try:
            running.api("POST", f"{path}/alerts/alertmanager", {"version": "4", "alerts": alerts})
        except Refusal as refused:
            if refused.status != 503:
                raise
            # The daemon is not ready yet.
            time.sleep(0.1)
        except (OSError, http.client.HTTPException):
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the alert was not accepted")


@pytest.mark.soak
def test_no_page_is_missing_or_doubled_if_the_daemon_is_killed_while_it_pages() -> None:
    chance = random.Random(47)
    with (
        receiver() as (url, got),
        daemon(LEADLINE_NOTIFICATION_EGRESS__ALLOW_PRIVATE_IPS="true") as running,
    ):
        running.start()
        running.sign_in()
        path = found(running, url)

        def send() -> None:
            for n in range(ALERTS):
                alert(running, path, n)
                time.sleep(0.2)

        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.3, 3))
            running.kill()
            running.start()
        sender.join(180)
        assert not sender.is_alive()

        def is_over() -> bool:
            rows = read(running, _ROWS)
            return len(rows) >= 4 * ALERTS and {row[4] for row in rows} == {"delivered"}

        eventually(is_over, seconds=180)
        rows = read(running, _ROWS)
    # Each alert pages both methods of both people once.
    pages = Counter((title, channel) for _, title, channel, _, _, _ in rows)
    assert set(pages.values()) == {1}
    assert len(pages) == 4 * ALERTS
    assert len({title for title, _ in pages}) == ALERTS
    # A message arrives, and again only in a further attempt.
    for uid, title, channel, event, _, attempts in rows:
        assert 1 <= got[uid] <= attempts, (title, channel, event, got[uid], attempts)
    assert set(got) == {row[0] for row in rows}
    assert any(attempts > 1 for *_, attempts in rows), "no kill hit a send"
