"""An agent and the daemon as separate processes: the windows of the agent are in the ledger, a
secret reaches the target, a kill of the server loses no window, and a revoked token ends the
agent's access."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.agents.job_samples import REGION
from tests.agents.test_whole_process import process
from tests.support.processes.daemon_process import Daemon, daemon
from tests.support.processes.ports import refusing_port

PATIENCE_SECONDS = 90.0
PASSWORD = "tr0ub4dor"


@contextmanager
def asking_for_a_password() -> Iterator[tuple[str, list[str]]]:
    """A web server that requires a password, and the credentials that it received."""
    shown: list[str] = []

    class Shown(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            shown.append(self.headers.get("authorization", ""))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Shown) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", shown
        server.shutdown()


def eventually(holds: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = holds()
        if found:
            return found
        assert time.monotonic() < deadline
        time.sleep(0.1)


def make(api: Daemon, project: str, **given: Any) -> str:
    body = {"interval_seconds": 5, "timeout_seconds": 3, "region": REGION, **given}
    made: str = api.api("POST", f"/projects/{project}/monitors", body)["id"]
    return made


def verdicts(api: Daemon, project: str, monitor: str) -> list[tuple[str, str]]:
    """Oldest first."""
    found = api.api("GET", f"/projects/{project}/monitors/{monitor}/expected-runs?limit=200")
    return [(run["due_at"], run["verdict"]) for run in reversed(found["items"])]


def covered(api: Daemon, project: str, monitor: str) -> int:
    return sum(v.startswith("covered") for _, v in verdicts(api, project, monitor))


def test_windows_of_an_agent_are_in_the_ledger_through_a_cut_until_revocation(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    regions = f'[{{name = "{REGION}"}}]'
    with daemon(LEADLINE_PULL__REGIONS=regions) as api, asking_for_a_password() as (url, shown):
        api.start()
        api.sign_in()
        organization = api.api("GET", "/organizations")[0]["id"]
        project = api.api("GET", f"/organizations/{organization}/projects")[0]["id"]
        token = api.api("POST", "/agent-tokens", {"name": "hut 1", "region": REGION})
        with refusing_port() as closed:
            nobody = f"127.0.0.1:{closed}"
            up = make(
                api,
                project,
                name="Shop",
                type="http",
                target=url,
                config={"auth_mode": "basic", "username": "ada", "password": PASSWORD},
            )
            down = make(api, project, name="Port", type="tcp", target=nobody)
            with process(
                tmp_path / "data", api.url, LEADLINE_PULL__TOKEN=token["token"]
            ) as running:
                eventually(lambda: covered(api, project, up) and covered(api, project, down))
                assert shown[-1].startswith("Basic ")
                beats = api.api("GET", f"/monitors/{down}/heartbeats?limit=5")
                assert {(b["up"], b["msg"]) for b in beats} == {
                    (False, "connect_refused 127.0.0.1")
                }
                api.kill()
                before = len(shown)
                # The agent continues with at least two windows more than it was given.
                eventually(lambda: len(shown) >= before + 4)
                api.start()
                eventually(lambda: '"is":"connected"' in log.read_text().partition("cut_off")[2])
                # Every window of the cut that was run alone is covered, late or not.
                made = len(shown)
                eventually(lambda: covered(api, project, up) >= made - 1)
                api.api("DELETE", f"/agent-tokens/{token['id']}")
                eventually(lambda: "server refused the agent" in log.read_text())
                running.send_signal(signal.SIGTERM)
                running.wait(60)
    assert PASSWORD not in log.read_text()
    assert token["token"] not in log.read_text()
    for file in (tmp_path / "data").iterdir():
        assert PASSWORD.encode() not in file.read_bytes()
    assert running.returncode == 0
