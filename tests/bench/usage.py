"""The CPU time and memory of a daemon and of every PostgreSQL process under it, from /proc."""

import os
import re
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

from ..support.processes.daemon_process import Daemon

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(running: Daemon) -> dict[str, float]:
    """CPU of the daemon and of its PostgreSQL, children that ended included."""
    spent = {"daemon": 0.0, "postgres": 0.0}
    for pid, name in _tree(_root(running)):
        fields = _read(pid, "stat").rpartition(")")[2].split() or ["0"] * 15
        ticks = sum(int(fields[n]) for n in (11, 12))
        if name == "postgres":
            ticks += sum(int(fields[n]) for n in (13, 14))
        spent["postgres" if name == "postgres" else "daemon"] += ticks / TICKS
    return spent


def process_seconds(pid: int) -> float:
    """CPU of one process and of its children that ended."""
    fields = _read(pid, "stat").rpartition(")")[2].split() or ["0"] * 15
    return sum(int(fields[n]) for n in (11, 12, 13, 14)) / TICKS


def per_thousand(before: dict[str, float], after: dict[str, float], count: int) -> dict[str, float]:
    """CPU seconds for each thousand of something, by whose they are and in all."""
    spent = {who: after[who] - before[who] for who in after}
    spent["all"] = sum(spent.values())
    return {who: round(seconds * 1000 / max(count, 1), 3) for who, seconds in spent.items()}


def transactions(running: Daemon) -> Counter[str]:
    """Transactions of the daemon so far, by name, from its metrics."""
    with urllib.request.urlopen(f"{running.url}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    found: Counter[str] = Counter()
    line = r'^leadline_transactions_total\{name="([^"]*)",[^}]*\} (\S+)$'
    for name, count in re.findall(line, text, re.M):
        found[name] += int(float(count))
    return found


def memory_mib(running: Daemon) -> dict[str, Any]:
    """Proportional and resident set, in MiB; shared pages are counted once in the former."""
    pss = {"daemon": 0.0, "postgres": 0.0}
    rss = dict(pss)
    for pid, name in _tree(_root(running)):
        who = "postgres" if name == "postgres" else "daemon"
        for line in _read(pid, "smaps_rollup").splitlines():
            for word, found in (("Pss:", pss), ("Rss:", rss)):
                if line.startswith(word):
                    found[who] += int(line.split()[1]) / 1024
    return {
        "pss_mib": {who: round(mib, 1) for who, mib in pss.items()},
        "rss_mib_daemon": round(rss["daemon"], 1),
    }


def _read(pid: int, name: str) -> str:
    """Empty for a process that has just ended: the server's workers come and go."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""


def _root(running: Daemon) -> int:
    assert running.process is not None
    return running.process.pid


def _tree(root: int) -> list[tuple[int, str]]:
    parents: dict[int, tuple[int, str]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                head, _, tail = (entry / "stat").read_text().rpartition(")")
            except OSError:
                continue
            parents[int(entry.name)] = (int(tail.split()[1]), head.partition("(")[2])
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        if pid in parents:
            found.append((pid, parents[pid][1]))
        waiting += [child for child, (parent, _) in parents.items() if parent == pid]
    return found
