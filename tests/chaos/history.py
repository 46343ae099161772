"""The history of a run as its clients saw it, and its verification.

It reads the API, the logs of the target, and what the load has done.
"""

import json
import time
from dataclasses import dataclass
from typing import Any

from .faults import Injection
from .installation import INTERVAL_SECONDS, JOB_TIMING, TIMEOUT_SECONDS, Installation
from .link_faults import PROBING
from .load import Load
from .verifier import (
    Expectation,
    Hook,
    instant,
    read_log,
    verify_gate,
    verify_hooks,
    verify_outages,
    verify_pushes,
    verify_results,
    verify_silence,
    verify_windows,
    windows_of,
)

FREEZES = ("freeze", "long freeze")
# A late result of a job can be stored after the end.
LATE_SECONDS = 120.0
# A receiver that failed is tried again after at most so long.
DELIVERED_SECONDS = 300.0


@dataclass(frozen=True)
class History:
    found: Installation
    load: Load
    injected: list[Injection]
    since: float
    until: float


def read_api(history: History, path: str) -> Any:
    return history.found.api("GET", path)


def verify(history: History) -> list[str]:
    found = history.found
    answers = read_log(found.folder / "target.log")
    unreachable = [(one.began_at, one.ended_at) for one in history.injected if one.fault == PROBING]
    healed = [one.ended_at for one in history.injected if one.fault == "host isolated"]
    freezes = [
        (one.began_at, one.ended_at)
        for one in history.injected
        if one.fault in FREEZES and one.lane.startswith(("worker", "agent"))
    ]
    violations: list[str] = []
    beats_by_monitor = {}
    for number, identifier in found.monitors.items():
        of = Expectation(
            f"m{number}",
            identifier,
            INTERVAL_SECONDS,
            TIMEOUT_SECONDS,
            answers.get(number, []),
            unreachable,
            healed,
            freezes,
        )
        windows = _windows(history, identifier)
        # The run of the last window can begin after the end.
        beats = _beats(history, identifier, history.until + 2 * INTERVAL_SECONDS)
        beats_by_monitor[identifier] = _beats(history, identifier, float("inf"))
        violations += verify_windows(of, windows, history.since, history.until)
        violations += verify_results(of, windows, beats)
    for number, identifier in found.jobs.items():
        beats = _beats(history, identifier, history.until + LATE_SECONDS)
        sent = history.load.acknowledged[number]
        violations += verify_pushes(f"j{number}", sent, beats, history.until)
        violations += verify_silence(f"j{number}", sent, beats, sum(JOB_TIMING.values()))
    incidents = read_api(history, f"/projects/{found.project}/incidents?limit=500")
    violations += verify_outages(incidents, beats_by_monitor, history.since)
    seen: dict[str, float] = {}
    for hook in hooks_of(history):
        seen.setdefault(hook.incident, hook.at)
    violations += verify_gate(history.load.gate, incidents, found.service, seen)
    return violations + _verify_hooks(history, incidents)


def _verify_hooks(history: History, incidents: list[dict[str, Any]]) -> list[str]:
    """Verifies the webhooks once each was delivered, or at the latest after DELIVERED_SECONDS."""
    latest = time.time() + DELIVERED_SECONDS
    while True:
        wrong = verify_hooks(hooks_of(history), incidents)
        if not wrong or time.time() > latest:
            return wrong
        time.sleep(5)


def hooks_of(history: History) -> list[Hook]:
    found = []
    for line in (history.found.folder / "hooks.log").read_text().splitlines():
        record = json.loads(line)
        if record["path"] == "/hook":
            body = record["body"]
            found.append(
                Hook(record["at"], record["id"], body["event"], body["incident"]["id"], body["seq"])
            )
    return found


def _windows(history: History, identifier: str) -> list[dict[str, Any]]:
    path = f"/projects/{history.found.project}/monitors/{identifier}"
    return windows_of(lambda at: read_api(history, at), path, history.since, history.until)


def _beats(history: History, identifier: str, until: float) -> list[dict[str, Any]]:
    """Returns the results of a span; at most the newest 1 000."""
    beats = read_api(history, f"/monitors/{identifier}/heartbeats?limit=1000")
    return [beat for beat in beats if history.since - 1 <= instant(beat["ts"]) <= until]


def lost_pushes(history: History) -> list[str]:
    """Returns each acknowledged push that is not stored, with its distance to the failovers.

    With asynchronous replication, a failover loses what the replica had not received.
    """
    failovers = [one for one in history.injected if one.lane == "database"]
    lost = []
    for number, identifier in history.found.jobs.items():
        stored = {beat.get("msg") for beat in _beats(history, identifier, float("inf"))}
        for text, at in history.load.acknowledged[number].items():
            if text in stored:
                continue
            near = min(failovers, key=lambda one: abs(one.began_at - at), default=None)
            told = f"{at - near.began_at:+.2f} s, {near.fault}" if near else "without a fault"
            lost.append(f"{text}: {told}")
    return lost


def verdicts(history: History) -> dict[str, int]:
    """Returns how many windows have each verdict and reason."""
    counts: dict[str, int] = {}
    for identifier in history.found.monitors.values():
        for window in _windows(history, identifier):
            key = f"{window['verdict']} {window.get('reason') or ''}".strip()
            counts[key] = counts.get(key, 0) + 1
    return counts


def course(history: History) -> dict[str, str]:
    """Returns how many results and pushes were stored in each 10 s."""
    counts: dict[int, list[int]] = {}
    for part, identifiers in enumerate((history.found.monitors, history.found.jobs)):
        for identifier in identifiers.values():
            for beat in _beats(history, identifier, history.until):
                at = int((instant(beat["ts"]) - history.since) // 10)
                counts.setdefault(at, [0, 0])[part] += 1
    return {
        time.strftime("%H:%M:%S", time.localtime(history.since + 10 * at)): "{} {}".format(
            *counts[at]
        )
        for at in sorted(counts)
        if at >= 0
    }
