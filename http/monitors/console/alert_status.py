"""Alert status of a down monitor: notified, or the reason for no notification."""

from dataclasses import dataclass

from ....storage.alerting.queries.console_outages import OpenOutage
from ....storage.alerting.rules.suppression import SuppressionReason
from ....storage.core.instant import Instant
from ...ui.formatting import dated

_HELD = {
    SuppressionReason.WAITING: "Nobody is told yet: {causes} checked once more first.",
    SuppressionReason.RECHECKING: (
        "Nobody is told yet: what it depends on is back, and it is checked again."
    ),
    SuppressionReason.DEPENDENCY: (
        "Nobody is told: the cause is sought in what it depends on, {names}."
    ),
    SuppressionReason.MAINTENANCE: "Nobody is told: it is in maintenance.",
    SuppressionReason.PAUSED: "Nobody is told: it is paused.",
    SuppressionReason.DELEGATED: "It tells nobody by itself: a service speaks for it.",
    SuppressionReason.SILENCED: "Nobody is told: all alerts are silenced.",
    SuppressionReason.UNKNOWN: "Nobody is told: no result that holds says that it is down.",
}
_NAMES_MOST = 3


@dataclass(frozen=True, slots=True)
class AlertStatus:
    """`link` is the path of the incident, empty without an incident."""

    text: str
    link: str = ""


def alert_text(outage: OpenOutage | None, now: Instant) -> AlertStatus | None:
    if outage is None:
        return None
    if outage.announced_at is not None:
        return _announced(outage, outage.announced_at, now)
    if outage.suppressed_by is None:
        return None
    names = _listed(outage.depends_on)
    causes = f"{names} {'are' if len(outage.depends_on) > 1 else 'is'}"
    return AlertStatus(
        _HELD[SuppressionReason(outage.suppressed_by)].format(names=names, causes=causes)
    )


def _announced(outage: OpenOutage, at: Instant, now: Instant) -> AlertStatus:
    if outage.incident is None:
        return AlertStatus(f"Its channels were told at {dated(at, now)}.")
    link = f"/incidents/{outage.incident}"
    if outage.is_resolved:
        return AlertStatus("Its incident was resolved by hand.", link)
    if outage.acknowledged_at is not None:
        who = outage.acknowledged_label
        return AlertStatus(f"Acknowledged at {dated(outage.acknowledged_at, now)} by {who}.", link)
    return AlertStatus(
        f"An incident was opened at {dated(at, now)}, and nobody has acknowledged it.", link
    )


def _listed(names: list[str]) -> str:
    shown = names[:_NAMES_MOST]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
