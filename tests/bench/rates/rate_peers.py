"""The same checks at the same rate by others: Prometheus with blackbox_exporter, and a bare loop.

Prometheus stores each result, and the bare loop none: its cost is that of the requests alone.
"""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from ...support.peers.real_servers import HOST, listens, open_folder, running
from ...support.processes.ports import free_port
from ..usage import process_seconds

# As for the daemon: from the second round on, connections and caches are there.
WARM_SECONDS: Final = 10.0
MODULES: Final = {"http": {"prober": "http", "timeout": "5s", "http": {"enable_http2": False}}}


def peers_at_rate(target: str, count: int, interval_seconds: int, seconds: float) -> dict[str, Any]:
    """Returns the CPU seconds for 1 000 checks of each peer, measured one after the other."""
    return {
        "prometheus_and_blackbox": _by_prometheus(target, count, interval_seconds, seconds),
        "bare_asyncio_loop": _by_bare_loop(target, count, interval_seconds, seconds),
    }


def _by_prometheus(target: str, count: int, interval_seconds: int, seconds: float) -> float:
    with open_folder() as folder, _exporter(folder) as (exporter, port):
        config = _config(target, count, interval_seconds, port)
        with _prometheus(folder, config) as (prometheus, query_port):
            time.sleep(interval_seconds + WARM_SECONDS)
            before, began = _spent(prometheus, exporter), time.time()
            time.sleep(seconds)
            spent, ended = _spent(prometheus, exporter) - before, time.time()
            # The newest samples of a block are visible at once.
            checked = _stored(query_port, ended, ended - began)
    assert checked > count / interval_seconds * seconds / 2, f"{checked} checks"
    return round(spent * 1000 / checked, 3)


def _spent(*processes: int) -> float:
    return sum(process_seconds(pid) for pid in processes)


@contextmanager
def _exporter(folder: Path) -> Iterator[tuple[int, int]]:
    # JSON is YAML.
    (folder / "modules.yml").write_text(json.dumps({"modules": MODULES}))
    port = free_port()
    command = [
        *("prometheus-blackbox-exporter", f"--config.file={folder}/modules.yml"),
        *("--log.level=error", f"--web.listen-address={HOST}:{port}"),
    ]
    with running(command, folder / "exporter.log", lambda: listens(port)) as process:
        yield process.pid, port


def _config(target: str, count: int, interval_seconds: int, port: int) -> dict[str, Any]:
    job = {
        "job_name": "rate",
        "metrics_path": "/probe",
        "params": {"module": ["http"]},
        "scrape_interval": f"{interval_seconds}s",
        "scrape_timeout": "10s",
        "static_configs": [{"targets": [f"{target}?monitor={n}" for n in range(count)]}],
        "relabel_configs": [
            {"source_labels": ["__address__"], "target_label": "__param_target"},
            {"source_labels": ["__param_target"], "target_label": "instance"},
            {"target_label": "__address__", "replacement": f"{HOST}:{port}"},
        ],
    }
    return {"scrape_configs": [job]}


@contextmanager
def _prometheus(folder: Path, config: dict[str, Any]) -> Iterator[tuple[int, int]]:
    (folder / "prometheus.yml").write_text(json.dumps(config))
    port = free_port()
    command = [
        *("prometheus", f"--config.file={folder}/prometheus.yml", "--log.level=error"),
        *(f"--storage.tsdb.path={folder}/data", f"--web.listen-address={HOST}:{port}"),
    ]
    with running(command, folder / "prometheus.log", lambda: listens(port)) as process:
        yield process.pid, port


def _stored(port: int, at: float, seconds: float) -> int:
    """Returns the number of successful checks that Prometheus stored in `seconds` before `at`."""
    query = quote(f"sum(sum_over_time(probe_success[{seconds * 1000:.0f}ms]))")
    url = f"http://{HOST}:{port}/api/v1/query?query={query}&time={at:.3f}"
    with urllib.request.urlopen(url, timeout=60) as answer:
        found = json.load(answer)["data"]["result"]
    return int(float(found[0]["value"][1])) if found else 0


def _by_bare_loop(target: str, count: int, interval_seconds: int, seconds: float) -> float:
    command = [sys.executable, "-m", f"{__package__}.bare_loop", target]
    command += [str(count), str(interval_seconds), str(WARM_SECONDS), str(seconds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)
