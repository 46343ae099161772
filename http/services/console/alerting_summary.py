"""Summary of a service's alerting: who pages, the service or its members, and why."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ....storage.alerting.queries.alerting_state import SignalState
from ....storage.alerting.rows import AlertingRow
from ....storage.core.instant import Instant
from ...ui.failure_help import reason_words
from ...ui.formatting import count, duration, setting
from .service_data import ServiceFacts


@dataclass(frozen=True, slots=True)
class AlertingSummary:
    """`lines` are sentences. `settings` are (label, value) pairs."""

    mark: str
    text: str
    lines: Sequence[str]
    settings: Sequence[tuple[str, str]]


def spoken(facts: ServiceFacts) -> AlertingSummary:
    row, state = facts.alerting, facts.alerting_state
    if row is None or not row.owns_paging:
        return AlertingSummary(
            "pending",
            "Members page directly",
            ["Each monitor that goes down notifies its own channels. The service sends no pages."],
            [] if row is None else _settings(row),
        )
    if state.live.armed:
        lines = [
            "SLI members do not page; the service sends one page instead."
            f"{_looked(state.live, facts.now)}"
        ]
        found = AlertingSummary(
            "up", "The service pages for its SLI members", lines, _settings(row)
        )
    else:
        why = reason_words(state.live.reason)
        lines = [f"The service cannot page: {why}.{_failed(state.live)}"]
        text = "Members page directly until the service can"
        found = AlertingSummary("degraded", text, lines, _settings(row))
    if state.burn.armed:
        return replace(found, lines=[*lines, "High burn rates are notified too."])
    why = reason_words(state.burn.reason)
    said = f"High burn rates are not notified: {why}.{_failed(state.burn)}"
    return replace(found, lines=[*lines, said])


def _looked(signal: SignalState, now: Instant) -> str:
    if signal.evaluated_at is None:
        return ""
    return f" Last evaluated {duration(now - signal.evaluated_at)} ago."


def _failed(signal: SignalState) -> str:
    return f" Last evaluation: {signal.last_error}." if signal.last_error else ""


def _settings(row: AlertingRow) -> list[tuple[str, str]]:
    on = [*row.page_on, *(["unknown"] if row.page_on_unknown else [])]
    again = setting(row.renotify_seconds) if row.renotify_seconds else "never"
    looks = count(row.confirm_evaluations, "evaluation")
    return [
        ("Page on", " and ".join(on) or "nothing"),
        ("Confirm after", f"{looks}, one every 30 s"),
        ("Re-notify every", again),
    ]
