"""`python -m tests.chaos` injects random faults into an installation under load, and verifies it.

Variables: SEED (default 1), MINUTES (default 5), FAULTS (at most so many), MONITORS (default 60),
SYNCHRONOUS (default 1; with 0 a failover can lose acknowledged writes, which the report counts).
The exit status is 1 if the verifier finds a violation. The report is JSON on standard output.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .faults import Injector
from .installation import INTERVAL_SECONDS, TIMEOUT_SECONDS, Installation, installation
from .load import Load
from .patroni_cluster import missing_programs, patroni_cluster
from .verifier import (
    Expectation,
    instant,
    read_log,
    verify_pushes,
    verify_results,
    verify_windows,
    windows_of,
)

JOBS = 4
# Windows are sealed 120 s after the end of their timeout; late results have arrived by then.
SEAL_SECONDS = 150.0


def log(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stderr.flush()


def run(
    seed: int, minutes: float, faults: int, monitors: int, folder: Path, *, synchronous: bool
) -> dict[str, Any]:
    """Returns the report of a run. Only a synchronous replica keeps every acknowledged write."""
    with (
        patroni_cluster(synchronous=synchronous) as cluster,
        installation(cluster.dsn, folder) as found,
    ):
        found.declare(monitors, JOBS)
        time.sleep(3 * INTERVAL_SECONDS)
        since = time.time()
        load = Load(found, seed)
        injector = Injector(cluster, found, seed, faults, log)
        load.start()
        injector.start()
        time.sleep(minutes * 60)
        injector.stop()
        until = time.time()
        log(f"{len(injector.injected)} faults injected; waiting until all windows are sealed")
        load.stop()
        time.sleep(SEAL_SECONDS)
        violations = verify(found, load, since, until)
        missed = count_missed(found, since, until)
        course = course_of(found, since)
    return {
        "seed": seed,
        "minutes": round((until - since) / 60, 1),
        "faults": len(injector.injected),
        "faults_that_failed": injector.failed,
        "pushes": sum(len(texts) for texts in load.acknowledged.values()),
        "pushes_refused": len(load.refused),
        "examples_refused": load.refused[:10],
        "windows": missed,
        "course": course,
        "logs": str(folder),
        "violations": violations,
    }


def verify(found: Installation, load: Load, since: float, until: float) -> list[str]:
    answers = read_log(found.target.log)

    def read(path: str) -> Any:
        return found.api("GET", path)

    violations: list[str] = []
    for number, identifier in found.monitors.items():
        of = Expectation(
            f"m{number}", identifier, INTERVAL_SECONDS, TIMEOUT_SECONDS, answers.get(number, [])
        )
        path = f"/projects/{found.project}/monitors/{identifier}"
        windows = windows_of(read, path, since, until)
        violations += verify_windows(of, windows, since, until)
        violations += verify_results(of, windows, beats_of(read, identifier, since - 1, until))
    for number, identifier in found.jobs.items():
        beats = beats_of(read, identifier, since - 1, until + 120)
        violations += verify_pushes(f"j{number}", load.acknowledged[number], beats, until)
    return violations


def beats_of(read: Any, identifier: str, since: float, until: float) -> list[dict[str, Any]]:
    """Returns the results of a span; at most the newest 1 000."""
    beats = read(f"/monitors/{identifier}/heartbeats?limit=1000")
    return [beat for beat in beats if since <= instant(beat["ts"]) <= until]


def count_missed(found: Installation, since: float, until: float) -> dict[str, int]:
    counts: dict[str, int] = {}
    for identifier in found.monitors.values():
        path = f"/projects/{found.project}/monitors/{identifier}"
        for window in windows_of(lambda at: found.api("GET", at), path, since, until):
            key = f"{window['verdict']} {window.get('reason') or ''}".strip()
            counts[key] = counts.get(key, 0) + 1
    return counts


def course_of(found: Installation, since: float) -> dict[str, str]:
    """Returns how many results and pushes were stored in each 10 s."""
    counts: dict[int, list[int]] = {}
    for part, identifiers in enumerate((found.monitors, found.jobs)):
        for identifier in identifiers.values():
            for beat in found.api("GET", f"/monitors/{identifier}/heartbeats?limit=1000"):
                at = int((instant(beat["ts"]) - since) // 10)
                counts.setdefault(at, [0, 0])[part] += 1
    return {
        time.strftime("%H:%M:%S", time.localtime(since + 10 * at)): "{} {}".format(*counts[at])
        for at in sorted(counts)
        if at >= 0
    }


def main() -> int:
    missing = missing_programs()
    if missing:
        sys.stderr.write(f"install: apt-get install {missing}\n")
        return 2
    environment = os.environ
    folder = Path(tempfile.mkdtemp(prefix="leadline-chaos-"))
    report = run(
        int(environment.get("SEED", "1")),
        float(environment.get("MINUTES", "5")),
        int(environment.get("FAULTS", "100000")),
        int(environment.get("MONITORS", "60")),
        folder,
        synchronous=environment.get("SYNCHRONOUS", "1") == "1",
    )
    sys.stdout.write(json.dumps(report, indent=2) + "\n")
    return 1 if report["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
