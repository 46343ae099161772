"""Compares what clients can see with what the target and the load have logged.

It imports nothing of the product, and reads only the API. A violation is a sentence.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

# The clocks of the target and of the database are the same one. Requests are logged after they are
# accepted, and results are stored with the instant at which the run began. A process knows the time
# of the database within half of a round trip, which is at most 1 s, and an agent that of its
# server.
SLACK_SECONDS = 1.05
# Between the claim of a run and its beginning.
START_SECONDS = 1.0
# The check that a host is online follows a failed run.
PROOF_SECONDS = 3.0
SETTLED = {"covered", "covered_late", "missed", "withheld"}
Read = Callable[[str], Any]


@dataclass(frozen=True)
class Answer:
    asked_at: float
    answered_at: float
    status: int


@dataclass(frozen=True)
class Expectation:
    """What is verified of a monitor: its schedule, and the answers of its target."""

    name: str
    identifier: str
    interval_seconds: float
    timeout_seconds: float
    answers: list[Answer]
    # Spans in which a prober could not reach the target.
    unreachable: list[tuple[float, float]] = field(default_factory=list)
    # Instants at which the network of a prober came back. A check that failed before, and proves
    # afterwards that its host is online, is down.
    healed: list[float] = field(default_factory=list)
    # Spans in which a process that probes was frozen.
    freezes: list[tuple[float, float]] = field(default_factory=list)

    def is_excused(self, began: float) -> bool:
        """Returns whether the network explains why a run that began then got no answer."""
        ended = began + self.timeout_seconds + PROOF_SECONDS
        return any(one <= ended and other >= began for one, other in self.unreachable) or any(
            began <= at <= ended for at in self.healed
        )


@dataclass(frozen=True)
class Hook:
    """A received webhook."""

    at: float
    delivery: str
    event: str
    incident: str
    seq: int


@dataclass(frozen=True)
class GateAnswer:
    """An answer of the gate, with the instants of the question and of the answer."""

    asked_at: float
    answered_at: float
    body: dict[str, Any]


def read_log(path: Path) -> dict[int, list[Answer]]:
    """Returns the answers of each number, in the order of their instants."""
    found: dict[int, list[Answer]] = defaultdict(list)
    for line in path.read_text().splitlines():
        asked_at, answered_at, number, status = line.split()
        found[int(number)].append(Answer(float(asked_at), float(answered_at), int(status)))
    for answers in found.values():
        answers.sort(key=lambda answer: answer.asked_at)
    return found


def instant(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def text_of(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


def windows_of(read: Read, path: str, since: float, until: float) -> list[dict[str, Any]]:
    """Returns all windows of a monitor, oldest first."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        query = {"from": text_of(since), "to": text_of(until), "limit": "200"}
        page = read(
            f"{path}/expected-runs?{urlencode(query | ({'cursor': cursor} if cursor else {}))}"
        )
        found += page["items"]
        cursor = page["next_cursor"] or ""
        if not cursor:
            return sorted(found, key=lambda window: instant(window["due_at"]))


def verify_windows(
    of: Expectation, windows: list[dict[str, Any]], since: float, until: float
) -> list[str]:
    """Every due run has exactly one settled verdict."""
    wrong = []
    instants = [instant(window["due_at"]) for window in windows]
    for earlier, later in pairwise(instants):
        gap = later - earlier
        if gap < of.interval_seconds - 0.001:
            wrong.append(f"{of.name}: two windows within {gap:.3f} s at {text_of(earlier)}")
        elif gap > of.interval_seconds + 0.001:
            wrong.append(f"{of.name}: no window for {gap:.3f} s after {text_of(earlier)}")
    if not instants or instants[0] >= since + of.interval_seconds:
        wrong.append(f"{of.name}: no first window after {text_of(since)}")
    if instants and instants[-1] < until - of.interval_seconds - 0.001:
        wrong.append(f"{of.name}: no last window before {text_of(until)}")
    wrong += [
        f"{of.name}: the window of {window['due_at']} is {window['verdict']}"
        for window in windows
        if window["verdict"] not in SETTLED
    ]
    return wrong


def verify_results(
    of: Expectation, windows: list[dict[str, Any]], beats: list[dict[str, Any]]
) -> list[str]:
    """Every covered window has a result of its own, and every result agrees with the target."""
    wrong = []
    starts = sorted(instant(beat["ts"]) for beat in beats)
    at = 0
    for window in windows:
        if window["verdict"] not in ("covered", "covered_late"):
            continue
        due = instant(window["due_at"])
        at = max(at, bisect_left(starts, due - SLACK_SECONDS))
        latest = latest_start(of, due)
        if at == len(starts) or starts[at] >= latest:
            wrong.append(f"{of.name}: covered window of {window['due_at']} without a result")
        else:
            at += 1
    for beat in beats:
        wrong += verify_result(of, beat)
    return wrong


def latest_start(of: Expectation, due: float) -> float:
    """Returns the latest instant at which a run of the window can begin.

    A run is claimed before the next window is due, and begins a moment later, or after a freeze of
    its process that began in this moment.
    """
    latest = due + of.interval_seconds + START_SECONDS + SLACK_SECONDS
    for began, ended in sorted(of.freezes):
        if began <= latest:
            latest = max(latest, ended + START_SECONDS + SLACK_SECONDS)
    return latest


def verify_result(of: Expectation, beat: dict[str, Any]) -> list[str]:
    began = instant(beat["ts"])
    first = bisect_left([answer.asked_at for answer in of.answers], began - SLACK_SECONDS)
    near = [
        answer
        for answer in of.answers[first : first + 50]
        if answer.asked_at <= began + of.timeout_seconds + SLACK_SECONDS
    ]
    said = [answer.status for answer in near]
    shown = f"{of.name}: result of {beat['ts']} ({beat.get('msg') or 'up'})"
    if beat["up"]:
        return [] if 200 in said else [f"{shown}, but the target answered {said}"]
    if beat.get("code") is not None:
        agrees = beat["code"] in said
        return [] if agrees else [f"{shown} with code {beat['code']}, but it answered {said}"]
    if of.is_excused(began):
        return []
    prompt = [one for one in near if one.answered_at - one.asked_at < of.timeout_seconds / 2]
    if not near:
        return [f"{shown}, but the target got no request"]
    return [f"{shown}, but the target answered {said} in time"] if prompt else []


def verify_pushes(
    name: str, sent: dict[str, float], beats: list[dict[str, Any]], until: float
) -> list[str]:
    """Every acknowledged push is stored exactly once."""
    stored: dict[str, int] = defaultdict(int)
    for beat in beats:
        if beat.get("up"):
            stored[beat.get("msg", "")] += 1
    return [
        f"{name}: push {text} of {text_of(at)} is stored {stored[text]} times"
        for text, at in sent.items()
        if at < until and stored[text] != 1
    ]


def verify_silence(
    name: str, sent: dict[str, float], beats: list[dict[str, Any]], deadline_seconds: float
) -> list[str]:
    """No push is reported as missed that was sent before its deadline, and later acknowledged.

    No fault cuts the senders from the receivers.
    """
    wrong = []
    times = sorted(sent.values())
    for beat in beats:
        if beat.get("msg") != "push_missed":
            continue
        missed = instant(beat["ts"])
        at = bisect_left(times, missed - deadline_seconds + SLACK_SECONDS)
        if at < len(times) and times[at] <= missed - SLACK_SECONDS:
            wrong.append(f"{name}: missed at {beat['ts']}, but sent at {text_of(times[at])}")
    return wrong


def verify_outages(
    incidents: list[dict[str, Any]], beats: dict[str, list[dict[str, Any]]], since: float
) -> list[str]:
    """Every outage of a monitor has one incident, which a failed result explains."""
    wrong = []
    by_monitor: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for incident in incidents:
        if incident.get("monitor_id") in beats and instant(incident["started_at"]) > since:
            by_monitor[incident["monitor_id"]].append(incident)
    for monitor, of_monitor in by_monitor.items():
        of_monitor.sort(key=lambda one: instant(one["started_at"]))
        results = [(instant(beat["ts"]), beat["up"]) for beat in beats[monitor]]
        for one in of_monitor:
            began = instant(one["started_at"])
            if not any(not up and abs(at - began) <= SLACK_SECONDS for at, up in results):
                wrong.append(f"incident {one['number']} of {one['started_at']} without a failure")
        for one, other in pairwise(of_monitor):
            began, next_began = instant(one["started_at"]), instant(other["started_at"])
            if not any(up and began < at < next_began for at, up in results):
                wrong.append(
                    f"incidents {one['number']} and {other['number']} announce the same outage"
                )
    return wrong


def verify_hooks(hooks: list[Hook], incidents: list[dict[str, Any]]) -> list[str]:
    """Every update of an incident arrived, in order, and again only as the same delivery."""
    wrong = []
    first: dict[str, list[int]] = defaultdict(list)
    deliveries: dict[tuple[str, int], set[str]] = defaultdict(set)
    for hook in sorted(hooks, key=lambda hook: hook.at):
        if hook.seq not in first[hook.incident]:
            first[hook.incident].append(hook.seq)
        deliveries[hook.incident, hook.seq].add(hook.delivery)
    for incident in incidents:
        expected = list(range(1, incident["seq"] + 1))
        if first[incident["id"]] != expected:
            wrong.append(
                f"incident {incident['number']} of {incident['started_at']} has"
                f" {expected[-1]} updates, and {first[incident['id']]} arrived"
            )
    wrong += [
        f"update {seq} of incident {identifier} arrived as {len(found)} deliveries"
        for (identifier, seq), found in deliveries.items()
        if len(found) > 1
    ]
    return wrong


def verify_gate(
    answers: list[GateAnswer],
    incidents: list[dict[str, Any]],
    service: str,
    seen: dict[str, float],
) -> list[str]:
    """An answer ALLOW is based on facts that had not expired, and no incident was open.

    `seen` has the instant at which the webhook of an incident arrived: its transaction was
    committed then, which can be long after the instant that it states.
    """
    wrong = []
    open_spans = [
        (
            seen.get(one["id"], float("inf")),
            instant(one["resolved_at"]) if one.get("resolved_at") else float("inf"),
        )
        for one in incidents
        if one.get("service_id") == service
    ]
    for answer in answers:
        body = answer.body
        if body["action"] != "ALLOW":
            continue
        fresh_until = body.get("facts_fresh_until")
        if fresh_until is None or instant(fresh_until) < answer.asked_at - SLACK_SECONDS:
            wrong.append(f"gate: ALLOW of {body['evaluated_at']}, facts expired at {fresh_until}")
        if any(
            began < answer.asked_at - SLACK_SECONDS and ended > answer.answered_at + SLACK_SECONDS
            for began, ended in open_spans
        ):
            wrong.append(f"gate: ALLOW of {body['evaluated_at']} while an incident was open")
    return wrong


def verify_bundle(
    timeouts: list[int], monitors: int, unknown: set[int], acknowledged: int
) -> list[str]:
    """An application is in force as a whole: the last acknowledged one, or one without an end.

    An acknowledged timeout of 1 means that none was acknowledged.
    """
    if not timeouts:
        return [] if acknowledged == 1 else ["bundle: no monitor of an acknowledged application"]
    if len(timeouts) != monitors or len(set(timeouts)) != 1:
        return [f"bundle: {len(timeouts)} monitors with the timeouts {sorted(set(timeouts))}"]
    if timeouts[0] not in unknown | {acknowledged}:
        return [f"bundle: timeout {timeouts[0]}, but {acknowledged} was acknowledged"]
    return []
