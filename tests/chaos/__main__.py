"""`python -m tests.chaos` injects random faults into an installation under load, and verifies it.

tests/README.md has the variables. The exit status is 1 if the verifier finds a violation. The
report is JSON on standard output.
"""

import json
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .bundle_load import Bundles
from .database_faults import DATABASE
from .faults import Injector, Lane
from .history import History, course, lost_pushes, verdicts, verify
from .installation import HOSTS, INTERVAL_SECONDS, Installation, installation
from .link_faults import LINKS
from .load import Load
from .network import network
from .patroni_cluster import HOSTS as CLUSTER_HOSTS
from .patroni_cluster import missing_programs, patroni_cluster
from .pooler import HOST as POOLER_HOST
from .pooler import pooler
from .process_faults import ROLLING, faults_of

JOBS = 4
# Windows are sealed 120 s after the end of their timeout; late results have arrived by then.
SEAL_SECONDS = 150.0


@dataclass(frozen=True)
class Options:
    """Of a run. Only a synchronous replica keeps every acknowledged write."""

    seed: int = 1
    minutes: float = 5.0
    faults: int = 100_000
    monitors: int = 60
    bundle: int = 2_000
    synchronous: bool = True
    pooled: bool = False


def log(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stderr.flush()


def lanes(found: Installation, bundles: Bundles) -> list[Lane]:
    return [
        Lane("database", DATABASE, (10, 30)),
        Lane("links", LINKS, (2, 10)),
        Lane("bundle", (bundles.fault(),), (20, 40)),
        Lane("all", ROLLING, (120, 240)),
        *(Lane(name, faults_of(found, name), (3, 15)) for name in found.processes),
    ]


def run(options: Options, folder: Path) -> dict[str, Any]:
    """Returns the report of a run."""
    with ExitStack() as stack:
        hosts = (*CLUSTER_HOSTS, *HOSTS, *((POOLER_HOST,) if options.pooled else ()))
        net = stack.enter_context(network(hosts))
        cluster = stack.enter_context(patroni_cluster(net, synchronous=options.synchronous))
        ways = stack.enter_context(pooler(net, cluster, folder)) if options.pooled else ()
        found = stack.enter_context(installation(net, cluster, folder, *ways))
        found.declare(options.monitors, JOBS)
        load, bundles = Load(found, options.seed), Bundles(options.bundle)
        load.announcements.subscribe()
        time.sleep(3 * INTERVAL_SECONDS)
        since = time.time()
        injector = Injector(
            cluster, found, lanes(found, bundles), options.seed, options.faults, log
        )
        load.start()
        injector.start()
        time.sleep(options.minutes * 60)
        injector.stop()
        until = time.time()
        log(f"{len(injector.injected)} faults injected; waiting until all windows are sealed")
        load.stop()
        time.sleep(SEAL_SECONDS)
        bundles.verify(found)
        history = History(found, load, injector.injected, since, until)
        return {
            **asdict(options),
            "minutes": round((until - since) / 60, 1),
            "injected": len(injector.injected),
            "by_fault": injector.counts(),
            "failed_faults": injector.failed,
            "exits": dict(injector.exits),
            "pushes": sum(len(texts) for texts in load.acknowledged.values()),
            "pushes_refused": len(load.refused),
            "examples_refused": load.refused[:10],
            "requests": dict(sorted(load.requests.items())),
            "bundles": {
                "applied": bundles.number,
                "unknown": len(bundles.unknown),
                "refused": bundles.refused,
                "verified": bundles.verified,
            },
            "lost_pushes": lost_pushes(history),
            "announcements": load.announcements.report(),
            "windows": verdicts(history),
            "course": course(history),
            "logs": str(folder),
            "violations": [
                *bundles.violations,
                *verify(history),
                *load.announcements.verify(since),
            ],
        }


def options_of(environment: dict[str, str]) -> Options:
    default = Options()
    return Options(
        seed=int(environment.get("SEED", default.seed)),
        minutes=float(environment.get("MINUTES", default.minutes)),
        faults=int(environment.get("FAULTS", default.faults)),
        monitors=int(environment.get("MONITORS", default.monitors)),
        bundle=int(environment.get("BUNDLE", default.bundle)),
        synchronous=environment.get("SYNCHRONOUS", "1") == "1",
        pooled=environment.get("POOLED", "0") == "1",
    )


def main() -> int:
    missing = missing_programs()
    if missing:
        sys.stderr.write(f"install: apt-get install {missing}\n")
        return 2
    folder = Path(tempfile.mkdtemp(prefix="leadline-chaos-"))
    report = run(options_of(dict(os.environ)), folder)
    sys.stdout.write(json.dumps(report, indent=2) + "\n")
    return 1 if report["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
