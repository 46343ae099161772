"""Commands of people: profiles and their file, exit statuses, and the reference of all commands."""

import json
import socket
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import PIPE
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from leadline.daemon.cli import CLIENT_COMMANDS, api_client, main
from leadline.daemon.cli.client import event_source, events
from leadline.daemon.cli.client.monitor_draft import SettingParam
from leadline.daemon.cli.client.table import Column, lines
from tests.house.sources import ROOT
from tests.support.app.pipeline_server import PROJECT, TOKEN, Server, http, refused, serving
from tests.support.processes.daemon_process import LEADLINE

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


def test_a_gap_of_events_begins_at_the_last_sign_of_the_server(
    server: Server, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event that a silent connection has lost is in the gap."""
    login(server)
    monkeypatch.setattr(events, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(event_source, "SILENCE_SECONDS", 0.5)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\n"
    event = {"monitor_id": MONITOR["id"], "project_id": PROJECT, "status": "up"}
    sent: list[datetime] = []

    def speak(stream: socket.socket, over: threading.Event) -> None:
        if sent:
            stream.sendall(head + b"event: status\ndata: " + json.dumps(event).encode() + b"\n\n")
        else:
            stream.sendall(head + b": ping\n\n")
            sent.append(datetime.now(UTC))
            over.wait(0.8)

    server.says["GET /api/v1/events"] = speak
    done = run("events", "--json", "--count", "1")
    gap = json.loads(done.stdout.splitlines()[0])
    begin, end = (datetime.fromisoformat(gap[name]) for name in ("from", "to"))
    assert begin <= sent[0] + timedelta(seconds=0.4) < end, done.stderr


def test_a_page_that_is_too_large_is_read_in_parts(
    server: Server, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    login(server)
    monkeypatch.setattr(api_client, "ANSWER_BYTES_MOST", 3_000)
    path = f"/api/v1/projects/{PROJECT}/monitors"
    rows = [{**MONITOR, "slug": f"web-{at}", "config": {"body": "x" * 900}} for at in range(4)]
    for limit in (200, 100, 50, 25, 12, 6, 3):
        server.says[f"GET {path}?limit={limit}"] = http(rows[:limit])
    server.says[f"GET {path}?limit=1"] = http(rows[:1])
    for at in range(4):
        more = f'Link: <{path}?cursor=c{at + 1}>; rel="next"' if at < 3 else "X-End: 1"
        following = f"&cursor=c{at}" if at else ""
        server.says[f"GET {path}?limit=1{following}"] = http(rows[at : at + 1], "200 OK", more)
    done = run("monitors", "list", "--json")
    assert [one["slug"] for one in json.loads(done.stdout)] == [f"web-{at}" for at in range(4)]


@pytest.mark.parametrize(
    "arguments",
    [
        ("monitors", "show", "\udcff"),
        ("monitors", "add", "Bad \udcff", "--target", "http://x/"),
        ("incidents", "note", "019b0000-0000-7000-8000-000000000009", "\udcff"),
    ],
)
def test_bytes_that_are_no_text_are_a_usage_error(
    server: Server, config: Path, arguments: tuple[str, ...]
) -> None:
    login(server)
    server.else_says = http({"id": MONITOR["id"], "number": 1, "title": "Web is down"})
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert done.stderr == "leadline: an argument or the input is not valid UTF-8\n"


def test_an_output_that_is_full_is_one_line(server: Server, config: Path) -> None:
    login(server)
    for form in ((), ("--json",)):
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [LEADLINE, "monitors", "list", *form], stdout=full, stderr=PIPE, text=True
            )
        said = "leadline: the output cannot be written: No space left on device\n"
        assert (done.returncode, done.stderr) == (1, said)


def test_a_terminal_without_the_letters_of_a_name_gets_others(
    server: Server, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    login(server)
    server.says[LIST] = http([{**MONITOR, "name": "Łódź"}])
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    done = subprocess.run([LEADLINE, "monitors", "list"], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "?ód?".encode("latin-1") in done.stdout


def test_a_folder_or_a_link_in_place_of_the_file_is_refused(config: Path, tmp_path: Path) -> None:
    config.mkdir(parents=True)
    assert run("status").stderr == f"leadline: {config} is not a regular file\n"
    config.rmdir()
    config.symlink_to(tmp_path / "other.json")
    assert run("status").stderr == f"leadline: {config} cannot be read: it is a symbolic link\n"


def test_a_user_without_a_home_folder_gets_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(Path, "home", home)
    done = run("profiles", "list")
    assert (done.exit_code, done.stderr) == (
        2,
        "leadline: this user has no home folder: set XDG_CONFIG_HOME or HOME\n",
    )


@pytest.mark.parametrize("text", ["NaN", "Infinity", "1e400", "[" * 9_999, "up"])
def test_a_setting_that_is_no_json_is_text(text: str) -> None:
    assert SettingParam().convert(f"query={text}", None, None) == ("query", text)


def test_a_new_sign_in_deletes_the_earlier_token_of_the_keyring(
    server: Server, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: dict[tuple[str, str], str] = {}
    keyring = SimpleNamespace(
        get_keyring=lambda: SimpleNamespace(priority=1),
        get_password=lambda service, name: kept.get((service, name)),
        set_password=lambda service, name, token: kept.update({(service, name): token}),
        delete_password=lambda service, name: kept.pop((service, name)),
    )
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    again = ("login", "--url", server.url, "--token-stdin")
    assert "system keyring" in run(*again, input=TOKEN).stdout
    assert run(*again, input=TOKEN).exit_code == 0
    assert list(kept.values()) == [TOKEN]
    other = server.url.replace("localhost", "127.0.0.1")
    assert run("login", "--url", other, "--token-stdin", input=TOKEN).exit_code == 0
    assert list(kept) == [("leadline", f"default {other}")]
    assert run(*again, "--store", "file", input=TOKEN).exit_code == 0
    assert kept == {}


def test_commands_are_completed_without_their_import() -> None:
    code = (
        "import sys; from leadline.daemon.cli import main;"
        "from click.shell_completion import ShellComplete as S;"
        "c = S(main, {}, 'leadline', '_LEADLINE_COMPLETE');"
        "print(*(i.value for i in c.get_completions([], 'mon')));"
        "print(*(i.value for i in c.get_completions([], '--he')));"
        "print('trio' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["monitors", "--help", "False"]


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
