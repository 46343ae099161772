"""`leadline bundle plan` and `apply`: requests, the wait for an operation, and exit codes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leadline.daemon.cli import bundle_wait
from tests.support.app.pipeline_server import PROJECT, Server, call, http, refused, serving

OPERATION = "019b0000-0000-7000-8000-000000000009"
PLAN = f"POST /api/v1/projects/{PROJECT}/bundle/plan?name=shop"
APPLY = f"POST /api/v1/projects/{PROJECT}/bundle/apply?name=shop"
READ = f"GET /api/v1/operations/{OPERATION}"
TEXT = (
    f"format: 1\norganization: acme\nproject: {PROJECT}\nmonitors:\n"
    "  web: {name: Web, type: http, target: 'https://example.org/'}\n"
)
CREATED = {"kind": "monitor", "uid": "web", "action": "create"}
TAKEN = {
    "kind": "monitor",
    "uid": "web",
    "action": "unchanged",
    "fields": [{"name": "managed_by", "from": "", "to": "api/shop"}],
}
UPDATED = {
    "kind": "monitor",
    "uid": "api",
    "action": "update",
    "fields": [{"name": "name", "from": "A", "to": "B"}],
}


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "shop.yaml"
    path.write_text(TEXT)
    return str(path)


def plan_of(*changes: dict[str, Any], applied: bool = False) -> dict[str, Any]:
    return {"changes": list(changes), "applied": applied}


def operation(state: str, done: int, **more: Any) -> dict[str, Any]:
    return {
        "id": OPERATION,
        "kind": "bundle_apply",
        "state": state,
        "done": done,
        "total": 2,
        "created_at": "2026-01-05T00:00:00.000Z",
        **more,
    }


def answers_in_turn(server: Server, key: str, *answers: bytes) -> None:
    """Answers the requests of one kind with each answer, and then with the last again."""
    left = list(answers)

    def speak(stream: Any, _: Any) -> None:
        stream.sendall(left.pop(0) if len(left) > 1 else left[0])

    server.says[key] = speak


def begins(server: Server) -> None:
    server.says[APPLY] = http(operation("running", 0), "202 Accepted")


def test_the_timeout_alone_bounds_a_plan(
    server: Server, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan of thousands of objects takes longer than a request of an operation may."""
    monkeypatch.setattr(bundle_wait, "REQUEST_SECONDS", 0.0)
    server.says[PLAN] = http(plan_of(CREATED))
    result = call(server, "bundle", "plan", file, "--exit-code")
    assert result.exit_code == 3, result.output


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([], 0),
        ([{**CREATED, "action": "unchanged"}], 0),
        ([CREATED], 3),
        ([UPDATED], 3),
        ([TAKEN], 2),
        ([UPDATED, TAKEN], 2),
    ],
)
def test_the_exit_code_of_a_plan_states_owners_before_other_changes(
    server: Server, file: str, changes: list[Any], code: int
) -> None:
    server.says[PLAN] = http(plan_of(*changes))
    assert call(server, "bundle", "plan", file).exit_code == 0
    result = call(server, "bundle", "plan", file, "--exit-code")
    assert result.exit_code == code
    assert ("with another owner" in result.stdout) == (TAKEN in changes)
    assert "prefer" not in server.asked[0].headers


def test_a_plan_says_in_words_that_a_webhook_is_deleted(server: Server, file: str) -> None:
    gone = {"kind": "webhook", "uid": "deploy", "action": "orphan"}
    fields = [{"name": "deleted", "from": False, "to": True}]
    server.says[PLAN] = http(plan_of({**gone, "fields": fields}))
    result = call(server, "bundle", "plan", file)
    assert "webhook deploy\n    deleted with its waiting deliveries\n" in result.stdout


def test_name_and_takeover_are_sent(server: Server, file: str) -> None:
    key = f"POST /api/v1/projects/{PROJECT}/bundle/plan?name=jobs.v2&take_over=true"
    server.says[key] = http(plan_of())
    result = call(server, "bundle", "plan", file, "--name", "jobs.v2", "--take-over")
    assert result.exit_code == 0, result.output
    assert json.loads(server.asked[0].body)["monitors"] == {
        "web": {"name": "Web", "type": "http", "target": "https://example.org/"}
    }


def test_a_name_that_is_no_name_is_refused_before_any_request(
    server: Server, file: str, tmp_path: Path
) -> None:
    assert "--name: must have" in call(server, "bundle", "plan", file, "--name", "a/b").stderr
    other = tmp_path / "our shop.yaml"
    other.write_text(TEXT)
    result = call(server, "bundle", "apply", str(other))
    assert result.exit_code == 2
    assert "the file name gives none that is valid" in result.stderr
    assert server.asked == []


def test_apply_waits_for_the_end_of_the_operation(server: Server, file: str) -> None:
    begins(server)
    result_of = plan_of(CREATED, applied=True)
    answers_in_turn(
        server,
        READ,
        http(operation("running", 1)),
        http(operation("succeeded", 2, result=result_of)),
    )
    result = call(server, "bundle", "apply", file)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "+ monitor web",
        "Applied: 1 created, 0 updated, 0 orphaned, 0 unchanged",
    ]
    assert server.asked[0].headers["prefer"] == "respond-async"
    assert [one.line.split(" ")[0] for one in server.asked] == ["POST", "GET", "GET"]
    as_json = call(server, "bundle", "apply", file, "--json")
    assert json.loads(as_json.stdout) == result_of


def test_apply_accepts_the_answer_of_a_server_without_operations(server: Server, file: str) -> None:
    server.says[APPLY] = http(plan_of(CREATED, applied=True))
    assert call(server, "bundle", "apply", file).exit_code == 0


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (
            "monitors.web.target: must be a URL",
            2,
            "line 5, column 32: monitors.web.target: must be a URL",
        ),
        (
            "internal error; see the log of the server",
            1,
            "not applied: internal error; see the log of the server",
        ),
    ],
)
def test_a_failure_is_reported_with_its_position_if_it_has_one(
    server: Server, file: str, error: str, code: int, said: str
) -> None:
    begins(server)
    server.says[READ] = http(operation("failed", 0, error=error))
    result = call(server, "bundle", "apply", file)
    assert result.exit_code == code
    assert said in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("monitors.web: people edit it, and name would change: take it over", 2),
        ("the project is locked by another change: try again later", 1),
        ("another bundle is being applied to the project: try again later", 1),
    ],
)
def test_a_conflict_is_a_fault_of_the_bundle_only_if_it_names_an_entry(
    server: Server, file: str, error: str, code: int
) -> None:
    server.says[APPLY] = refused("409 Conflict", error)
    result = call(server, "bundle", "apply", file)
    assert result.exit_code == code
    assert error in result.stderr


def test_a_server_that_restarts_meanwhile_is_asked_again(
    server: Server, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_wait, "LAST_PAUSE_SECONDS", 0.01)
    begins(server)
    answers_in_turn(
        server,
        READ,
        refused("503 Service Unavailable", "not_ready"),
        b"",
        http(operation("succeeded", 2, result=plan_of(CREATED, applied=True))),
    )
    assert call(server, "bundle", "apply", file).exit_code == 0


def test_an_operation_whose_outcome_is_unknown_is_named(
    server: Server, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_wait, "LAST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(bundle_wait, "SILENCE_SECONDS", 0.1)
    begins(server)
    for answer in (refused("503 Service Unavailable", "not_ready"), refused("404 x", "not_found")):
        server.says[READ] = answer
        result = call(server, "bundle", "apply", file)
        assert result.exit_code == 1
        assert f"the server continues with operation {OPERATION}" in result.stderr


def test_the_limit_of_the_wait_is_a_failure(server: Server, file: str) -> None:
    begins(server)
    server.says[READ] = http(operation("running", 1))
    result = call(server, "bundle", "apply", file, "--timeout", "1s")
    assert result.exit_code == 1
    assert (
        f"the server continues with operation {OPERATION}, whose outcome is unknown:"
        " timed out after 1 s"
    ) in result.stderr


def test_only_the_named_sections_of_a_file_are_sent(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(f"{TEXT.replace('format: 1', 'format: 3')}people: {{a: {{email: a@x.test}}}}\n")
    server.says[PLAN] = http(plan_of())
    assert call(server, "bundle", "plan", str(path), "--section", "people").exit_code == 0
    assert json.loads(server.asked[0].body) == {
        "format": 3,
        "organization": "acme",
        "project": PROJECT,
        "people": {"a": {"email": "a@x.test"}},
    }
    path.write_text(TEXT)
    result = call(server, "bundle", "plan", str(path), "--section", "monitors")
    assert result.exit_code == 2
    assert "--section needs format 3" in result.stderr
