"""Checks continue after each kind of failover, without a restart of a process.

The time from the promotion to the first results of all monitors is printed, and not asserted.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .__main__ import Options, run
from .installation import HOSTS, INTERVAL_SECONDS, Installation, installation, stored_since
from .network import network
from .patroni_cluster import HOSTS as CLUSTER_HOSTS
from .patroni_cluster import Cluster, Node, patroni_cluster, wait

pytestmark = [
    pytest.mark.soak,
    pytest.mark.needs("patroni"),
    pytest.mark.needs("etcd"),
    pytest.mark.needs("pg_createcluster"),
    pytest.mark.needs("haproxy"),
    pytest.mark.needs("pgbouncer"),
    pytest.mark.needs("faketime"),
    pytest.mark.needs("ip"),
    pytest.mark.needs("root"),
]
MONITORS = 20
RESUME_SECONDS = 120.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with network((*CLUSTER_HOSTS, *HOSTS)) as net, patroni_cluster(net) as found:
        yield found


@pytest.fixture(scope="module")
def found(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("chaos")
    with installation(cluster.nodes[0].network, cluster, folder) as running:
        running.declare(MONITORS, 0)
        time.sleep(2 * INTERVAL_SECONDS)
        yield running


@pytest.mark.parametrize("kind", ["switchover", "kill", "freeze"])
def test_checks_are_on_rate_after_a_failover(
    cluster: Cluster, found: Installation, kind: str
) -> None:
    before = cluster.wait_for_leader()
    failed_at = time.time()
    promoted = _fail_over(cluster, before, kind)
    promoted_at = time.time()
    since = promoted_at

    def resumed() -> bool:
        try:
            return stored_since(found, since) == MONITORS
        except OSError:
            return False

    wait(resumed, RESUME_SECONDS, "result of every monitor")
    sys.stdout.write(
        f"{kind}: {promoted.name} promoted after {promoted_at - failed_at:.1f} s,"
        f" every monitor has a result {time.time() - promoted_at:.1f} s later\n"
    )
    if kind == "kill":
        before.start()
    before.thaw()
    cluster.wait_for_replica()
    assert all(process.process.poll() is None for process in found.processes.values())  # type: ignore[union-attr]


def _fail_over(cluster: Cluster, before: Node, kind: str) -> Node:
    if kind == "switchover":
        cluster.switch_over()
    elif kind == "kill":
        before.kill()
    else:
        before.freeze()
    return cluster.wait_for_leader(besides=before)


def test_random_faults_leave_a_correct_history(tmp_path: Path) -> None:
    report = run(Options(seed=1, minutes=2.0, monitors=30), tmp_path)
    assert report["injected"] > 30
    assert report["violations"] == []
