"""CPU time of a check of every kind, compared with other programs in alternating rounds.

Only the probing in this process is counted, without scheduling and storage. The printed ratio is
the median of the rounds, because other load on the machine varies."""

import statistics
import time
from pathlib import Path
from typing import Any

import trio

from leadline.daemon.runtime.gc_tuning import set_aside
from leadline.probes.check.check import Check, make_check
from leadline.probes.check.result import RunOutcome
from leadline.probes.net.egress import Egress, make_reach
from leadline.probes.net.egress_policy import probe_policy
from leadline.probes.runner import run

from ..probes.kinds.test_mysql import PASSWORD as MYSQL_PASSWORD
from ..probes.kinds.test_postgres import PASSWORD as POSTGRES_PASSWORD
from ..probes.kinds.test_rabbitmq import WATCHER
from ..support.peers.real_servers import HOST, open_folder
from .other_tools import Exporter, commands, exporter, plugin_cpu_ns
from .peers import NAME, Peers, peers

IN_FLIGHT = 20
ROUNDS = 7
RUNS = 200
PLUGIN_RUNS = 20
# An OpenSSH server forks for each of them.
FEWER_RUNS = {"ssh, host key": 40, "ssh, login and command": 40}


def now() -> int:
    return time.time_ns() // 1_000


def checks(peers: Peers) -> dict[str, Check]:
    """One check of every probed kind, by name."""
    plain, tls = f"http://{HOST}:{peers.plain}", f"https://{HOST}:{peers.tls}"
    body = ["[STATUS] == 200", "[BODY].status == UP"]
    wanted = {"kind": "status", "op": "eq", "value": 200}
    extract = {"var": "said", "from": "json", "path": "status"}
    steps = [{"url": f"{plain}/{n}", "assert": [wanted], "extract": [extract]} for n in range(3)]
    login = {"username": "root", "private_key_ref": "key", "host_key_sha256": peers.sshd.pin}
    resolver = f"{HOST}:{peers.answers['dns']}"
    doh = {"resolver": f"{tls}/dns-query", "transport": "doh"}
    tell = f"{HOST}:{peers.prometheus}"
    found: dict[str, tuple[str, str, dict[str, Any], list[str]]] = {
        "http": ("http", f"{plain}/", {}, []),
        "http, conditions": ("http", f"{plain}/", {}, body),
        "https": ("http", f"{tls}/", {}, []),
        "https, conditions": ("http", f"{tls}/", {}, body),
        "http/2": ("http", f"{tls}/", {"http_version": "2"}, []),
        "tcp": ("tcp", f"{HOST}:{peers.plain}", {}, []),
        "tls": ("tls", f"{HOST}:{peers.tls}", {}, []),
        "icmp": ("icmp", HOST, {"count": 1}, []),
        "dns, udp": ("dns", NAME, {"resolver": resolver}, []),
        "dns, https": ("dns", NAME, doh, []),
        "grpc": ("grpc", peers.health.plain, {}, []),
        "postgres": (
            "postgres",
            peers.postgres.target,
            {"username": "watcher", "password": POSTGRES_PASSWORD, "database": "shop"},
            [],
        ),
        "mysql": (
            "mysql",
            peers.maria.target,
            {"username": "watcher", "password": MYSQL_PASSWORD},
            [],
        ),
        "redis": ("redis", peers.redis.target, {}, []),
        "rabbitmq": ("rabbitmq", peers.rabbit.target("amqp"), dict(WATCHER), []),
        "promql": ("promql", f"http://{tell}", {"query": "vector(1)"}, ["[RESULT] == 1"]),
        "websocket": (
            "websocket",
            f"ws://{HOST}:{peers.answers['websocket']}/",
            {"send": "PING"},
            ["[RESULT] == PING"],
        ),
        "ssh, version": ("ssh", peers.sshd.target, {}, []),
        "ssh, host key": ("ssh", peers.sshd.target, {"host_key_sha256": peers.sshd.pin}, []),
        "ssh, login and command": ("ssh", peers.sshd.target, {**login, "command": "true"}, []),
        "synthetic, 3 steps": ("synthetic", "", {"scenario": {"steps": steps}}, []),
    }
    return {
        name: make_check(
            kind, target, None, config, conditions, secrets={"private_key": peers.sshd.key}
        )
        for name, (kind, target, config, conditions) in found.items()
    }


async def many(check: Check, reach: Egress, times: int) -> None:
    """Performs `times` runs, at most `IN_FLIGHT` concurrently, and asserts that each is up."""
    left = times

    async def work() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            result = await run(check, reach, now)
            assert result.outcome is RunOutcome.UP, result

    async with trio.open_nursery() as nursery:
        for _ in range(min(IN_FLIGHT, times)):
            nursery.start_soon(work)


async def _ours(name: str, check: Check, reach: Egress) -> float:
    runs = FEWER_RUNS.get(name, RUNS)
    before = time.process_time_ns()
    await many(check, reach, runs)
    return (time.process_time_ns() - before) / runs / 1e6


async def _theirs(name: str, other: Exporter) -> float:
    before = other.cpu_ns()
    await other.probe(name, RUNS)
    return (other.cpu_ns() - before) / RUNS / 1e6


async def _measure(peers: Peers, other: Exporter) -> dict[str, Any]:
    plugins = commands(peers)
    reach = make_reach(probe_policy(), authorities=peers.authority)
    spent: dict[str, list[dict[str, float]]] = {}
    async with trio.open_nursery() as nursery:
        await nursery.start(reach.lag.watch)
        to_do = checks(peers)
        for name, check in to_do.items():
            await many(check, reach, 5)
            if name in other.probes:
                await other.probe(name, 50)
        set_aside()
        for _ in range(ROUNDS):
            for name, check in to_do.items():
                found = {"ours": await _ours(name, check, reach)}
                if name in other.probes:
                    found["exporter"] = await _theirs(name, other)
                if name in plugins:
                    took = plugin_cpu_ns(plugins[name], PLUGIN_RUNS)
                    found["plugin"] = took / PLUGIN_RUNS / 1e6
                spent.setdefault(name, []).append(found)
        nursery.cancel_scope.cancel()
    return {name: _figures(rounds) for name, rounds in spent.items()}


def _figures(rounds: list[dict[str, float]]) -> dict[str, float]:
    """CPU ms per check, which equals s per thousand checks, and our share of the others' time."""
    told = {}
    for who in rounds[0]:
        told[who] = round(statistics.median(one[who] for one in rounds), 3)
        if who != "ours":
            ratio = statistics.median(one["ours"] / one[who] for one in rounds)
            told[f"of {who}"] = round(ratio, 2)
    return told


def kinds() -> dict[str, Any]:
    with peers() as found, open_folder() as folder, exporter(found, Path(folder)) as other:
        return trio.run(_measure, found, other)
