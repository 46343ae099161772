"""Latency of a component over the last day, in half hours, as a status page shows it.

Only whole half hours are shown, so that the content of a page changes once in a half hour.

Invariant: no value identifies the monitor: it has no name, region, target or type.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

from ...core.instant import MINUTE, Instant
from ...core.time_span import TimeSpan
from ...monitors.rules.monitor import MonitorType
from ...scheduling.rules.maintenance_window import is_in_maintenance

STEP_US: Final = 30 * MINUTE
STEPS: Final = 48
# Bound of a page, because each plot is computed from the results of a day.
PLOTS_MOST: Final = 20
# Their results have no latency of a check: a push is sent, and a composite is computed.
_UNMEASURED: Final = (MonitorType.PUSH, MonitorType.COMPOSITE)


class LatencyWithheld(StrEnum):
    """Reason why a component has no latency."""

    NOT_MEASURED = "not_measured"
    NO_RESULTS = "no_results"


class LatencyPoint(msgspec.Struct, frozen=True):
    """Percentiles of the successful results of a step."""

    at: Instant
    p50_ms: int
    p95_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentLatency:
    """Latency over a day. A step without a point was not measured.

    `withheld` is set if and only if there are no points.
    """

    from_at: Instant
    until: Instant
    points: Sequence[LatencyPoint] = ()
    withheld: LatencyWithheld | None = None

    def __post_init__(self) -> None:
        assert bool(self.points) is (self.withheld is None), self


def measures_latency(monitor_type: str | None) -> bool:
    """Returns whether the monitor measures latency. None means a component without a monitor."""
    return monitor_type is not None and monitor_type not in _UNMEASURED


def latency_span(now: Instant) -> TimeSpan:
    """Returns the last whole half hours, a day of them."""
    until = now - now % STEP_US
    return TimeSpan(Instant(until - STEPS * STEP_US), Instant(until))


def latency_of(
    monitor: int | None,
    measured: Mapping[int, Sequence[LatencyPoint]],
    maintenance: Mapping[int, Sequence[TimeSpan]],
    now: Instant,
) -> ComponentLatency:
    """Returns the latency of a component.

    `measured` has an item for each monitor that measures latency. Steps in maintenance are left
    out, as in the console.
    """
    span = latency_span(now)
    from_at, until = span.from_, span.until
    found = None if monitor is None else measured.get(monitor)
    if monitor is None or found is None:
        why = LatencyWithheld.NOT_MEASURED
        return ComponentLatency(from_at=from_at, until=until, withheld=why)
    spans = maintenance.get(monitor, ())
    points = [one for one in found if not is_in_maintenance(Instant(one.at + STEP_US // 2), spans)]
    withheld = None if points else LatencyWithheld.NO_RESULTS
    return ComponentLatency(from_at=from_at, until=until, points=points, withheld=withheld)
