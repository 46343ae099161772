"""`leadline change record`: kept, refused, and not known are three ends."""

import json
import socket
import threading
from typing import Any

import pytest

from tests.support.app.pipeline_server import (
    DECISION,
    PROJECT,
    SERVICE,
    TOKEN,
    Server,
    call,
    http,
    refused,
    serving,
)

CHANGES = f"POST /api/v1/projects/{PROJECT}/services/{SERVICE}/changes"
WHAT = ("--kind", "deploy", "--phase", "started", "--source", "github", "--external-id", "4711")
BY_ID = ("change", "record", "--project", PROJECT, "--service", SERVICE, *WHAT)


@pytest.fixture
def server():
    with serving() as running:
        yield running


def row(**more: Any) -> dict[str, Any]:
    return {
        "id": DECISION,
        "service_id": SERVICE,
        "source": "github",
        "external_id": "4711",
        "kind": "deploy",
        "phase": "started",
        "occurred_at": "2026-11-22T13:46:24.000Z",
        "ref": "",
        "url": "",
        "actor_label": "pipeline",
        "actor_user_id": None,
        "via_token": True,
        "recorded_at": "2026-11-22T13:46:24.000Z",
        **more,
    }


def recorded(status: str = "201 Created", *, replayed: bool = False, **more: Any) -> bytes:
    return http({"replayed": replayed, "change": row(**more)}, status)


def record(server: Server, said: Any, *arguments: str, **environment: str) -> Any:
    server.says[CHANGES] = said
    return call(server, *BY_ID, *arguments, **environment)


def test_a_new_phase_and_one_of_before_end_with_0(server: Server) -> None:
    done = record(server, recorded())
    assert done.exit_code == 0, done.stderr
    assert done.stdout == (
        f"Recorded: deploy 4711 of github started at 2026-11-22T13:46:24.000Z\nphase {DECISION}\n"
    )
    done = record(server, recorded("200 OK", replayed=True))
    assert done.exit_code == 0
    assert done.stdout.startswith("Already recorded: deploy 4711 of github started at ")


def test_the_given_values_are_sent(server: Server) -> None:
    more = ("--ref", "v1.4 ü", "--url", "https://ci.example/1?a=b", "--decision", DECISION.upper())
    done = record(server, recorded(), *more, "--occurred-at", "2026-11-22T14:46:24+01:00")
    assert done.exit_code == 0
    (asked,) = server.asked
    assert json.loads(asked.body) == {
        "kind": "deploy",
        "phase": "started",
        "source": "github",
        "external_id": "4711",
        "ref": "v1.4 ü",
        "url": "https://ci.example/1?a=b",
        "decision_id": DECISION,
        "occurred_at": "2026-11-22T14:46:24+01:00",
    }
    assert asked.headers["authorization"] == f"Bearer {TOKEN}"


def test_empty_values_are_omitted(server: Server) -> None:
    assert record(server, recorded(), "--ref", "", "--url", "").exit_code == 0
    assert set(json.loads(server.asked[0].body)) == {"kind", "phase", "source", "external_id"}


def test_json_is_the_answer_as_it_came(server: Server) -> None:
    done = record(server, recorded(ref="##[error]"), "--json")
    assert json.loads(done.stdout)["change"]["ref"] == "##[error]"
    assert "##" not in done.stdout


@pytest.mark.parametrize(
    ("said", "status", "words"),
    [
        (refused("400 Bad", "external_id_invalid"), 2, "refused: 400 external_id_invalid"),
        (refused("404 Not Found", "not_found"), 2, "refused: 404 not_found"),
        (refused("409 Conflict", "phase_exists: phase"), 2, "refused: 409 phase_exists"),
        (refused("401 No", "unauthorized"), 1, "not recorded: 401"),
        (refused("403 No", "forbidden"), 1, "not recorded: 403"),
        (refused("429 No", "principal_rate", "Retry-After: 3"), 1, "retry after 3 s"),
        (http(b"", "302 Found", "Location: https://x.example/"), 1, "not recorded: 302"),
        (refused("500 No", "internal_error"), 1, "outcome unknown: 500"),
        (refused("503 No", "not_ready"), 1, "outcome unknown: 503"),
        (http(b"<html>", "404 Not Found"), 1, "check LEADLINE_URL"),
        (http(b"<html>", "400 Bad"), 1, "check LEADLINE_URL"),
        (http({"error": "not_found", "more": "1"}, "404 Not Found"), 1, "check LEADLINE_URL"),
        (http(b"<html>"), 1, "not a recorded change"),
        (http(b"{}", "201 Created"), 1, "not a recorded change"),
        (recorded("201 Created", replayed=True), 1, "contradicts its body"),
        (recorded("200 OK"), 1, "contradicts its body"),
        (recorded("202 Accepted"), 1, "202"),
        (recorded(phase="failed"), 1, "another change"),
        (recorded(kind="rollback"), 1, "another change"),
        (recorded(service_id=DECISION), 1, "another change"),
        (b"", 1, "outcome unknown"),
    ],
    ids=repr,
)
def test_other_answers(server: Server, said: bytes, status: int, words: str) -> None:
    done = record(server, said)
    assert done.exit_code == status
    assert words in done.stderr
    assert done.stdout == ""
    assert (len(server.asked), server.connections) == (1, 1)


def silently(stream: socket.socket, over: threading.Event) -> None:
    over.wait()


def test_a_timeout_leaves_the_outcome_unknown(server: Server) -> None:
    done = record(server, silently, "--timeout", "1s")
    assert done.exit_code == 1
    assert "outcome unknown: timed out after 1 s" in done.stderr
    assert len(server.asked) == 1


def test_a_slug_that_is_not_there_is_refused_and_a_token_that_may_not_look_sends_it(
    server: Server,
) -> None:
    by_slug = ("change", "record", "--project", PROJECT, "--service", "checkout", *WHAT)
    services = f"GET /api/v1/projects/{PROJECT}/services"
    server.says[services] = http([])
    done = call(server, *by_slug)
    assert (done.exit_code, "service checkout not found" in done.stderr) == (2, True)
    server.says[services] = refused("403 Forbidden", "forbidden")
    assert all(asked.line.startswith("GET") for asked in server.asked)
    call(server, *by_slug)
    sent = f"POST /api/v1/projects/{PROJECT}/services/checkout/changes "
    assert server.asked[-1].line.startswith(sent)


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (BY_ID, {"LEADLINE_URL": None}),
        (BY_ID, {"LEADLINE_TOKEN": None}),
        (BY_ID, {"LEADLINE_CA_FILE": "/nowhere"}),
        ((*BY_ID, "--kind", "release"), {}),
        ((*BY_ID, "--phase", "begun"), {}),
        ((*BY_ID, "--decision", "1"), {}),
        ((*BY_ID, "--occurred-at", "yesterday"), {}),
        ((*BY_ID, "--occurred-at", "2026-11-22T14:46:24"), {}),
        ((*BY_ID, "--occurred-at", ""), {}),
        ((*BY_ID, "--source", ""), {}),
        ((*BY_ID, "--external-id", " "), {}),
        ((*BY_ID, "--ref", "\udcff"), {}),
        ((*BY_ID, "--timeout", "6m"), {}),
        (BY_ID[:-2], {}),
        (BY_ID[:6], {}),
    ],
)
def test_a_wrong_call_exits_with_2_and_sends_no_request(
    server: Server, arguments: tuple[str, ...], environment: dict[str, Any]
) -> None:
    server.else_says = recorded()
    done = call(server, *arguments, **environment)
    assert done.exit_code == 2
    assert "Usage:" in done.stderr
    assert server.connections == 0
