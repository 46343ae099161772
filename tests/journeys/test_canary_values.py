"""Marked values are entered in every setting, and searched in all output.

A SECRET is nowhere in clear text, including the database. PLAIN values (the path of a URL, a body,
a query) are in the settings of a monitor, but in no message, log, error, metric or audit row.
Targets answer every protocol with the data that they received, and with a marked value of their
own.
"""

import re
import socketserver
import threading
from collections.abc import Iterator
from itertools import count
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.support.processes.daemon_process import Daemon, Refusal, daemon

from .conftest import await_passes, eventually, project_of

SECRET, PLAIN, SEEN = "zqsecret", "zqplain", "zqseen"
# Valid base64 for a key of 33 bytes.
WHSEC = SECRET + "A" * 36
_numbers = count(1)


def secret() -> str:
    return f"{SECRET}{next(_numbers)}"


def plain() -> str:
    return f"{PLAIN}{next(_numbers)}"


class Echo(socketserver.BaseRequestHandler):
    """Returns the received data, in an HTTP response if the client uses HTTP."""

    def handle(self) -> None:
        self.request.settimeout(2)
        try:
            data = self.request.recv(65_536)
            if b"HTTP/1.1" in data:
                head = f"HTTP/1.1 500 {SEEN}\r\nx-{SEEN}: {SEEN}\r\ncontent-length: {len(data)}\r\n"
                self.request.sendall(head.encode() + b"\r\n" + data)
            else:
                self.request.sendall(f"-ERR {SEEN} ".encode() + data + b"\r\n" * 8)
        except OSError:
            return


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


@pytest.fixture(scope="module")
def echo() -> Iterator[int]:
    with Server(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.fixture(scope="module")
def leadline() -> Iterator[Daemon]:
    with daemon(LEADLINE_LOG__LEVEL="debug") as running:
        running.start()
        running.sign_in()
        yield running


def store_secret(leadline: Daemon, project: str) -> str:
    name = f"s{next(_numbers)}"
    leadline.api("POST", f"/projects/{project}/secrets", {"name": name, "value": secret()})
    return name


def definitions(leadline: Daemon, project: str, port: int) -> dict[str, dict[str, Any]]:
    """Returns a monitor of every type, with a marked value in every setting of free text."""
    at = f"127.0.0.1:{port}"

    def ref() -> str:
        return store_secret(leadline, project)

    url = f"http://{at}/{plain()}?{plain()}={plain()}"
    scenario = {
        "steps": [
            {
                "name": secret(),
                "method": "POST",
                "url": f"http://{at}/{secret()}?k={{{{secret:login}}}}",
                "headers": {"X-Mine": secret(), "Authorization": "{{secret:login}}"},
                "body": {secret(): "{{secret:login}}"},
                "assert": [
                    {"kind": "status", "op": "eq", "value": 500},
                    {"kind": "json", "op": "eq", "path": secret(), "value": secret()},
                ],
            }
        ]
    }
    user = {"username": plain(), "password": secret()}
    referring = {"username": plain(), "password_ref": ref()}
    return {
        "http": {
            "target": url,
            "method": "POST",
            "conditions": [f"[BODY] == {plain()}"],
            "config": {
                **user,
                "auth_mode": "basic",
                "headers": {"Cookie": secret(), "X-Api-Key": secret(), "X-Plain": plain()},
                "body": plain(),
            },
        },
        "http bearer": {"target": url, "config": {"auth_mode": "bearer", "token_ref": ref()}},
        "http2": {"target": url, "config": {"http_version": "2", "headers": {"Cookie": secret()}}},
        "tcp": {"target": at, "conditions": ["[BODY] == x"], "config": {"send": plain()}},
        # A message can name the host.
        "dns": {"target": "shop.test", "config": {"resolver": at, "transport": "tcp"}},
        "tls": {"target": at, "config": {"server_name": f"{plain()}.test"}},
        "redis": {"target": at, "config": {**user, "key": plain()}},
        "redis refused": {"target": at, "config": {**referring, "key": plain()}},
        "postgres": {"target": at, "config": {**user, "query": f"select '{plain()}'"}},
        "mysql": {"target": at, "config": {**user, "query": f"select '{plain()}'"}},
        "rabbitmq": {"target": at, "config": {**user, "queue": plain()}},
        "rabbitmq management": {
            "target": at,
            "config": {**referring, "mode": "management", "queue": plain()},
        },
        "promql": {
            "target": f"http://{at}/{plain()}",
            "config": {**user, "auth_mode": "basic", "query": plain()},
        },
        "websocket": {
            "target": f"ws://{at}/{plain()}?{plain()}",
            "config": {"headers": {"Cookie": secret()}, "send": plain()},
        },
        "grpc": {"target": at, "config": {"service": plain(), "authority": f"{plain()}.test"}},
        "ssh": {
            "target": at,
            "config": {"username": plain(), "password_ref": ref(), "command": plain()},
        },
        "synthetic": {
            "config": {"scenario": scenario, "scenario_secret_login_ref": ref()},
        },
    }


def channels(port: int) -> dict[str, dict[str, str]]:
    """Returns a channel of every type with the address of the echo, which the egress policy
    forbids.
    """
    at = f"http://127.0.0.1:{port}"
    hidden = {"url": f"{at}/{secret()}"}
    key = secret()
    return {
        "webhook": {"url": f"{at}/{plain()}", "secret": f"whsec_{WHSEC}"},
        "email": {"to": f"{plain()}@x.test"},
        "slack": hidden,
        "discord": hidden,
        "teams": hidden,
        "telegram": {"bot_token": f"1:{secret()}{'x' * 24}", "chat_id": "-1"},
        "ntfy": {"url": at, "topic": plain(), "token": secret()},
        "pagerduty": {"base_url": at, "routing_key": key + "x" * (32 - len(key))},
        "opsgenie": {"base_url": at, "api_key": secret()},
        "apprise": {"url": f"pover://{secret()}@{secret()}"},
    }


def channel_answers(leadline: Daemon, project: str, port: int) -> dict[str, bytes]:
    """Creates, tests, lists and refuses channels and a webhook, and returns all answers."""
    found: dict[str, bytes] = {}
    all_of = f"/projects/{project}/notification-channels"
    for kind, config in channels(port).items():
        body = {"type": kind, "name": kind, "config": config}
        made = leadline.api("POST", all_of, body)
        path = f"/api/v1/notification-channels/{made['id']}/test"
        # Telegram has a fixed address, and no test may leave this host.
        if kind not in ("telegram", "apprise"):
            found[f"test of {kind}"] = leadline.raw("POST", path)[2]
            assert b'"ok":false' in found[f"test of {kind}"], kind
        for key in config:
            wrong = {"config": {key: f"{secret()}\n"}}
            with pytest.raises(Refusal) as caught:
                leadline.api("PATCH", f"/notification-channels/{made['id']}", wrong)
            found[f"refusal of {kind} {key}"] = caught.value.body
    (organization,) = leadline.api("GET", "/organizations")
    hooks = f"/organizations/{organization['id']}/webhooks"
    hook = {"url": f"http://127.0.0.1:{port}/{plain()}", "secret": f"whsec_{WHSEC}"}
    made = leadline.api("POST", hooks, hook)
    found["test of a hook"] = leadline.raw("POST", f"/api/v1/webhooks/{made['id']}/test")[2]
    with pytest.raises(Refusal) as caught:
        leadline.api("POST", hooks, {"url": "https://x.test", "secret": secret()})
    found["refusal of a hook"] = caught.value.body
    return found


def refused_bodies(leadline: Daemon, project: str) -> list[bytes]:
    """Returns the errors of invalid requests that contain marked values."""
    here = f"/projects/{project}"
    http = {"name": "x", "type": "http", "target": "http://x.test/"}
    wrong: list[tuple[str, str, Any]] = [
        ("POST", f"{here}/secrets", {"name": "UPPER", "value": secret()}),
        ("POST", f"{here}/secrets", {"name": "x", "value": secret() * 1_000}),
        ("POST", f"{here}/secrets", {"name": "x", "value": secret(), secret(): 1}),
        ("POST", f"{here}/monitors", {**http, "target": f"http://u:{secret()}@x.test/"}),
        ("POST", f"{here}/monitors", {**http, "config": {"headers": {"Cookie": secret() + "\n"}}}),
        ("POST", f"{here}/monitors", {**http, "config": {"password": [secret()]}}),
        ("POST", f"{here}/monitors", {**http, "conditions": [f"[BODY] = {secret()}"]}),
        ("POST", f"{here}/monitors", {**http, "conditions": [f"[BODY] matches ({secret()}"]}),
        ("POST", f"{here}/monitors", {**http, "config": {"auth_mode": secret()}}),
        ("POST", f"{here}/monitors", {**http, "method": secret()}),
        ("POST", f"{here}/monitors/test", {**http, "config": {"token_ref": secret()}}),
        *(
            ("POST", f"{here}/monitors", {"name": "x", "type": "synthetic", "config": config})
            for config in (
                {
                    "scenario": {
                        "steps": [{"url": "http://x.test/", "headers": {"Cookie": secret()}}]
                    }
                },
                {"scenario": {"steps": [{"url": f"http://u:{secret()}@x.test/"}]}},
                {"scenario": {"steps": [{"url": "http://x.test/", "method": secret()}]}},
                {"scenario": secret()},
                {"scenario": {"steps": secret()}},
            )
        ),
        ("POST", "/me/password", {"current_password": secret(), "new_password": secret() * 3}),
        ("GET", f"/monitors/{secret()}?token={secret()}", None),
        ("POST", f"/public/push/{secret()}?msg={secret()}", None),
    ]
    found = []
    for method, path, body in wrong:
        with pytest.raises(Refusal) as caught:
            leadline.api(method, path, body, **{f"X_{SECRET}": secret()})
        assert caught.value.status < 500, path
        found.append(caught.value.body)
    mine = leadline.cookie
    for cookie, headers in (
        ("", {"Authorization": f"Bearer {secret()}"}),
        (f"leadline_session={secret()}", {}),
    ):
        leadline.cookie = cookie
        with pytest.raises(Refusal) as caught:
            leadline.raw("GET", f"/api/v1/me?{secret()}", **headers)
        found.append(caught.value.body)
    with pytest.raises(Refusal) as caught:
        leadline.raw("POST", "/auth/local/login", {"username": plain(), "password": secret()})
    found.append(caught.value.body)
    leadline.cookie = mine
    return found


def rows_of(leadline: Daemon) -> dict[str, str]:
    """Returns every row of every table as text, by table."""
    with psycopg.connect(leadline.dsn, autocommit=True) as connection:
        tables = connection.execute(
            "select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace"
            " where n.nspname = 'public' and c.relkind in ('r', 'p')"
        ).fetchall()
        found = {}
        for (table,) in tables:
            query = sql.SQL("select t::text from {} t").format(sql.Identifier(table))
            found[table] = "\n".join(row[0] for row in connection.execute(query).fetchall())
        return found


def read_outputs(leadline: Daemon, project: str, monitors: dict[str, str]) -> dict[str, bytes]:
    """Returns the readable data of monitors other than their settings."""
    (organization,) = leadline.api("GET", "/organizations")
    paths = [
        f"/api/v1/organizations/{organization['id']}/audit",
        f"/api/v1/projects/{project}/secrets",
        "/api/v1/admin/audit",
        "/metrics",
        "/readyz",
    ]
    for monitor in monitors.values():
        paths.append(f"/api/v1/monitors/{monitor}/heartbeats")
        paths.append(f"/api/v1/projects/{project}/monitors/{monitor}/expected-runs")
    return {path: leadline.raw("GET", path)[2] for path in paths}


def shown(leadline: Daemon, project: str, monitors: dict[str, str]) -> dict[str, bytes]:
    """Returns the screens and routes that show settings, which must not contain a secret."""
    paths = [f"/projects/{project}", f"/projects/{project}/secrets"]
    for kind, monitor in monitors.items():
        paths.append(f"/monitors/{monitor}")
        # Users who can edit a scenario can read all of it.
        if kind != "synthetic":
            paths += [f"/monitors/{monitor}/edit", f"/api/v1/monitors/{monitor}"]
    found = {path: leadline.raw("GET", path)[2] for path in paths}
    (organization,) = leadline.api("GET", "/organizations")
    for path in (
        f"/projects/{project}/notification-channels",
        f"/organizations/{organization['id']}/webhooks",
    ):
        found[path] = leadline.raw("GET", f"/api/v1{path}")[2]
    listed = leadline.api("GET", f"/projects/{project}/monitors")
    found["the list"] = str([m for m in listed if m["type"] != "synthetic"]).encode()
    return found


@pytest.mark.soak
def test_no_secret_leaves_the_installation(leadline: Daemon, echo: int) -> None:
    project = project_of(leadline)
    errors = refused_bodies(leadline, project)
    given = definitions(leadline, project, echo)
    common = {"interval_seconds": 5, "timeout_seconds": 2}
    monitors, tried = {}, []
    for name, definition in given.items():
        body = {"name": name, "type": name.split()[0].rstrip("2"), **common, **definition}
        monitors[name] = str(leadline.api("POST", f"/projects/{project}/monitors", body)["id"])
        if name != "synthetic":
            tried.append(leadline.raw("POST", f"/api/v1/projects/{project}/monitors/test", body)[2])
    for name, monitor in monitors.items():
        path = f"/monitors/{monitor}/heartbeats"
        assert eventually(lambda p=path: leadline.api("GET", p), 40), name  # type: ignore[misc]
    synthetic = monitors["synthetic"]
    assert SECRET in str(leadline.api("GET", f"/monitors/{synthetic}"))
    answered = channel_answers(leadline, project, echo)
    pages = shown(leadline, project, monitors)
    outputs = read_outputs(leadline, project, monitors)
    rows = rows_of(leadline)
    for name in ("http", "ssh", "synthetic"):
        leadline.api("DELETE", f"/monitors/{monitors[name]}")
    await_passes(leadline)
    leadline.stop()
    outputs["the log"] = leadline.log.read_bytes()
    outputs |= {f"error {n}": body for n, body in enumerate(errors)}
    outputs |= {f"trial {n}": body for n, body in enumerate(tried)}
    outputs |= answered
    outputs |= {
        f"table {name}": rows[name].encode()
        for name in ("audit_entries", "heartbeats", "expected_runs", "status_changes")
    }
    for where, text in outputs.items():
        # `conditions` has the text of the condition as the monitor has it.
        told = re.sub(rb"\[BODY\] == " + PLAIN.encode() + rb"\d*", b"", text)
        assert not [word for word in (SECRET, PLAIN, SEEN) if word.encode() in told], where
    for where, text in pages.items():
        assert not [word for word in (SECRET, SEEN) if word.encode() in text.lower()], where
    for table, found in rows.items():
        assert not [word for word in (SECRET, SEEN) if word in found.lower()], table
    # The search works: the settings contain the values, and the log was written.
    assert PLAIN in rows["monitors"]
    assert PLAIN.encode() in pages["the list"]
    assert b"stopping" in outputs["the log"]
