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
            "Its members speak for themselves",
            ["Each monitor that goes down tells its own channels. The service tells nobody."],
            [] if row is None else _settings(row),
        )
    if state.live.armed:
        lines = [
            "A member that goes down stays quiet: one page tells of the service instead."
            f"{_looked(state.live, facts.now)}"
        ]
        found = AlertingSummary("up", "The service speaks for its members", lines, _settings(row))
    else:
        why = reason_words(state.live.reason)
        lines = [f"The service owns their paging and cannot speak: {why}.{_failed(state.live)}"]
        text = "Its members speak for themselves, until the service can"
        found = AlertingSummary("degraded", text, lines, _settings(row))
    if state.burn.armed:
        return replace(found, lines=[*lines, "It tells when its budget burns too fast, too."])
    why = reason_words(state.burn.reason)
    said = f"Of a budget that burns too fast it does not tell: {why}.{_failed(state.burn)}"
    return replace(found, lines=[*lines, said])


def _looked(signal: SignalState, now: Instant) -> str:
    if signal.evaluated_at is None:
        return ""
    return f" It was last looked at {duration(now - signal.evaluated_at)} ago."


def _failed(signal: SignalState) -> str:
    return f" The last look said: {signal.last_error}." if signal.last_error else ""


def _settings(row: AlertingRow) -> list[tuple[str, str]]:
    on = [*row.page_on, *(["unknown"] if row.page_on_unknown else [])]
    again = setting(row.renotify_seconds) if row.renotify_seconds else "never"
    looks = count(row.confirm_evaluations, "look")
    return [
        ("Pages on", " and ".join(on) or "nothing"),
        ("Confirmed by", f"{looks}, half a minute apart"),
        ("Told again every", again),
    ]
