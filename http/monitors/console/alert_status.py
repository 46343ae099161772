"""Alert status of a down monitor: notified, or the reason for no notification."""

from dataclasses import dataclass

from ....storage.alerting.queries.console_outages import OpenOutage
from ....storage.alerting.rules.flapping import SETTLED_US
from ....storage.alerting.rules.suppression import SuppressionReason
from ....storage.core.instant import MINUTE, Instant
from ....storage.monitors.queries.certificates import MonitorCertificate
from ...ui.formatting import dated, milliseconds, moment

HELD = {
    SuppressionReason.WAITING: "Alert pending: rechecking {names} first.",
    SuppressionReason.RECHECKING: (
        "Alert pending: the dependency recovered; rechecking this monitor first."
    ),
    SuppressionReason.DEPENDENCY: ("Suppressed: dependency {causes} down."),
    SuppressionReason.MAINTENANCE: "Suppressed: in maintenance.",
    SuppressionReason.PAUSED: "Suppressed: paused.",
    SuppressionReason.DELEGATED: "A service pages for this monitor.",
    SuppressionReason.SILENCED: "Alerts muted: it is announced if it outlasts the mute.",
    SuppressionReason.UNKNOWN: "No current result reports it down.",
}
_NAMES_MOST = 3


@dataclass(frozen=True, slots=True)
class AlertStatus:
    """`link` is the path of the incident and `name` its number, both empty without an incident."""

    text: str
    link: str = ""
    name: str = ""


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
        HELD[SuppressionReason(outage.suppressed_by)].format(names=names, causes=causes)
    )


def _announced(outage: OpenOutage, at: Instant, now: Instant) -> AlertStatus:
    if outage.incident is None:
        return AlertStatus(f"Notified channels at {dated(at, now)}.")
    link = (f"/incidents/{outage.incident}", f"INC-{outage.number}")
    if outage.is_resolved:
        return AlertStatus("Its incident was resolved manually.", *link)
    if outage.acknowledged_at is not None:
        who = outage.acknowledged_label
        return AlertStatus(f"Acknowledged at {dated(outage.acknowledged_at, now)} by {who}.", *link)
    opened = f"An incident was opened at {dated(at, now)}; it is not acknowledged."
    return AlertStatus(opened, *link)


def _listed(names: list[str]) -> str:
    shown = names[:_NAMES_MOST]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def flapping_text(since: Instant | None, now: Instant) -> str:
    """Returns the mark of a flapping monitor, empty for others."""
    if since is None:
        return ""
    minutes = SETTLED_US // MINUTE
    return (
        f"Flapping since {dated(since, now)}: its alert stays open until the status has not "
        f"changed for {minutes} minutes."
    )


def slow_text(since: Instant | None, above_ms: int, now: Instant) -> str:
    """Returns the warning of a slow monitor, empty for others."""
    if since is None or not above_ms:
        return ""
    return f"Slow since {dated(since, now)}: checks take longer than {milliseconds(above_ms)}."


def certificate_text(
    since: Instant | None, certificate: MonitorCertificate | None, now: Instant
) -> str:
    """Returns the warning of a certificate that ends soon, empty for others."""
    if since is None:
        return ""
    warned = f"Certificate warning since {dated(since, now)}"
    if certificate is None or certificate.ends_at is None:
        return f"{warned}: no certificate was reported since the last edit."
    is_over = certificate.ends_at <= now
    return f"{warned}: it expire{'d' if is_over else 's'} {moment(certificate.ends_at, now).text}."
