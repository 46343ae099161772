"""`leadline export results`: ranges, formats, and continuation after an interruption."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from leadline.daemon.cli.client import parquet_rows
from tests.daemon.test_client_commands import MONITOR, config, login, run, server
from tests.support.app.pipeline_server import PROJECT, Server, http, refused

__all__ = ["config", "server"]

OTHER = {**MONITOR, "id": "019b0000-0000-7000-8000-000000000009", "slug": "api"}
SPAN = "from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z&"
RANGE = ("--from", "2026-01-01", "--to", "2026-02-01T01:00:00+01:00")


def beat(monitor: dict[str, Any], second: int, **given: Any) -> dict[str, Any]:
    row = {
        "monitor_id": monitor["id"],
        "ts": f"2026-01-02T03:04:{second:02}.000001Z",
        "up": True,
        "latency_ms": second,
        "code": 200,
        "msg": "",
    }
    return {**row, **given}


def page(monitor: dict[str, Any], cursor: str = "") -> str:
    following = f"&cursor={cursor}" if cursor else ""
    return f"GET /api/v1/monitors/{monitor['id']}/heartbeats?{SPAN}limit=500{following}"


def link(cursor: str) -> str:
    return f'Link: <http://x/api?limit=500&cursor={cursor}>; rel="next"'


@pytest.fixture
def monitors(server: Server, config: Path) -> Server:
    """Two monitors: one with two pages of results, and one with a failure."""
    login(server)
    server.says[f"GET /api/v1/projects/{PROJECT}/monitors?limit=200"] = http([MONITOR, OTHER])
    server.says[page(MONITOR)] = http([beat(MONITOR, 5), beat(MONITOR, 4)], "200 OK", link("abc"))
    server.says[page(MONITOR, "abc")] = http([beat(MONITOR, 3)])
    failed = {"up": False, "code": None, "msg": "timeout", "conditions": ["[STATUS] == 200"]}
    server.says[page(OTHER)] = http([beat(OTHER, 9, **failed)])
    return server


def seconds(file: Path) -> list[int]:
    return [json.loads(line)["latency_ms"] for line in file.read_text().splitlines()]


def test_a_range_is_selected_by_the_server(monitors: Server, tmp_path: Path) -> None:
    done = run("export", "results", *RANGE)
    assert done.exit_code == 0, done.stderr
    rows = done.stdout.splitlines()
    assert rows[0] == "ts,monitor,up,latency_ms,code,msg,conditions,monitor_id"
    assert rows[1] == f"2026-01-02T03:04:05.000001Z,web,true,5,200,,,{MONITOR['id']}"
    assert [row.split(",")[1] for row in rows[1:]] == ["web", "web", "web", "api"]


@pytest.mark.parametrize("resume", [(), ("--resume",)])
def test_parquet_has_types(monitors: Server, tmp_path: Path, resume: tuple[str, ...]) -> None:
    file = tmp_path / "r.parquet"
    done = run("export", "results", *RANGE, "--format", "parquet", "-o", str(file), *resume)
    assert done.exit_code == 0, done.stderr
    table = pyarrow.parquet.read_table(file)
    assert table.num_rows == 4
    first, last = table.to_pylist()[0], table.to_pylist()[-1]
    assert first["ts"] == datetime(2026, 1, 2, 3, 4, 5, 1, tzinfo=UTC)
    assert (first["up"], first["latency_ms"], first["conditions"]) == (True, 5, None)
    assert (last["code"], last["conditions"]) == (None, ["[STATUS] == 200"])
    assert str(table.schema.field("ts").type) == "timestamp[us, tz=UTC]"
    assert list(tmp_path.glob(".r*")) == []


def test_rows_of_parquet_are_written_in_groups(
    monitors: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_rows, "GROUP_ROWS", 3)
    file = tmp_path / "r.parquet"
    assert run("export", "results", *RANGE, "--format", "parquet", "-o", str(file)).exit_code == 0
    assert pyarrow.parquet.ParquetFile(file).num_row_groups == 2


@pytest.mark.parametrize("broken", [page(MONITOR), page(MONITOR, "abc"), page(OTHER)])
def test_an_interrupted_export_is_continued(monitors: Server, tmp_path: Path, broken: str) -> None:
    file = tmp_path / "r.jsonl"
    command = ("export", "results", *RANGE, "--format", "jsonl", "-o", str(file), "--resume")
    answer, monitors.says[broken] = monitors.says[broken], refused("503 Unavailable", "unavailable")
    done = run(*command)
    assert (done.exit_code, file.exists()) == (1, False)
    # The rows of a page that was interrupted while it was written.
    if (part := tmp_path / ".r.jsonl.part").exists():
        with part.open("ab") as torn:
            torn.write(b'{"latency_ms": 77')
    monitors.says[broken] = answer
    before = len(monitors.asked)
    done = run(*command)
    assert done.exit_code == 0, done.stderr
    assert seconds(file) == [5, 4, 3, 9]
    asked = [one.line.rpartition(" ")[0] for one in monitors.asked[before:]]
    order = [page(MONITOR), page(MONITOR, "abc"), page(OTHER)]
    assert [line for line in asked if "heartbeats" in line] == order[order.index(broken) :]
    assert [found.name for found in tmp_path.glob(".r*")] == []


def test_an_export_with_other_options_is_not_continued(monitors: Server, tmp_path: Path) -> None:
    file = tmp_path / "r.csv"
    monitors.says[page(OTHER)] = refused("503 Unavailable", "unavailable")
    assert run("export", "results", *RANGE, "-o", str(file), "--resume").exit_code == 1
    done = run("export", "results", "--from", "2026-01-01", "-o", str(file), "--resume")
    assert done.exit_code == 1
    assert "other options" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--from", "yesterday"), "must be a day (2026-01-31, in UTC)"),
        (("--from", "2026-01-01T00:00:00"), "must be a day"),
        (("--from", "2026-01-02", "--to", "2026-01-02"), "--to must be after --from"),
        (("--from", "2026-01-02", "--since", "7d"), "give --from or --since"),
        (("--resume",), "--resume needs --output"),
        (("--format", "parquet"), "--format parquet needs --output"),
    ],
)
def test_a_bad_option_is_a_usage_error(
    monitors: Server, arguments: tuple[str, ...], message: str
) -> None:
    done = run("export", "results", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
