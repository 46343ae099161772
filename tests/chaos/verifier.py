"""Compares what clients can see with what the target and the load have logged.

It imports nothing of the product, and reads only the API. A violation is a sentence.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

# The clocks of the target and of the database are the same one. Requests are logged after they are
# accepted, and results are stored with the instant at which the run began.
SLACK_SECONDS = 0.05
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
    """Every covered window has a result, and every result agrees with the target."""
    wrong = []
    starts = sorted(instant(beat["ts"]) for beat in beats)
    for window in windows:
        if window["verdict"] not in ("covered", "covered_late"):
            continue
        due = instant(window["due_at"])
        at = bisect_left(starts, due - SLACK_SECONDS)
        if at == len(starts) or starts[at] >= due + of.interval_seconds:
            wrong.append(f"{of.name}: covered window of {window['due_at']} without a result")
    for beat in beats:
        wrong += verify_result(of, beat)
    return wrong


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
