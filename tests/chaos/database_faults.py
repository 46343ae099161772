"""Faults of the cluster of PostgreSQL. Each ends when a replica follows the primary again."""

import subprocess

from .faults import Fault, Scene
from .patroni_cluster import PORT, Node
from .process_faults import fill

# What a throttled replica receives, kbit/s.
REPLICA_KILOBITS = 200


def _leader(scene: Scene) -> Node:
    leader = scene.cluster.wait_for_leader()
    scene.kept["node"] = leader
    return leader


def _node(scene: Scene) -> Node:
    node = scene.kept["node"]
    assert isinstance(node, Node)
    return node


def _replica(scene: Scene) -> Node:
    replica = scene.cluster.other(scene.cluster.wait_for_leader())
    scene.kept["node"] = replica
    return replica


def _settle(scene: Scene) -> None:
    scene.cluster.wait_for_replica()


def _switch_over(scene: Scene) -> str:
    name = _leader(scene).name
    scene.cluster.switch_over()
    return f"from {name}"


def _kill(scene: Scene) -> str:
    leader = _leader(scene)
    leader.kill()
    scene.cluster.wait_for_leader(besides=leader)
    return leader.name


def _start(scene: Scene) -> None:
    _node(scene).start()
    _settle(scene)


def _freeze(scene: Scene) -> str:
    leader = _leader(scene)
    leader.freeze()
    scene.cluster.wait_for_leader(besides=leader)
    return leader.name


def _thaw(scene: Scene) -> None:
    _node(scene).thaw()
    _settle(scene)


def _kill_replica(scene: Scene) -> str:
    replica = _replica(scene)
    replica.kill()
    return replica.name


def _fill(scene: Scene) -> str:
    leader = _leader(scene)
    fill(leader.disk / "fill")
    return leader.name


def _empty(scene: Scene) -> None:
    (_node(scene).disk / "fill").unlink()
    _settle(scene)


def _query(node: Node, statement: str) -> None:
    subprocess.run(
        ["psql", "-X", "-q", "-h", node.address, "-p", str(PORT), "-U", "postgres"],
        input=statement,
        text=True,
        capture_output=True,
        timeout=20,
        check=False,
    )


def _pause_replay(scene: Scene) -> str:
    replica = _replica(scene)
    _query(replica, "select pg_wal_replay_pause()")
    return replica.name


def _resume_replay(scene: Scene) -> None:
    # A server that was promoted meanwhile refuses it.
    _query(_node(scene), "select pg_wal_replay_resume()")
    _settle(scene)


def _throttle(scene: Scene) -> str:
    replica = _replica(scene)
    replica.network.throttle(replica.name, REPLICA_KILOBITS)
    return replica.name


def _release(scene: Scene) -> None:
    node = _node(scene)
    node.network.release(node.name)
    _settle(scene)


def _cut_replication(scene: Scene) -> str:
    links = [("left", "right"), ("right", "left")]
    scene.installation.network.cut(links)
    scene.kept["links"] = links
    return "left - right"


def _cut_primary_from_etcd(scene: Scene) -> str:
    """Cuts the primary from etcd, so that it has to give up its place."""
    leader = _leader(scene)
    links = [(leader.name, "etcd"), ("etcd", leader.name)]
    scene.installation.network.cut(links)
    scene.kept["links"] = links
    scene.cluster.wait_for_leader(besides=leader)
    return leader.name


def _heal(scene: Scene) -> None:
    links = scene.kept["links"]
    assert isinstance(links, list)
    scene.installation.network.heal(links)
    _settle(scene)


DATABASE = (
    Fault("switchover", _switch_over, _settle, (0, 2)),
    Fault("kill of the primary", _kill, _start, (0, 10)),
    Fault("freeze of the primary", _freeze, _thaw, (0, 10)),
    Fault("kill of the replica", _kill_replica, _start, (0, 10)),
    Fault("disk of the primary", _fill, _empty, (3, 15)),
    Fault("replay paused", _pause_replay, _resume_replay, (3, 20)),
    Fault("replica throttled", _throttle, _release, (3, 20)),
    Fault("replication cut", _cut_replication, _heal, (3, 20)),
    Fault("primary cut from etcd", _cut_primary_from_etcd, _heal, (0, 5)),
)
