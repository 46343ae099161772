"""Summary of a project: one mark, one sentence, and a line below them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ....probes.check.result import UnknownReason
from ...ui.failure_help import explain_trouble
from ...ui.formatting import count, number
from ...ui.monitor_status import WORDS, MonitorStatusText


@dataclass(frozen=True, slots=True)
class OverviewSummary:
    mark: str
    sentence: str
    # Short sentence for the window title.
    short: str


@dataclass(frozen=True, slots=True)
class Tallied:
    mark: MonitorStatusText
    many: str
    word: str


@dataclass(frozen=True, slots=True)
class MissingResults:
    """Why monitors have no current result."""

    # Active monitors by region, in regions without a live worker or agent.
    unserved: Mapping[str, int] = field(default_factory=dict)
    # Unknown and pending monitors by the reason why their check cannot run, in other regions.
    troubled: Mapping[str, int] = field(default_factory=dict)
    # Unknown monitors without either reason.
    stale: int = 0


def summary(tally: Mapping[MonitorStatusText, int]) -> OverviewSummary:
    """Returns the summary. The worst status comes first, and unknown is never up."""
    total = sum(tally.values())
    paused, up = tally.get(MonitorStatusText.PAUSED, 0), tally.get(MonitorStatusText.UP, 0)
    checked = total - paused
    if not checked:
        return OverviewSummary(MonitorStatusText.PAUSED, "No active monitors", "All paused")
    down, unknown = tally.get(MonitorStatusText.DOWN, 0), tally.get(MonitorStatusText.UNKNOWN, 0)
    pending, maintained = (
        tally.get(MonitorStatusText.PENDING, 0),
        tally.get(MonitorStatusText.MAINTENANCE, 0),
    )
    if down:
        return OverviewSummary(MonitorStatusText.DOWN, _are(down, "down"), f"{down} down")
    rest = ", the rest is up" if up and up + unknown + pending == checked else ""
    if unknown:
        return OverviewSummary(
            MonitorStatusText.UNKNOWN, f"{_are(unknown, 'unknown')}{rest}", f"{unknown} unknown"
        )
    if pending:
        verb = "is pending" if pending == 1 else "are pending"
        said = f"{count(pending, 'monitor')} {verb}{rest}"
        return OverviewSummary(MonitorStatusText.PENDING, said, "Waiting")
    if not up:
        return OverviewSummary(
            MonitorStatusText.MAINTENANCE, _all(maintained, "in maintenance"), "In maintenance"
        )
    if up == total:
        return OverviewSummary(MonitorStatusText.UP, _all(up, "up"), "All up")
    return OverviewSummary(MonitorStatusText.UP, f"Others up: {count(up, 'monitor')}", "Others up")


_SERVICE_STATES: Final = {
    "down": "down",
    "degraded": "degraded",
    "unknown": "unknown",
    "maint": "in maintenance",
}


def service_summary(marks: Sequence[str]) -> OverviewSummary | None:
    """Returns the summary of the services, None if no service has a declaration.

    `marks` are those of the services; `pending` is a service without a declaration.
    """
    tally = Counter(mark for mark in marks if mark != "pending")
    total = tally.total()
    if not total:
        return None
    bad = [mark for mark in _SERVICE_STATES if tally[mark]]
    if not bad:
        said = (
            "The service is healthy" if total == 1 else f"All {number(total)} services are healthy"
        )
        return OverviewSummary("up", said, "All healthy")
    parts: list[str] = []
    for mark in bad:
        verb = "is" if tally[mark] == 1 else "are"
        subject = number(tally[mark]) if parts else _of_services(tally[mark], total)
        parts.append(f"{subject} {verb} {_SERVICE_STATES[mark]}")
    short = f"{tally[bad[0]]} {_SERVICE_STATES[bad[0]]}"
    return OverviewSummary(bad[0], ", ".join(parts), short)


def _of_services(many: int, total: int) -> str:
    if total == 1:
        return "The service"
    return f"{number(many)} of {number(total)} services"


def monitors_below(tally: Mapping[MonitorStatusText, int]) -> str:
    """Returns the sentence about monitors below a summary of services."""
    total = sum(tally.values())
    parts = [
        f"{number(tally[state])} {'is' if tally[state] == 1 else 'are'} {WORDS[state]}"
        for state in (
            MonitorStatusText.DOWN,
            MonitorStatusText.UNKNOWN,
            MonitorStatusText.PENDING,
            MonitorStatusText.MAINTENANCE,
        )
        if tally.get(state)
    ]
    if not parts:
        return f"{_all(total, 'up')}." if tally.get(MonitorStatusText.UP) == total else ""
    listed = " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)
    return f"Of {count(total, 'monitor')} {listed}."


def tallied(tally: Mapping[MonitorStatusText, int]) -> list[Tallied]:
    """Returns the number of monitors by status, the worst first and the usual one last."""
    order = (
        MonitorStatusText.DOWN,
        MonitorStatusText.UNKNOWN,
        MonitorStatusText.PENDING,
        MonitorStatusText.MAINTENANCE,
        MonitorStatusText.PAUSED,
        MonitorStatusText.UP,
    )
    return [Tallied(s, number(tally[s]), WORDS[s]) for s in order if tally.get(s)]


def under(tally: Mapping[MonitorStatusText, int], missing: MissingResults) -> str:
    """Returns the line below: the other monitors, and each reason for missing results."""
    said = []
    down, unknown, pending, up = (
        tally.get(s, 0)
        for s in (
            MonitorStatusText.DOWN,
            MonitorStatusText.UNKNOWN,
            MonitorStatusText.PENDING,
            MonitorStatusText.UP,
        )
    )
    if down and up and not unknown and not pending:
        said.append("Everything else is up.")
    if down and unknown:
        said.append(f"{_are(unknown, 'unknown')}.")
    for region, many in sorted(missing.unserved.items()):
        verb = "is" if many == 1 else "are"
        said.append(
            f"Region {region} has no live worker or agent:"
            f" {count(many, 'monitor')} {verb} not checked."
        )
    for reason, many in sorted(missing.troubled.items()):
        told = explain_trouble(UnknownReason(reason))
        said.append(f"{count(many, 'check')} cannot run: {told}.")
    if missing.stale and (missing.unserved or missing.troubled):
        said.append(f"{count(missing.stale, 'monitor')} without a current result.")
    return " ".join(said)


def incidents_open(many: int) -> str:
    """Returns the link text to open incidents, empty without open incidents."""
    return f"{count(many, 'incident')} {'is' if many == 1 else 'are'} open" if many else ""


def _are(many: int, what: str) -> str:
    return f"{count(many, 'monitor')} {'is' if many == 1 else 'are'} {what}"


def _all(many: int, what: str) -> str:
    return f"The monitor is {what}" if many == 1 else f"All {number(many)} monitors are {what}"
