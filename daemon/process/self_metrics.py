"""Metrics of self-monitoring: its incidents, its conditions, and heartbeats to an external URL."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from ...storage.alerting.rules.self_condition import SelfCondition
from ..loops.self_monitor import SelfMonitor


def self_families(monitor: SelfMonitor) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
    """Yields the counts of this process.

    The instant of the last pass is the process start before the first one, so that an alert sees
    passes that never succeed. Conditions are absent unless the last pass is recent.
    """
    opened = CounterMetricFamily(
        "leadline_self_incidents_total",
        "Incidents about Leadline that this process opened and resolved.",
        labels=["kind", "action"],
    )
    for kind in SelfCondition:
        for action in ("opened", "resolved"):
            opened.add_metric([kind.value, action], monitor.changes[kind.value, action])
    yield opened
    if monitor.is_current:
        holding = GaugeMetricFamily(
            "leadline_self_conditions",
            "Reported conditions of Leadline that have not ended, as of the last pass.",
            labels=["kind"],
        )
        for kind in SelfCondition:
            holding.add_metric([kind.value], monitor.reported[kind.value])
        yield holding
    yield _instant(
        "leadline_self_monitor_last_success_timestamp_seconds",
        "Unix time of the last successful pass of self-monitoring, at first of the process start.",
        monitor.began_at if monitor.passed_at is None else monitor.passed_at,
    )
    if not monitor.sends_heartbeats:
        return
    beats = CounterMetricFamily(
        "leadline_external_heartbeats_total",
        "Heartbeats to the external URL by outcome.",
        labels=["outcome"],
    )
    beats.add_metric(["sent"], monitor.beats)
    beats.add_metric(["failed"], monitor.failed_beats)
    yield beats
    if monitor.beat_at is not None:
        yield _instant(
            "leadline_external_heartbeat_last_success_timestamp_seconds",
            "Unix time of the last heartbeat that the external URL accepted.",
            monitor.beat_at,
        )


def _instant(name: str, text: str, at: int) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=at / 1e6)
