"""Operation of a daemon: valid metrics, a stop that keeps accepted data, and clear errors at the
start.
"""

import os
import subprocess
import urllib.error
from contextlib import suppress

import psycopg
import pytest

from tests.support.processes.daemon_process import LEADLINE, READY_SECONDS, Daemon, Refusal, daemon

from .conftest import Nginx, Stream, eventually, project_of, status


def monitor(leadline: Daemon, **given: object) -> dict[str, str]:
    body = {"name": "Shop", "type": "http", "interval_seconds": 5, "timeout_seconds": 2, **given}
    made: dict[str, str] = leadline.api("POST", f"/projects/{project_of(leadline)}/monitors", body)
    return made


@pytest.mark.needs("promtool", "nginx")
def test_the_metrics_are_valid_for_prometheus(shared: Daemon, nginx: Nginx) -> None:
    leadline = shared
    made = monitor(leadline, target=nginx.url)
    eventually(lambda: status(leadline, made["id"]) == "up", 8)
    _, headers, text = leadline.raw("GET", "/metrics")
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, check=False
    )
    assert (done.stdout + done.stderr).decode() == ""
    assert done.returncode == 0
    names = {line.split("{")[0].split(" ")[0] for line in text.decode().splitlines()}
    assert all(name.startswith(("leadline_", "#")) for name in names)
    assert made["id"] not in text.decode(), "metrics contain no monitor name"
    assert "127.0.0.1" not in text.decode(), "metrics contain no target"


@pytest.mark.needs("promtool", "nginx")
@pytest.mark.soak
def test_metrics_of_monitors_are_valid_and_only_on_request(nginx: Nginx) -> None:
    with daemon(LEADLINE_METRICS__MONITORS="10") as leadline:
        leadline.start()
        leadline.sign_in()
        made = monitor(leadline, target=nginx.url)
        line = 'leadline_monitor_up{monitor="shop",organization="default",project="default"} 1.0'
        eventually(lambda: line in leadline.raw("GET", "/metrics")[2].decode(), 40)
        text = leadline.raw("GET", "/metrics")[2]
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True)
        assert (done.stdout + done.stderr).decode() == ""
        assert nginx.url not in text.decode(), "metrics contain no target"
        assert made["id"] not in text.decode()


@pytest.mark.needs("nginx")
def test_a_stop_ends_streams_and_stores_running_results(leadline: Daemon, nginx: Nginx) -> None:
    made = monitor(leadline, target=nginx.url)
    eventually(lambda: status(leadline, made["id"]) == "up", 8)
    stream = Stream(leadline)
    stream.await_open()
    before = leadline.api("GET", f"/monitors/{made['id']}/heartbeats")
    leadline.stop()
    assert stream.process.wait(30) is not None, "the daemon ended the stream"
    assert leadline.process is not None
    assert leadline.process.returncode == 0
    leadline.start()
    after = leadline.api("GET", f"/monitors/{made['id']}/heartbeats")
    assert all(beat in after for beat in before)
    with psycopg.connect(leadline.dsn) as connection:
        clean = connection.execute("select count(*) from presences where ended").fetchone()
    assert clean == (1,)


def test_a_second_daemon_on_the_same_data_directory_is_refused(shared: Daemon) -> None:
    environment = {**shared.environment, "LEADLINE_SERVER__LISTEN": "127.0.0.1:0"}
    done = subprocess.run(
        [LEADLINE, "run"], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert "another leadline is running" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("role", "key"), [("all", "server.listen"), ("worker", "server.ops_listen")]
)
def test_a_used_address_is_reported_in_one_line_with_its_key(
    shared: Daemon, role: str, key: str
) -> None:
    address = shared.url.removeprefix("http://")
    environment = {
        **shared.environment,
        "LEADLINE_DATABASE__DSN": shared.dsn,
        f"LEADLINE_{key.replace('.', '__').upper()}": address,
    }
    done = subprocess.run(
        [LEADLINE, "run", "--role", role],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr == f"leadline: {key}: cannot listen on {address}: Address already in use\n"


def test_the_log_has_route_templates_and_no_token(shared: Daemon) -> None:
    leadline = shared
    made = monitor(leadline, name="Job", type="push")
    leadline.raw("POST", made["push_url"].removeprefix(leadline.url) + "?msg=hunter2")
    with pytest.raises(Refusal):
        leadline.raw("GET", "/status/nothing?token=hunter2")
    log = leadline.log.read_text()
    assert "/api/v1/public/push/{token}" in log
    assert made["push_token"] not in log
    assert "hunter2" not in log
    assert leadline.password in log, "the first start prints the password once, on the terminal"


def test_an_empty_environment_is_enough_to_start() -> None:
    """Without HOME and locale, and with the default PATH."""
    with daemon() as leadline:
        keep = {k: v for k, v in leadline.environment.items() if k.startswith("LEADLINE_")}
        leadline.environment = {**keep, "PATH": os.defpath}
        # The real command: other tests fork the daemon from a process with the imports.
        leadline.begin("all", LEADLINE)
        eventually(lambda: answers(leadline, "/readyz"), READY_SECONDS)
        assert leadline.raw("GET", "/healthz")[0] == 200


def answers(leadline: Daemon, path: str) -> bool:
    """Returns whether a path answers 200; fails if the process has ended."""
    assert leadline.process is not None
    assert leadline.process.poll() is None, leadline.log.read_text()[-4_000:]
    with suppress(Refusal, urllib.error.URLError):
        return leadline.raw("GET", path)[0] == 200
    return False
