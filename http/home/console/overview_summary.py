"""Summary of a project: one mark, one sentence, and a line below them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...ui.formatting import count, number
from ...ui.monitor_status import WORDS, MonitorStatusText


@dataclass(frozen=True, slots=True)
class OverviewSummary:
    mark: MonitorStatusText
    sentence: str
    # Short sentence for the window title.
    short: str


@dataclass(frozen=True, slots=True)
class Tallied:
    mark: MonitorStatusText
    many: str
    word: str


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


def tallied(tally: Mapping[MonitorStatusText, int]) -> list[Tallied]:
    order = (
        MonitorStatusText.UP,
        MonitorStatusText.DOWN,
        MonitorStatusText.UNKNOWN,
        MonitorStatusText.PENDING,
        MonitorStatusText.MAINTENANCE,
        MonitorStatusText.PAUSED,
    )
    return [Tallied(s, number(tally[s]), WORDS[s]) for s in order if tally.get(s)]


def under(tally: Mapping[MonitorStatusText, int], unknown_regions: Sequence[str]) -> str:
    """Returns the line below: the other monitors, and the reason for unknown ones."""
    said = []
    down, unknown, up = (
        tally.get(s, 0)
        for s in (MonitorStatusText.DOWN, MonitorStatusText.UNKNOWN, MonitorStatusText.UP)
    )
    if down and up:
        said.append("Everything else is up.")
    if unknown and (down or unknown_regions):
        reason = ""
        if unknown_regions:
            verb = "has" if len(unknown_regions) == 1 else "have"
            word = "region" if len(unknown_regions) == 1 else "regions"
            reason = f": {word} {', '.join(unknown_regions)} {verb} no prober"
        said.append(f"{_are(unknown, 'unknown')}{reason}.")
    return " ".join(said)


def incidents_open(many: int) -> str:
    """Returns the link text to open incidents, empty without open incidents."""
    return f"{count(many, 'incident')} {'is' if many == 1 else 'are'} open" if many else ""


def _are(many: int, what: str) -> str:
    return f"{count(many, 'monitor')} {'is' if many == 1 else 'are'} {what}"


def _all(many: int, what: str) -> str:
    return f"The monitor is {what}" if many == 1 else f"All {number(many)} monitors are {what}"
