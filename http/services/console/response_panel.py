"""Panel of a service: times to acknowledge and to resolve its incidents of a range."""

from collections.abc import Mapping
from typing import Final

from ....storage.core.instant import DAY, Instant
from ....storage.core.time_span import TimeSpan
from ....storage.incidents.queries.response_times import ResponseSpread, ResponseTimes
from ...ui.formatting import NOTHING, count, duration
from ...ui.reliability_text import ReliabilityText

RESPONSE_RANGES: Final[Mapping[str, int]] = {"7d": 7 * DAY, "30d": 30 * DAY, "90d": 90 * DAY}

_TOO_MANY: Final[Mapping[str, str]] = {
    "too_many_incidents": "Too many incidents to compute it",
    "too_many_revisions": "Too many changes of the members to compute it",
}


def response_span(name: str, now: Instant) -> TimeSpan:
    """Returns the range up to now. An incident of this instant is in it."""
    return TimeSpan(Instant(now - RESPONSE_RANGES[name]), Instant(now + 1))


def response_figures(times: ResponseTimes) -> list[tuple[str, ReliabilityText]]:
    """Returns (label, figure). A figure without an incident is a dash with the reason."""
    if times.withheld:
        why = ReliabilityText(NOTHING, _TOO_MANY[times.withheld], withheld=True)
        return [("Incidents", why), ("Time to acknowledge", why), ("Time to resolve", why)]
    state = [f"{times.open} open"] if times.open else []
    if times.unacknowledged:
        state.append(f"{times.unacknowledged} not acknowledged")
    if times.covered:
        state.append(f"{times.covered} covered by the page of another alert")
    if times.deleted_monitors:
        gone = count(times.deleted_monitors, "deleted monitor")
        state.append(f"without those of {gone}")
    none = "" if times.incidents else "No incidents"
    return [
        ("Incidents", ReliabilityText(f"{times.incidents}", ", ".join(state))),
        ("Time to acknowledge", _told(times.acknowledge, none or "None acknowledged")),
        ("Time to resolve", _told(times.resolve, none or "None resolved")),
    ]


def _told(spread: ResponseSpread | None, reason: str) -> ReliabilityText:
    if spread is None:
        return ReliabilityText(NOTHING, reason, withheld=True)
    note = (
        f"median of {count(spread.count, 'incident')}; mean {duration(spread.mean_us)}, 90 % within"
        f" {duration(spread.p90_us)}, longest {duration(spread.longest_us)}"
    )
    return ReliabilityText(duration(spread.median_us), note)
