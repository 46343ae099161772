"""The agent as a process: it loads no module of the database or the server, stays small, reports
configuration errors, and keeps its results after kill -9."""

import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

import msgspec
import pytest
import trio
import trustme

from leadline.daemon.agent.job_parser import SECOND, micros
from tests.agents.fake_server import FakeServer
from tests.agents.fast_agent import target, until
from tests.agents.job_samples import REGION, TOKEN, job
from tests.support.processes.daemon_process import LEADLINE

ENTRY = Path(__file__).with_name("entry.py")
RSS_MIB_MOST = 60
NEVER_LOADED = ("leadline.storage", "leadline.http", "psycopg", "hypercorn", "quart", "asyncio")


def wall_us() -> int:
    return time.time_ns() // 1_000


def environment(folder: Path, url: str, **more: str) -> dict[str, str]:
    return {
        **{k: v for k, v in os.environ.items() if not k.startswith("LEADLINE_")},
        "LEADLINE_DATA_DIR": str(folder),
        "LEADLINE_PULL__SERVER_URL": url,
        "LEADLINE_PULL__TOKEN": TOKEN,
        "LEADLINE_PROBER__REGIONS": REGION,
        **more,
    }


@contextmanager
def process(folder: Path, url: str, **more: str) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, str(ENTRY)],
        env=environment(folder, url, **more),
        stdout=subprocess.PIPE,
        stderr=(folder.parent / "log").open("a"),
        text=True,
        cwd="/",
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def rss_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) / 1024


def due_now(place: str, kind: str = "tcp", url: bool = False) -> dict[str, object]:
    lease_until = wall_us() + 600 * SECOND
    where = f"http://{place}/" if url else place
    return job(wall_us(), kind=kind, target=where, is_window=False, lease_until=lease_until)


async def test_it_is_small_and_loads_no_database_or_server_modules(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    async with FakeServer(wall_us).listening() as server, target() as there:
        server.extra = [
            due_now(there),
            due_now(server.url.removeprefix("http://"), "http", url=True),
            due_now("localhost", "dns"),
            due_now(there, "tls"),
        ]
        with process(folder, server.url) as running:
            await until(lambda: len(server.results) >= 3)
            assert rss_mib(running.pid) < RSS_MIB_MOST
            running.send_signal(signal.SIGTERM)
            said, _ = await trio.to_thread.run_sync(running.communicate)
    assert running.returncode == 0, (tmp_path / "log").read_text()
    loaded = said.split("\n")
    assert "leadline.daemon.agent.agent_main" in loaded
    assert [m for m in loaded if m.startswith(NEVER_LOADED)] == []
    log = (tmp_path / "log").read_text()
    assert TOKEN not in log
    assert '"msg":"agent stopped"' in log


async def test_kill_9_while_the_server_is_away_loses_no_result(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    async with FakeServer(wall_us).listening() as server, target() as there:
        server.extra = [due_now(there) for _ in range(40)]
        server.fault = lambda route, _: (
            (503, {"error": "not_ready"}) if route in ("results", "backfill") else ...
        )
        with process(folder, server.url) as running:
            await until(lambda: in_ring(folder) >= 40)
            running.kill()
            running.wait()
        server.fault = None
        with process(folder, server.url) as running:
            await until(lambda: len(server.results) >= 40)
            running.terminate()
            running.wait()
    assert len({item["job_id"] for _, item in server.results}) == 40


@pytest.mark.parametrize("hours", [1, -1])
async def test_a_box_whose_date_is_an_hour_wrong_changes_no_instant(
    tmp_path: Path, hours: int
) -> None:
    """The server's date is the right one, and an hour from that of this box."""
    async with FakeServer(wall_us, shift=hours * 3_600 * SECOND).listening() as server:
        before = server.now()
        server.extra = [
            job(before, is_window=False, lease_until=before + 600 * SECOND) for _ in range(3)
        ]
        with process(tmp_path / "data", server.url):
            await until(lambda: len(server.results) >= 3)
        after = server.now()
    for _, item in server.results:
        assert before <= micros(msgspec.convert(item["ts"], datetime)) <= after


async def test_it_believes_the_authority_that_it_is_given_and_no_other(tmp_path: Path) -> None:
    authority, other = trustme.CA(), trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    for name, each in (("ours", authority), ("other", other)):
        each.cert_pem.write_to_path(str(tmp_path / name))
    async with FakeServer(wall_us).listening(context) as server:
        ours, debug = str(tmp_path / "ours"), {"LEADLINE_LOG__LEVEL": "debug"}
        with process(tmp_path / "data", server.url, LEADLINE_CA_FILE=ours):
            await until(lambda: len(server.heard) >= 1)
        heard = len(server.heard)
        other_file = str(tmp_path / "other")
        with process(tmp_path / "data", server.url, LEADLINE_CA_FILE=other_file, **debug):
            await until(lambda: "tls_error" in (tmp_path / "log").read_text())
        assert len(server.heard) == heard


async def test_it_is_ready_and_feeds_the_watchdog_without_a_server(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(str(tmp_path / "notify"))
        notified.setblocking(False)
        notices: list[str] = []

        def has_notified(*lines: str) -> bool:
            with suppress(BlockingIOError):
                notices.append(notified.recv(100).decode())
            return set(lines) <= set(notices)

        more = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "400000"}
        with process(tmp_path / "data", "http://127.0.0.1:1", **more) as running:
            await until(lambda: has_notified("READY=1", "WATCHDOG=1"))
            running.terminate()
            await until(lambda: has_notified("STOPPING=1"))
            running.wait()
    assert running.returncode == 0


def in_ring(folder: Path) -> int:
    """Counts the results in the files, because only the agent can open the database. A row can
    occur in two files."""
    found: set[bytes] = set()
    for path in folder.glob("ring.db*"):
        found.update(re.findall(rb'"job_id":"([0-9a-f-]{36})"', path.read_bytes()))
    return len(found)


def start_failure(tmp_path: Path, **more: str) -> tuple[int, str]:
    given = environment(tmp_path, "https://leadline.example", **more)
    done = subprocess.run(
        [LEADLINE, "run", "--role", "agent"],
        env={k: v for k, v in given.items() if v},
        capture_output=True,
        text=True,
        cwd="/",
        timeout=60,
    )
    return done.returncode, done.stderr


def test_all_configuration_errors_are_reported_together_by_key(tmp_path: Path) -> None:
    status, said = start_failure(
        tmp_path,
        LEADLINE_PULL__SERVER_URL="http://leadline.example",
        LEADLINE_PULL__TOKEN="",
        LEADLINE_PROBER__REGIONS="hut,core",
    )
    assert status == 2
    assert [line.split(": ")[1] for line in said.splitlines()] == [
        "pull.server_url",
        "pull.token",
        "prober.regions",
    ]


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"LEADLINE_PULL__SERVER_URL": ""}, "pull.server_url"),
        ({"LEADLINE_PULL__SERVER_URL": "ftp://leadline.example"}, "pull.server_url"),
        ({"LEADLINE_PULL__SERVER_URL": "https://a@leadline.example"}, "pull.server_url"),
        ({"LEADLINE_PULL__SERVER_URL": "https://leadline.example/?a=b"}, "pull.server_url"),
        ({"LEADLINE_PULL__SERVER_URL": "https://leadline.example/api/v1"}, "pull.server_url"),
        ({"LEADLINE_PULL__TOKEN": "a b"}, "pull.token"),
        ({"LEADLINE_CA_FILE": "/nowhere.pem"}, "LEADLINE_CA_FILE"),
    ],
)
def test_a_configuration_error_is_reported_by_its_key(
    tmp_path: Path, more: dict[str, str], key: str
) -> None:
    status, said = start_failure(tmp_path, **more)
    assert status == 2
    assert said.startswith(f"leadline: {key}: ")
    assert "a b" not in said


def test_a_second_agent_in_one_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with process(folder, "http://127.0.0.1:1"):
        deadline = time.monotonic() + 60
        while "ring buffer opened" not in (tmp_path / "log").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        status, said = start_failure(folder)
    assert status == 1
    assert "in use by another agent" in said
