"""Commands of people: profiles and their file, exit statuses, and the reference of all commands."""

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from leadline.daemon.cli import CLIENT_COMMANDS, main
from leadline.daemon.cli.client.table import Column, lines
from tests.house.sources import ROOT
from tests.support.app.pipeline_server import PROJECT, TOKEN, Server, http, refused, serving

ORGANIZATION = "019b0000-0000-7000-8000-000000000008"
MONITOR = {
    "id": "019b0000-0000-7000-8000-000000000007",
    "project_id": PROJECT,
    "slug": "web",
    "name": "Web",
    "type": "http",
    "target": "https://example.org/",
    "status": "down",
    "enabled": True,
    "interval_seconds": 60,
}
LIST = f"GET /api/v1/projects/{PROJECT}/monitors?limit=200"


@pytest.fixture
def server():
    with serving() as running:
        running.says["GET /api/v1/me"] = http(
            {"user": None, "memberships": [{"role": "editor"}], "totp_enabled": False}
        )
        running.says["GET /api/v1/organizations"] = http([{"id": ORGANIZATION, "slug": "acme"}])
        running.says[f"GET /api/v1/organizations/{ORGANIZATION}/projects"] = http(
            [{"id": PROJECT, "slug": "shop"}]
        )
        running.says[LIST] = http([MONITOR])
        yield running


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("LEADLINE_URL", "LEADLINE_TOKEN", "LEADLINE_PROFILE", "LEADLINE_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "leadline" / "profiles.json"


def run(*arguments: str, **given: Any) -> Result:
    return CliRunner().invoke(main, list(arguments), **given)


def login(server: Server, *more: str) -> Result:
    return run("login", "--url", server.url, "--token-stdin", "--store", "file", *more, input=TOKEN)


def test_a_verified_token_is_stored_in_a_private_file(server: Server, config: Path) -> None:
    done = login(server)
    assert done.exit_code == 0, done.output
    assert TOKEN not in done.output
    assert config.stat().st_mode & 0o777 == 0o600
    assert config.parent.stat().st_mode & 0o777 == 0o700
    listed = run("monitors", "list", "--json")
    assert json.loads(listed.stdout) == [MONITOR]
    assert server.asked[-1].headers["authorization"] == f"Bearer {TOKEN}"


def test_a_refused_token_is_not_stored(server: Server, config: Path) -> None:
    server.says["GET /api/v1/me"] = refused("401 No", "unauthorized")
    done = login(server)
    assert (done.exit_code, config.exists()) == (1, False)
    assert "401 unauthorized" in done.stderr
    assert TOKEN not in done.output


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_others_can_use_is_refused(server: Server, config: Path, mode: int) -> None:
    login(server)
    asked = len(server.asked)
    config.chmod(mode)
    done = run("monitors", "list")
    assert (done.exit_code, len(server.asked)) == (2, asked)
    assert "chmod 600" in done.stderr


def test_gate_and_change_do_not_read_profiles(server: Server, config: Path) -> None:
    login(server)
    asked = len(server.asked)
    place = ("--project", "shop", "--service", "checkout")
    change = ("--kind", "deploy", "--phase", "started", "--source", "ci", "--external-id", "1")
    for arguments in (("gate", "check", *place), ("change", "record", *place, *change)):
        done = run(*arguments, env={"LEADLINE_PROFILE": "default"})
        assert done.exit_code in (1, 2)
        assert "LEADLINE_" in done.stderr
        done = run(*arguments, env={"LEADLINE_URL": server.url})
        assert "LEADLINE_TOKEN is not set" in done.stderr
    assert len(server.asked) == asked


def test_an_unknown_slug_lists_near_ones(server: Server, config: Path) -> None:
    login(server)
    server.says[f"GET /api/v1/projects/{PROJECT}/monitors?q=wbe&limit=200"] = http([])
    done = run("monitors", "show", "wbe")
    assert done.exit_code == 1
    assert done.stderr == "leadline: monitor wbe not found in acme/shop; did you mean web?\n"


def test_an_ambiguous_slug_names_the_choices(server: Server, config: Path) -> None:
    login(server)
    other = "019b0000-0000-7000-8000-000000000006"
    organizations = [{"id": ORGANIZATION, "slug": "acme"}, {"id": other, "slug": "other"}]
    server.says["GET /api/v1/organizations"] = http(organizations)
    server.says[f"GET /api/v1/organizations/{other}/projects"] = http(
        [{"id": other, "slug": "shop"}]
    )
    done = run("monitors", "list", "--project", "shop")
    assert done.exit_code == 1
    assert "give acme/shop or other/shop" in done.stderr
    assert run("monitors", "list", "--project", "acme/shop").exit_code == 0


def test_an_interrupted_stream_ends_with_1_without_reconnection(
    server: Server, config: Path
) -> None:
    login(server)
    event = {"type": "status", "monitor_id": MONITOR["id"], "project_id": PROJECT, "status": "up"}
    data = b"event: status\ndata: " + json.dumps(event).encode() + b"\n\n"
    server.says["GET /api/v1/events"] = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\n" + data
    )
    done = run("events", "--json", "--no-reconnect")
    assert (done.exit_code, json.loads(done.stdout)) == (1, event)
    assert done.stderr.startswith("leadline: event stream interrupted: ")


def test_an_export_that_fails_leaves_no_file(server: Server, config: Path, tmp_path: Path) -> None:
    login(server)
    path = f"GET /api/v1/organizations/{ORGANIZATION}/audit?limit=500"
    server.says[path] = http(
        [{"id": "1", "action": "=x", "target": "a", "via_token": True}],
        "200 OK",
        'Link: <http://x/api?limit=500&cursor=abc>; rel="next"',
    )
    file = tmp_path / "audit.csv"
    done = run("audit", "export", "-o", str(file))
    assert (done.exit_code, file.exists()) == (1, False)
    assert "incomplete after 1 rows" in done.stderr
    server.says[f"{path}&cursor=abc"] = http([{"id": "2", "action": "b", "target": "c"}])
    assert run("audit", "export", "-o", str(file)).exit_code == 0
    assert file.read_text().splitlines()[1:] == [",,,true,'=x,a,1", ",,,,b,c,2"]


def test_a_table_fits_the_terminal() -> None:
    columns = [Column("A"), Column("B", cut=True), Column("N", right=True)]
    rows = [["up", "long text " * 10, 7], ["down", "日本語" * 20, 12]]
    for width in (20, 40, 80):
        assert all(len(click.unstyle(line)) <= width for line in lines(columns, rows, width))
    assert "long text " * 9 in lines(columns, rows, None)[1]


def test_the_reference_names_every_option() -> None:
    page = (ROOT / "docs" / "reference" / "commands.md").read_text()
    for name in CLIENT_COMMANDS:
        command = main.get_command(click.Context(main), name)
        assert command is not None
        leaves = [(name, command)]
        if isinstance(command, click.Group):
            leaves = [(f"{name} {sub}", one) for sub, one in command.commands.items()]
        for called, leaf in leaves:
            chapter = page.partition(f"### `leadline {called}`\n")[2].partition("\n###")[0]
            for parameter in leaf.params:
                if isinstance(parameter, click.Option):
                    assert f"`{parameter.opts[0]}`" in chapter, (called, parameter.opts)
