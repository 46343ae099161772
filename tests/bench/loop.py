"""The time for which the event loop is blocked, by kind, with normal and hostile peers, and with
all kinds together.

A step is the work of a task until it yields. Its CPU time is counted, so other load on the machine
does not count. A task that sleeps for a millisecond at a time measures the total lag of the loop.
"""

import os
import time
from contextvars import ContextVar
from typing import Any

import trio

from leadline.daemon.runtime.gc_tuning import set_aside
from leadline.probes.check.check import Check, make_check
from leadline.probes.net.egress import Egress, make_reach
from leadline.probes.net.egress_policy import probe_policy
from leadline.probes.runner import run

from ..probes.kinds.test_mysql import PASSWORD as MYSQL_PASSWORD
from ..probes.kinds.test_postgres import PASSWORD as POSTGRES_PASSWORD
from ..support.peers.real_servers import HOST
from .kinds import checks, now
from .peers import Peers, peers

WARM_SECONDS = 3.0
SECONDS = 15.0
AT_ONCE = 2
# The slowest to search of those that are allowed, and a common one.
SLOW = r"(((a?){10}){10}){3}b$"
KIND: ContextVar[str] = ContextVar("KIND", default="(none)")


class Steps(trio.abc.Instrument):
    """The longest step of each kind and how many there were, by the CPU clock of this thread."""

    def __init__(self) -> None:
        self._began_ns = 0
        self.found: dict[str, list[int]] = {}

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._began_ns = time.thread_time_ns()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if not self._began_ns:
            # The step in which we were put in place.
            return
        took_ns = time.thread_time_ns() - self._began_ns
        kind = task.context.get(KIND, "(none)")
        self.found.setdefault(kind, []).append(took_ns)


def hostile(peers: Peers) -> dict[str, Check]:
    """One check per hostile peer, which is judged as far as possible. The result has no meaning
    here."""
    found: dict[str, tuple[str, str, dict[str, Any], list[str]]] = {}
    many = [f"[BODY].many[{n}] exists" for n in range(10)]
    conditions = {
        "lists": [*many, "[BODY].last == 1", "[BODY].many contains 7"],
        "numbers": [*many, "[BODY].last == 1", "[BODY].many contains 7"],
        "objects": [*many, "[BODY].last == 1", "[BODY].many contains 7"],
        "text": [f"[BODY] matches {SLOW}", "[BODY] matches ^(a|b)*c", "[BODY] contains b"],
        "bomb": ["[BODY] contains x"],
        "undefined": ["[BODY] contains x", "[BODY] > 5"],
        "chunks": ["[BODY] contains y"],
        "head": ["[HEADER].a exists"],
    }
    for name, read in conditions.items():
        url = f"http://{HOST}:{peers.answers[name]}/"
        found[f"http, {name}"] = ("http", url, {}, read)
    url = f"https://{HOST}:{peers.answers['chain']}/"
    found["https, chain of 31"] = ("http", url, {}, ["[CERT_EXPIRY] > 1h"])
    cookies = {"steps": [{"url": f"http://{HOST}:{peers.answers['cookies']}/"}] * 4}
    found["synthetic, cookies"] = ("synthetic", "", {"scenario": cookies}, [])
    for name in ("samples", "too many samples"):
        url = f"http://{HOST}:{peers.answers[name]}"
        found[f"promql, {name}"] = ("promql", url, {"query": "up"}, ["[RESULT] == 1"])
    text = f"{HOST}:{peers.answers['text']}"
    found["tcp, text"] = ("tcp", text, {"send": "x"}, [f"[BODY] matches {SLOW}"])
    found["ssh, long line"] = ("ssh", f"{HOST}:{peers.answers['long line']}", {}, [])
    resolver = f"{HOST}:{peers.answers['dns']}"
    for transport in ("udp", "tcp"):
        asked = {"resolver": resolver, "transport": transport}
        found[f"dns, 3 900 records by {transport}"] = (
            *("dns", "many.test", asked),
            ["[RESULT] contains 10.0.7.9"],
        )
    postgres = {"username": "watcher", "password": POSTGRES_PASSWORD, "database": "shop"}
    mysql = {"username": "watcher", "password": MYSQL_PASSWORD}
    row = ["[RESULT] matches ^(x|y)*z"]
    query = {"query": "SELECT repeat('x', 200000)"}
    found["postgres, large row"] = ("postgres", peers.postgres.target, {**postgres, **query}, row)
    query = {"query": "SELECT " + ", ".join(["1"] * 1_000)}
    found["postgres, 1 000 columns"] = (
        "postgres",
        peers.postgres.target,
        {**postgres, **query},
        [],
    )
    query = {"query": "SELECT repeat('x', 200000)"}
    found["mysql, large row"] = ("mysql", peers.maria.target, {**mysql, **query}, row)
    return {
        name: make_check(kind, target, None, config, conditions)
        for name, (kind, target, config, conditions) in found.items()
    }


async def _again(name: str, check: Check, reach: Egress, ends: dict[str, str]) -> None:
    KIND.set(name)
    while True:
        result = await run(check, reach, now)
        ends[name] = result.msg.partition(" ")[0] or result.outcome.value
        assert result.unknown_reason is None, (name, result)


async def _late(worst: list[float]) -> None:
    KIND.set("(sleeper)")
    while True:
        began = time.perf_counter()
        await trio.sleep(0.001)
        worst.append((time.perf_counter() - began - 0.001) * 1_000)


async def _together(reach: Egress, to_do: dict[str, Check]) -> dict[str, Any]:
    steps, late, ends = Steps(), list[float](), dict[str, str]()
    async with trio.open_nursery() as watching:
        await watching.start(reach.lag.watch)
        async with trio.open_nursery() as nursery:
            for _ in range(AT_ONCE):
                for name, check in to_do.items():
                    nursery.start_soon(_again, name, check, reach, ends)
            # The first of each kind loads what it needs, and makes its contexts.
            await trio.sleep(WARM_SECONDS)
            trio.lowlevel.add_instrument(steps)
            nursery.start_soon(_late, late)
            await trio.sleep(SECONDS)
            trio.lowlevel.remove_instrument(steps)
            nursery.cancel_scope.cancel()
        watching.cancel_scope.cancel()
    late.sort()
    told = {
        name: {
            "longest_ms": round(max(found) / 1e6, 2),
            "p99.9_ms": round(sorted(found)[int(len(found) * 0.999)] / 1e6, 2),
            "steps": len(found),
            "end": ends.get(name, ""),
        }
        for name, found in sorted(steps.found.items(), key=lambda item: -max(item[1]))
    }
    picked = [late[int(len(late) * part)] for part in (0.5, 0.99, 0.999)]
    return {
        "load": os.getloadavg()[0],
        "loop late, ms, p50 p99 p99.9 max": [round(ms, 2) for ms in (*picked, late[-1])],
        "steps": told,
    }


def loop() -> dict[str, Any]:
    with peers() as found:
        reach = make_reach(probe_policy(), authorities=found.authority)
        reach.contexts.warm_up()
        set_aside()
        return {
            "good": trio.run(_together, reach, checks(found)),
            "hostile": trio.run(_together, reach, hostile(found)),
        }
