"""Metrics of single monitors, whose labels are slugs. Only with `metrics.monitors`."""

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import GaugeMetricFamily

from ...storage.results.queries.monitor_samples import MonitorSamples

_LABELS: Final = ("organization", "project", "monitor")


def monitor_families(found: MonitorSamples) -> Iterator[GaugeMetricFamily]:
    """Yields the sampled values. A monitor without a fresh result has no `leadline_monitor_up`."""
    up = _gauge("leadline_monitor_up", "1 if the monitor is up, 0 if it is down.")
    maintenance = _gauge("leadline_monitor_in_maintenance", "1 in maintenance, else 0.")
    latency = _gauge("leadline_monitor_latency_seconds", "Latency of the newest fresh result.")
    last = _gauge(
        "leadline_monitor_last_result_timestamp_seconds", "Unix time of the newest result."
    )
    for one in found.samples:
        names = (one.organization, one.project, one.monitor)
        maintenance.add_metric(names, one.in_maintenance)
        if one.is_up is not None:
            up.add_metric(names, one.is_up)
        if one.latency_ms is not None:
            latency.add_metric(names, one.latency_ms / 1e3)
        if one.last_at is not None:
            last.add_metric(names, one.last_at / 1e6)
    yield from (up, maintenance, latency, last)
    yield GaugeMetricFamily(
        "leadline_monitors_left_out",
        "Monitors beyond the limit of metrics.monitors.",
        value=found.left_out,
    )


def _gauge(name: str, text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, labels=_LABELS)
