"""An incident is sent by mail to 2 000 subscribers of a status page: duration, CPU time and
memory."""

import base64
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from uuid_utils.compat import uuid7

from leadline.storage.core.token import RANDOM_BYTES, TokenKind, digest, token_from
from leadline.storage.engine.keyring import CipherContext, Keyring

from ...support.processes.daemon_process import Daemon, daemon
from ...support.processes.ports import free_port
from ..usage import cpu_seconds, memory_mib

PEOPLE = 2_000
ROUNDS = 3
PATIENCE_SECONDS = 300.0
_SUBSCRIBERS = """
insert into subscribers (org, uid, page, kind, address, address_key, requested_at, confirmed_at,
  token_hash, token_ciphertext, created_at)
select g.org, t.uid, g.id, 'mail', t.address, t.address, now(), now(), t.hashed, t.sealed, now()
from status_pages g, unnest(%(uids)s::uuid[], %(addresses)s::text[], %(hashes)s::bytea[],
  %(sealed)s::bytea[]) as t(uid, address, hashed, sealed)
"""
_DESTINATIONS = "insert into destinations (org, subscriber) select org, id from subscribers"
_COUNT = """
select count(*) filter (where o.status = 'delivered'), count(*)
from outbox o join destinations d on d.org = o.org and d.id = o.destination
where d.subscriber is not null
"""

Figures = dict[str, Any]


def subscribers() -> Figures:
    key = os.urandom(32)
    with (
        _mail_server() as port,
        daemon(
            on_disk=True,
            LEADLINE_SECURITY__ENCRYPTION_KEY=base64.b64encode(key).decode(),
            LEADLINE_SERVER__PUBLIC_BASE_URL="https://up.example.com",
            LEADLINE_MAIL__ENABLED="true",
            LEADLINE_MAIL__SMTP_HOST="127.0.0.1",
            LEADLINE_MAIL__SMTP_PORT=str(port),
            LEADLINE_MAIL__FROM="Leadline <status@example.com>",
            LEADLINE_LOG__LEVEL="error",
        ) as running,
    ):
        running.start()
        running.sign_in()
        organization = running.api("GET", "/organizations")[0]["id"]
        project = running.api("GET", f"/organizations/{organization}/projects")[0]["id"]
        body = {"slug": "bench", "title": "Bench", "project_id": project}
        running.api("POST", f"/organizations/{organization}/status-pages", body)
        _subscribe(running, Keyring(key))
        before = memory_mib(running)
        rounds = [_figures(running, project, n) for n in range(1, ROUNDS + 1)]
        return {"people": PEOPLE, "rounds": rounds, "before": before, "after": memory_mib(running)}


@contextmanager
def _mail_server() -> Iterator[int]:
    """A mail server in a process of its own that accepts and discards all mail."""
    port = free_port()
    command = [sys.executable, "-m", "aiosmtpd", "-n", "-l", f"127.0.0.1:{port}"]
    process = subprocess.Popen([*command, "-c", "aiosmtpd.handlers.Sink"])
    try:
        time.sleep(1)
        yield port
    finally:
        process.terminate()
        process.wait()


def _subscribe(running: Daemon, keyring: Keyring) -> None:
    uids = [uuid7() for _ in range(PEOPLE)]
    tokens = [token_from(TokenKind.SUBSCRIPTION, os.urandom(RANDOM_BYTES)) for _ in uids]
    with psycopg.connect(running.dsn, autocommit=True) as connection:
        values = {
            "uids": uids,
            "addresses": [f"reader{n}@example.com" for n in range(PEOPLE)],
            "hashes": [digest(token) for token in tokens],
            "sealed": [
                keyring.seal(token.encode(), CipherContext("subscribers", "token_ciphertext", uid))
                for uid, token in zip(uids, tokens, strict=True)
            ],
        }
        connection.execute(_SUBSCRIBERS, values)
        connection.execute(_DESTINATIONS)
        connection.execute("vacuum analyze")


def _figures(running: Daemon, project: str, number: int) -> Figures:
    body = {"title": f"Incident {number}", "body": "We look into it. " * 10}
    spent, began = cpu_seconds(running), time.monotonic()
    running.api("POST", f"/projects/{project}/incidents", body)
    with psycopg.connect(running.dsn, autocommit=True) as connection:
        written = 0.0
        while True:
            found = connection.execute(_COUNT).fetchone()
            assert found is not None
            if found[1] == number * PEOPLE and not written:
                written = time.monotonic() - began
            if found[0] == number * PEOPLE:
                break
            assert time.monotonic() - began < PATIENCE_SECONDS, found
            time.sleep(0.05)
    took = time.monotonic() - began
    used = {who: round(cpu_seconds(running)[who] - spent[who], 2) for who in spent}
    return {
        "rows_written_s": round(written, 2),
        "all_told_s": round(took, 1),
        "a_second": round(PEOPLE / took),
        "cpu_s": used,
        **memory_mib(running),
    }
