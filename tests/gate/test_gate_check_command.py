"""`leadline gate check`: exit status, output, transport and slugs."""

import gzip
import json
import os
import socket
import ssl
import subprocess
import threading
from itertools import product
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trustme

from leadline.daemon.cli.gate_response import NoDecision, read_decision
from tests.support.app.pipeline_server import (
    DECISION,
    PROJECT,
    SERVICE,
    TOKEN,
    Server,
    call,
    decision,
    http,
    refused,
    serving,
)
from tests.support.processes.daemon_process import LEADLINE

GATE = f"POST /api/v1/projects/{PROJECT}/services/{SERVICE}/gate"
BY_ID = ("gate", "check", "--project", PROJECT, "--service", SERVICE)
BY_SLUG = ("gate", "check", "--project", "shop", "--service", "checkout")
OVERRIDE = {
    "override_id": DECISION,
    "override": {
        "id": DECISION,
        "actor_label": "Mara",
        "reason": "the fix",
        "expires_at": "2026-11-23T00:00:00.000Z",
    },
}


@pytest.fixture
def server():
    with serving() as running:
        yield running


def gate(server: Server, said: Any, *arguments: str, **environment: str) -> Any:
    server.says[GATE] = said if isinstance(said, bytes) or callable(said) else http(said)
    return call(server, *BY_ID, *arguments, **environment)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (decision("ALLOW"), 0),
        (decision("WARN"), 0),
        (decision("BLOCK"), 2),
        (decision("NOT_CONFIGURED"), 4),
        (decision("NOT_CONFIGURED", policy_source="none"), 4),
        (decision("UNKNOWN", action="WARN", unoverridden_action="WARN"), 0),
        (decision("UNKNOWN", action="BLOCK", unoverridden_action="BLOCK"), 2),
        (decision("UNKNOWN", action="BLOCK", unoverridden_action=None), 2),
        (decision("BLOCK", action="ALLOW", **OVERRIDE), 0),
        (decision("BLOCK", action="ALLOW", unoverridden_action=None, **OVERRIDE), 0),
        (decision("UNKNOWN", action="ALLOW", unoverridden_action="BLOCK", **OVERRIDE), 0),
        (decision("WARN", **OVERRIDE), 0),
        (decision("ALLOW", something_of_a_later_version={"a": [1]}), 0),
    ],
)
def test_the_exit_status_follows_the_action(
    server: Server, said: dict[str, Any], status: int
) -> None:
    for arguments in ((), ("--json",), *(("--format", f) for f in ("github", "gitlab", "junit"))):
        done = gate(server, said, *arguments)
        assert done.exit_code == status, done.output
        assert isinstance(done.exception, SystemExit | None)


STATES = ("ALLOW", "WARN", "BLOCK", "UNKNOWN", "NOT_CONFIGURED")
ACTIONS = (None, "ALLOW", "WARN", "BLOCK")


def model(state: str, action: str | None, intended: str | None, overrides: bool) -> int:
    """Returns the exit status that the specification requires; 1 if the decision contradicts
    itself.
    """
    allowed: dict[str, list[str | None]] = {
        "ALLOW": ["ALLOW"],
        "WARN": ["WARN"],
        "BLOCK": ["BLOCK"],
        "UNKNOWN": ["WARN", "BLOCK"],
        "NOT_CONFIGURED": [None],
    }
    for due in allowed[state]:
        if intended not in (None, due):
            continue
        lets_through = overrides and due == "BLOCK" and action == "ALLOW"
        if action == due or lets_through:
            return {"ALLOW": 0, "WARN": 0, "BLOCK": 2, None: 4}[action]
    return 1


def test_a_contradictory_decision_is_refused() -> None:
    for state, action, intended, overrides in product(STATES, ACTIONS, ACTIONS, (False, True)):
        more = OVERRIDE if overrides else {}
        said = decision(state, action=action, unoverridden_action=intended, **more)
        try:
            status = read_decision(json.dumps(said).encode(), UUID(SERVICE)).exit_status
        except NoDecision:
            status = 1
        assert status == model(state, action, intended, overrides), said


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"<html><body>Sign in to the proxy</body></html>",
        b"null",
        b"[]",
        b"{}",
        b'"ALLOW"',
        json.dumps(decision())[:-1].encode(),
        json.dumps(decision()).encode() + b"\xff",
        {"state": "ALLOW", "action": "ALLOW"},
        json.dumps(decision())[:-1].encode() + b', "x": ' + b"[" * 300_000,
        b'{"error": ' * 300_000,
        decision(reasons=[{"code": "seal_stale"}] * 201),
        {**decision(), "state": None},
        decision(action=None, unoverridden_action=None),
        decision(state="allow", action="ALLOW"),
        decision(state="PERHAPS"),
        decision(action="GO"),
        decision(action=True),
        decision(state="BLOCK", action="ALLOW"),
        decision(state="BLOCK", action="ALLOW", unoverridden_action="ALLOW"),
        decision(state="NOT_CONFIGURED", action="ALLOW"),
        decision(state="UNKNOWN", action="ALLOW", unoverridden_action=None),
        decision("UNKNOWN", action="WARN", unoverridden_action="WARN", unknown_behavior="block"),
        decision(reasons=None),
        decision(decision_id="1"),
        decision(service_id=None),
        decision(service_id=DECISION),
    ],
    ids=lambda said: repr(said)[:80],
)
def test_an_invalid_decision_exits_with_1_without_output(server: Server, said: Any) -> None:
    for arguments in ((), ("--json",), ("--format", "gitlab")):
        done = gate(server, http(said), *arguments)
        assert (done.exit_code, done.stdout) == (1, ""), said
        assert done.stderr.startswith("leadline: no decision: ")
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (refused("401 Unauthorized", "unauthorized"), "LEADLINE_TOKEN is not accepted"),
        (refused("403 Forbidden", "forbidden"), "token lacks permission"),
        (refused("404 Not Found", "not_found"), "project or service not found"),
        (refused("429 Slow", "principal_rate", "Retry-After: 7"), "retry after 7 s"),
        (refused("429 Slow", "process_inflight", "Retry-After: soon"), "process_inflight"),
        (refused("500 Oh", "internal_error"), "500 internal_error"),
        (refused("503 Busy", "snapshot_conflict", "Retry-After: 1"), "503 snapshot_conflict"),
        (http(b"<html>bad gateway", "502 Bad Gateway"), "check LEADLINE_URL"),
        (http(b"", "404 Not Found"), "check LEADLINE_URL"),
        (http(b"", "204 No Content"), "204"),
        (http(decision(), "201 Created"), "201"),
        (http(decision(), "202 Accepted"), "202"),
        (http(decision(), "302 Found", "Location: https://else.example/"), "not followed"),
        (http(decision(), "307 Moved", "Location: /somewhere"), "redirect to /somewhere"),
        (http(decision(), "308 Moved"), "redirect to no address"),
        (b"SSH-2.0-OpenSSH_9.9\r\n", "is not valid HTTP"),
        (b"", "is not valid HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{}", "is not valid HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n{}", "is not valid HTTP"),
    ],
)
def test_an_invalid_answer_is_not_requested_again(server: Server, said: bytes, words: str) -> None:
    done = gate(server, said)
    assert done.exit_code == 1
    assert done.stdout == ""
    assert words in done.stderr
    assert (len(server.asked), server.connections) == (1, 1)


def test_an_untrusted_refusal_is_sanitized(server: Server) -> None:
    code = "x\n::error::y\r##[add-path]/tmp\x1b[2J" + "z" * 9_000
    done = gate(server, refused("400 Bad", code))
    assert done.exit_code == 1
    assert len(done.stderr.splitlines()) == 1
    assert "##" not in done.stderr
    assert "\x1b" not in done.stderr
    assert len(done.stderr) < 800


def test_the_request_is_one_post_with_token_and_empty_document(server: Server) -> None:
    assert gate(server, decision()).exit_code == 0
    (asked,) = server.asked
    assert asked.line == f"{GATE} HTTP/1.1"
    assert asked.headers["authorization"] == f"Bearer {TOKEN}"
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["user-agent"].startswith("leadline/")
    assert asked.body == b"{}"


def test_the_url_can_have_a_path(server: Server) -> None:
    server.says[GATE.replace("/api", "/ops/api")] = http(decision())
    for url in (f"{server.url}/ops", f"{server.url}/ops/"):
        assert call(server, *BY_ID, LEADLINE_URL=url).exit_code == 0


# Responses that do not end.


def slowly(stream: socket.socket, over: threading.Event) -> None:
    stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n")
    while not over.wait(0.05):
        stream.sendall(b" ")


def silently(stream: socket.socket, over: threading.Event) -> None:
    over.wait()


def head_without_end(stream: socket.socket, over: threading.Event) -> None:
    stream.sendall(b"HTTP/1.1 200 OK\r\n")
    while not over.is_set():
        stream.sendall(b"X-More: " + b"x" * 1_000 + b"\r\n")


def body_without_end(stream: socket.socket, over: threading.Event) -> None:
    stream.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while not over.is_set():
        stream.sendall(b" " * 65_536)


def packed_bomb(stream: socket.socket, over: threading.Event) -> None:
    data = gzip.compress(b" " * 50_000_000)
    stream.sendall(http(data, "200 OK", "Content-Encoding: gzip"))


@pytest.mark.parametrize("speak", [slowly, silently])
def test_the_timeout_ends_every_request(server: Server, speak: Any) -> None:
    done = gate(server, speak, "--timeout", "1s")
    assert done.exit_code == 1
    assert "timed out after 1 s" in done.stderr


@pytest.mark.parametrize("speak", [head_without_end, body_without_end, packed_bomb])
def test_the_size_of_an_answer_is_bounded(server: Server, speak: Any) -> None:
    done = gate(server, speak, "--timeout", "30s")
    assert done.exit_code == 1
    assert "too large" in done.stderr


def test_the_timeout_includes_slug_lookups(server: Server) -> None:
    server.says["GET /api/v1/organizations"] = silently
    done = call(server, *BY_SLUG, "--timeout", "1s")
    assert (done.exit_code, len(server.asked)) == (1, 1)


def test_connection_and_resolution_errors_are_reported() -> None:
    with serving() as gone:
        pass
    done = call(gone, *BY_ID)
    assert done.exit_code == 1
    assert "connection refused" in done.stderr
    done = call(None, *BY_ID, LEADLINE_URL="http://leadline.invalid")
    assert done.exit_code == 1
    assert "request to leadline.invalid" in done.stderr


# TLS.


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


def context_of(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


def file_of(authority: trustme.CA, folder: Path) -> str:
    place = folder / f"ca-{id(authority)}.pem"
    authority.cert_pem.write_to_path(str(place))
    return str(place)


def test_the_ca_file_is_trusted(authority: trustme.CA, tmp_path: Path) -> None:
    with serving(context_of(authority, "localhost")) as server:
        done = gate(server, decision(), LEADLINE_CA_FILE=file_of(authority, tmp_path))
        assert done.exit_code == 0, done.stderr


def test_other_certificate_authorities_are_not_trusted(
    authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(context_of(authority, "localhost")) as server:
        done = gate(server, decision())
        assert done.exit_code == 1
        assert "certificate not trusted" in done.stderr or "LEADLINE_CA_FILE" in done.stderr
        assert gate(server, decision(), LEADLINE_CA_FILE=file_of(trustme.CA(), tmp_path)).exit_code
        # If a CA file is set, the CAs of the system are not trusted.
        monkeypatch.setenv("SSL_CERT_FILE", file_of(authority, tmp_path))
        assert gate(server, decision()).exit_code == 0
        done = gate(server, decision(), LEADLINE_CA_FILE=file_of(trustme.CA(), tmp_path))
        assert done.exit_code == 1
    assert [asked.line for asked in server.asked] == [f"{GATE} HTTP/1.1"]


def test_a_certificate_of_another_name_is_refused(authority: trustme.CA, tmp_path: Path) -> None:
    with serving(context_of(authority, "elsewhere.example")) as server:
        done = gate(server, decision(), LEADLINE_CA_FILE=file_of(authority, tmp_path))
    assert done.exit_code == 1
    assert "ostname mismatch" in done.stderr
    assert server.asked == []


def test_a_server_without_tls_gets_no_token(server: Server) -> None:
    url = server.url.replace("http", "https")
    done = call(server, *BY_ID, "--timeout", "1s", LEADLINE_URL=url)
    assert done.exit_code == 1
    assert server.asked == []


def test_proxy_variables_are_ignored(server: Server) -> None:
    with serving() as proxy:
        named = dict.fromkeys(("http_proxy", "HTTPS_PROXY", "ALL_PROXY"), proxy.url)
        assert gate(server, decision(), **named).exit_code == 0
    assert proxy.connections == 0


# Slugs.


def serve_slugs(server: Server, **more: Any) -> None:
    lists: dict[str, Any] = {
        "/organizations": [{"id": DECISION, "slug": "acme"}],
        f"/organizations/{DECISION}/projects": [
            {"id": SERVICE, "slug": "other"},
            {"id": PROJECT, "slug": "shop"},
        ],
        f"/projects/{PROJECT}/services": [{"service": {"id": SERVICE, "slug": "checkout"}}],
        **more,
    }
    for path, said in lists.items():
        answer = said if isinstance(said, bytes) else http(said)
        server.says[f"GET /api/v1{path}"] = answer
    server.says[GATE] = http(decision())


def test_slugs_are_resolved_before_the_gate_request(server: Server) -> None:
    serve_slugs(server)
    assert call(server, *BY_SLUG).exit_code == 0
    methods = [asked.line.split()[0] for asked in server.asked]
    assert methods == ["GET", "GET", "GET", "POST"]
    server.asked.clear()
    done = call(server, "gate", "check", "--project", PROJECT, "--service", "checkout")
    assert (done.exit_code, len(server.asked)) == (0, 2)
    server.asked.clear()
    done = call(server, "gate", "check", "--project", "shop", "--service", SERVICE)
    assert (done.exit_code, len(server.asked)) == (0, 3)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"/organizations": refused("401 No", "unauthorized")}, "LEADLINE_TOKEN"),
        ({"/organizations": []}, "project shop not found"),
        ({f"/projects/{PROJECT}/services": []}, "service checkout not found"),
        ({f"/projects/{PROJECT}/services": [{"service": None}]}, "service checkout not found"),
        ({"/organizations": [{"id": "../me"}]}, "not from a Leadline server"),
        ({"/organizations": http(b"<html>")}, "not from a Leadline server"),
        ({"/organizations": {"id": 1}}, "not from a Leadline server"),
        ({"/organizations": http(b"", "302 Found", "Location: /")}, "not followed"),
        (
            {"/organizations": [{"id": DECISION}, {"id": DECISION}]},
            "several projects have the slug shop",
        ),
        ({"/organizations": [{"id": DECISION}] * 51}, "too many organizations"),
    ],
)
def test_an_unknown_slug_sends_no_gate_request(
    server: Server, more: dict[str, Any], words: str
) -> None:
    serve_slugs(server, **more)
    done = call(server, *BY_SLUG)
    assert done.exit_code == 1
    assert words in done.stderr
    assert all(asked.line.startswith("GET") for asked in server.asked)


@pytest.mark.parametrize("list_refused", ["/organizations", f"/projects/{PROJECT}/services"])
def test_slugs_go_to_the_gate_if_the_token_cannot_look_them_up(
    server: Server, list_refused: str
) -> None:
    serve_slugs(server, **{list_refused: refused("403 Forbidden", "forbidden")})
    server.says["POST /api/v1/projects/shop/services/checkout/gate"] = http(decision())
    assert call(server, *BY_SLUG).exit_code == 0
    assert server.asked[-1].line.startswith("POST /api/v1/projects/shop/services/checkout/gate ")


# Wrong tokens: 1, as 2 would be read as BLOCK, and nothing is asked.


@pytest.mark.parametrize(
    "token", [None, "", "two words", "line\r\nX-Injected: 1", "line\n", "tökén", "x" * 5_000]
)
def test_a_wrong_token_ends_with_1_and_does_nothing(server: Server, token: str | None) -> None:
    server.else_says = http(decision())
    done = call(server, *BY_ID, "--format", "junit", LEADLINE_TOKEN=token)
    assert (done.exit_code, server.connections) == (1, 0)
    assert "no decision: LEADLINE_TOKEN" in done.stderr
    assert "<error" in done.stdout
    assert "two words" not in done.output


# Wrong arguments: exit status 2 and no request.


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (BY_ID, {"LEADLINE_URL": None}),
        (BY_ID, {"LEADLINE_URL": ""}),
        (BY_ID, {"LEADLINE_URL": "localhost:8080"}),
        (BY_ID, {"LEADLINE_URL": "ftp://localhost"}),
        (BY_ID, {"LEADLINE_URL": "http://user:secret@localhost"}),
        (BY_ID, {"LEADLINE_URL": "http://localhost/?a=b"}),
        (BY_ID, {"LEADLINE_URL": "http://localhost/#a"}),
        (BY_ID, {"LEADLINE_URL": "http://local host"}),
        (BY_ID, {"LEADLINE_URL": "http://localhost:99999"}),
        (BY_ID, {"LEADLINE_URL": "http://localhost/api/v1/"}),
        (BY_ID, {"LEADLINE_CA_FILE": "/nowhere/at/all.pem"}),
        (BY_ID, {"LEADLINE_CA_FILE": "/"}),
        (BY_ID, {"LEADLINE_CA_FILE": __file__}),
        (BY_ID, {"LEADLINE_CA_FILE": "/dev/null"}),
        ((*BY_ID, "--timeout", "10"), {}),
        ((*BY_ID, "--timeout", "999ms"), {}),
        ((*BY_ID, "--timeout", "301s"), {}),
        ((*BY_ID, "--timeout", "-1s"), {}),
        ((*BY_ID, "--timeout", ""), {}),
        ((*BY_ID, "--format", "text"), {}),
        ((*BY_ID, "--format", "junit", "--json"), {}),
        ((*BY_ID, "--token", TOKEN), {}),
        ((*BY_ID, "more"), {}),
        (("gate", "check", "--project", PROJECT), {}),
        (("gate", "check", "--service", SERVICE), {}),
        (("gate", "check", "--project", "../me", "--service", SERVICE), {}),
        (("gate", "check", "--project", PROJECT, "--service", "Checkout"), {}),
        (("gate", "check", "--project", PROJECT, "--service", f"{{{SERVICE}}}"), {}),
        (("gate", "check", "--project", PROJECT, "--service", f"urn:uuid:{SERVICE}"), {}),
        (("gate", "check", "--project", "", "--service", SERVICE), {}),
    ],
)
def test_wrong_arguments_exit_with_2_and_send_nothing(
    server: Server, arguments: tuple[str, ...], environment: dict[str, Any], tmp_path: Path
) -> None:
    server.else_says = http(decision())
    summary = tmp_path / "summary.md"
    given = {"GITHUB_STEP_SUMMARY": str(summary), **environment}
    done = call(server, *arguments, **given)
    assert done.exit_code == 2, done.output
    assert "Usage:" in done.stderr
    assert done.stdout == ""
    assert (server.connections, summary.exists()) == (0, False)
    for secret in (TOKEN, "secret", "two words"):
        if secret not in arguments:
            assert secret not in done.stderr


def test_timeouts_within_the_limits_are_accepted(server: Server) -> None:
    for text in ("1s", "5m", "1m30s", "1500ms"):
        assert gate(server, decision(), "--timeout", text).exit_code == 0


@pytest.mark.parametrize("form", [(), ("--json",), ("--format", "gitlab")])
def test_a_failed_write_of_the_output_exits_with_1(server: Server, form: tuple[str, ...]) -> None:
    server.says[GATE] = http(decision())
    environment = {**os.environ, "LEADLINE_URL": server.url, "LEADLINE_TOKEN": TOKEN}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [LEADLINE, *BY_ID, *form], env=environment, stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 1
    assert b"the output cannot be written: No space left" in done.stderr
    assert b"Traceback" not in done.stderr


def test_json_output_is_the_received_decision(server: Server) -> None:
    text = json.dumps(decision(name="é ##[error]x", later=1e300), indent=2, ensure_ascii=False)
    done = gate(server, http(text.encode()), "--json")
    assert json.loads(done.stdout) == json.loads(text)
    assert "##" not in done.stdout
    assert done.stdout.replace("\\u0023", "#") == text + "\n"
    assert done.stderr == ""
