"""Figures of the monitor screen, each with its coverage or withheld with a reason."""

from collections.abc import Sequence
from dataclasses import dataclass

from ....storage.core.availability import Withheld, figure
from ....storage.core.instant import DAY, Instant
from ....storage.figures.queries.availability import NOTHING, Days, add
from ....storage.figures.queries.monitor_time import MonitorTime
from ....storage.results.queries.console_results import LatencyBin
from ...ui.formatting import GAP, coverage, day, number, percent
from ...ui.formatting import NOTHING as DASH

_WHY = {
    Withheld.NOTHING_SEALED: "No data yet (first figures after about 4 min)",
    Withheld.NOTHING_MEASURED: "No data: not measured",
}


@dataclass(frozen=True, slots=True)
class MonitorStat:
    label: str
    text: str
    note: str
    withheld: bool = False


def figures(
    hours_24: MonitorTime, days: Days, latency: Sequence[LatencyBin], now: Instant, *, probed: bool
) -> list[MonitorStat]:
    found = [_availability("24 hours", hours_24, days, Instant(now - DAY))]
    for many in (7, 30, 90):
        label = f"{many} days"
        since = Instant(now - many * DAY)
        found.append(_availability(label, total(days, many), days, since))
    if probed:
        found.append(_latency(latency))
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


def _availability(label: str, measured: MonitorTime, days: Days, since: Instant) -> MonitorStat:
    said = figure(measured.split, sealed=sealed(days))
    ratio = measured.split.availability()
    if said.withheld_reason is not None or ratio is None:
        why = _WHY.get(said.withheld_reason or Withheld.NOTHING_MEASURED, "withheld")
        return MonitorStat(label, DASH, why, withheld=True)
    note = f"coverage {coverage(measured.split.coverage())}"
    if days.begun is not None and days.begun > since:
        note += f", since {day(days.begun)}"
    return MonitorStat(label, percent(ratio, measured.total), note)


def _latency(latency: Sequence[LatencyBin]) -> MonitorStat:
    label = "Latency, 24 h"
    good = [item for item in latency if item.good and item.p50_ms is not None]
    if not good:
        return MonitorStat(label, DASH, "No data: no successful check", withheld=True)
    newest = good[-1]
    text = f"{number(newest.p50_ms or 0)} / {number(newest.p95_ms or 0)}{GAP}ms"
    checks = "good check" if newest.good == 1 else "good checks"
    return MonitorStat(label, text, f"p50 / p95, {number(newest.good)} {checks}")
