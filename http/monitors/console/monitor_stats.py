"""Figures of the monitor screen, each with its coverage or withheld with a reason."""

from collections.abc import Sequence
from dataclasses import dataclass

from ....storage.core.availability import Withheld, figure
from ....storage.core.instant import DAY, MINUTE, Instant
from ....storage.figures.queries.availability import NOTHING, Days, add
from ....storage.figures.queries.monitor_time import MonitorTime
from ....storage.monitors.queries.certificates import MonitorCertificate
from ....storage.monitors.rules.certificate import CertificateUnknown
from ....storage.results.queries.console_results import LatencyBin
from ...ui.formatting import GAP, clock, coverage, dated, day, number, percent
from ...ui.formatting import NOTHING as DASH

_NOT_MEASURED = "No data: not measured"
_UNKNOWN = {
    CertificateUnknown.NO_TLS: "The checks use no TLS",
    CertificateUnknown.NOT_SEEN: "No certificate reported since the last edit",
}
# Time from the creation of a monitor to its first sealed results.
FIRST_FIGURE_US = 4 * MINUTE


@dataclass(frozen=True, slots=True)
class MonitorStat:
    label: str
    text: str
    note: str
    withheld: bool = False


def figures(
    hours_24: MonitorTime,
    days: Days,
    latency: Sequence[LatencyBin],
    now: Instant,
    *,
    probed: bool,
    young: bool = False,
    certificate: MonitorCertificate | None = None,
) -> list[MonitorStat]:
    found = [_availability("24 hours", hours_24, days, Instant(now - DAY), now)]
    for many in (7, 30, 90):
        label = f"{many} days"
        since = Instant(now - many * DAY)
        found.append(_availability(label, total(days, many), days, since, now))
    if young:
        found = [since_start(latency), found[0], found[2]]
    if probed:
        found.append(_latency(latency))
    if certificate is not None:
        found.append(_certificate(certificate, now))
    return found


def total(days: Days, many: int) -> MonitorTime:
    """Returns the sum of the last `many` days, including today."""
    summed = NOTHING
    for _, measured in days.days[-many:]:
        summed = add(summed, measured)
    return summed


def sealed(days: Days) -> bool:
    """Returns whether any time is sealed. Before that, all figures are withheld."""
    return days.watermark is not None and days.begun is not None and days.watermark > days.begun


def _availability(
    label: str, measured: MonitorTime, days: Days, since: Instant, now: Instant
) -> MonitorStat:
    said = figure(measured.split, sealed=sealed(days))
    ratio = measured.split.availability()
    if said.withheld_reason is not None or ratio is None:
        is_waiting = said.withheld_reason is Withheld.NOTHING_SEALED
        why = _first_figure(days, now) if is_waiting else _NOT_MEASURED
        return MonitorStat(label, DASH, why, withheld=True)
    note = f"coverage {coverage(measured.split.coverage())}"
    if days.begun is not None and days.begun > since:
        note += f", since {day(days.begun)}"
    return MonitorStat(label, percent(ratio, measured.total), note)


def _first_figure(days: Days, now: Instant) -> str:
    if days.begun is None or days.begun + FIRST_FIGURE_US <= now:
        return "No data yet"
    at = clock(Instant(days.begun + FIRST_FIGURE_US), seconds=False)
    return f"No data yet, first figure at {at}"


def since_start(latency: Sequence[LatencyBin]) -> MonitorStat:
    """Returns the checks of a monitor that is younger than the range of the bins."""
    good, bad = sum(item.good for item in latency), sum(item.bad for item in latency)
    if not good + bad:
        return MonitorStat("Since start", DASH, "No result yet", withheld=True)
    return MonitorStat("Since start", f"{number(good)} of {number(good + bad)}", "results up")


def _latency(latency: Sequence[LatencyBin]) -> MonitorStat:
    label = "Latency, 24 h"
    good = [item for item in latency if item.good and item.p50_ms is not None]
    if not good:
        return MonitorStat(label, DASH, "No data: no successful check", withheld=True)
    newest = good[-1]
    text = f"{number(newest.p50_ms or 0)} / {number(newest.p95_ms or 0)}{GAP}ms"
    checks = "good check" if newest.good == 1 else "good checks"
    return MonitorStat(label, text, f"p50 / p95, {number(newest.good)} {checks}")


def _certificate(certificate: MonitorCertificate, now: Instant) -> MonitorStat:
    label = "Certificate"
    if certificate.ends_at is None or certificate.seen_at is None:
        why = _UNKNOWN[certificate.unknown or CertificateUnknown.NOT_SEEN]
        return MonitorStat(label, DASH, why, withheld=True)
    seen = f"{dated(certificate.ends_at, now)}, seen {dated(certificate.seen_at, now)}"
    left = certificate.ends_at - now
    if left <= 0:
        return MonitorStat(label, "expired", f"on {seen}")
    days = left // DAY
    text = f"{number(days)}{GAP}{'day' if days == 1 else 'days'}" if days else "under 1 day"
    return MonitorStat(label, text, f"expires {seen}")
