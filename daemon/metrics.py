"""What the daemon counts of itself, in a registry of its own; nothing here names a target.

Values that other parts keep are read when somebody asks, so that no hot path pays for a gauge.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from ..storage.pools import Outcome, Pool
from .supervisor import Beats, Supervisor

if TYPE_CHECKING:
    from .wiring import House

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Metrics:
    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        self._durations = Histogram(
            "leadline_transaction_duration_seconds",
            "Time a transaction took, by its name.",
            ["name"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._outcomes = Counter(
            "leadline_transactions_total",
            "Transactions by name and by how they ended.",
            ["name", "outcome"],
            registry=self._registry,
        )
        self._children: dict[str, Histogram] = {}
        self._counters: dict[tuple[str, Outcome], Counter] = {}

    def observe(self, name: str, seconds: float, outcome: Outcome) -> None:
        """One transaction ended. The children are kept: finding one by labels costs three times
        what counting does."""
        histogram = self._children.get(name)
        if histogram is None:
            histogram = self._children[name] = self._durations.labels(name)
        histogram.observe(seconds)
        counter = self._counters.get((name, outcome))
        if counter is None:
            counter = self._counters[name, outcome] = self._outcomes.labels(name, outcome.value)
        counter.inc()

    def watch(self, house: "House", beats: Beats, supervisor: Supervisor) -> None:
        """From now on what the parts of the house keep is told too."""
        self._registry.register(_HouseCollector(house, beats, supervisor))

    def render(self) -> bytes:
        """The Prometheus text format."""
        return generate_latest(self._registry)


Family = CounterMetricFamily | GaugeMetricFamily


class _HouseCollector(Collector):
    def __init__(self, house: "House", beats: Beats, supervisor: Supervisor) -> None:
        self._house = house
        self._beats = beats
        self._supervisor = supervisor

    def collect(self) -> Iterator[Family]:
        house = self._house
        yield _gauge("leadline_recorder_waiting", "Results not yet stored.", house.recorder.waiting)
        yield _gauge("leadline_event_listeners", "Open event streams.", len(house.bus))
        yield _gauge(
            "leadline_clock_ahead_seconds",
            "How far the product's clock is ahead of the database's.",
            house.clock.skew_us / 1e6,
        )
        yield _counter("leadline_restarts_total", "Parts begun again.", self._supervisor.restarts)
        yield _gauge("leadline_loops_stale", "Loops that stand still.", len(self._beats.stale()))
        yield from self._scheduling()
        yield from self._probing()
        yield _pools(house.pools.loops, house.pools.http)

    def _scheduling(self) -> Iterator[Family]:
        house = self._house
        if house.ticker is not None:
            yield _counter(
                "leadline_windows_reserved_total", "Windows reserved.", house.ticker.reserved
            )
            yield _gauge(
                "leadline_reservation_lag_seconds",
                "How far reservation is behind the clock.",
                house.ticker.lag_us / 1e6,
            )
        if house.sealer is not None:
            missed = CounterMetricFamily(
                "leadline_windows_missed_total", "Windows without a result.", labels=["reason"]
            )
            for reason, count in sorted(house.sealer.missed.items()):
                missed.add_metric([reason], count)
            yield missed
        if house.composer is not None:
            evaluator = house.composer.evaluator
            yield _counter(
                "leadline_composites_evaluated_total",
                "Results of composites.",
                evaluator.evaluated,
            )
            yield _counter(
                "leadline_composites_withheld_total",
                "Windows of composites whose members left them open.",
                evaluator.withheld,
            )
        if house.listener is not None:
            yield _counter(
                "leadline_pushes_missed_total", "Deadlines of pushes missed.", house.listener.missed
            )
        if house.repairer is not None:
            yield _counter(
                "leadline_restatements_total", "Stretches restated.", house.repairer.repaired
            )

    def _probing(self) -> Iterator[Family]:
        prober = self._house.prober
        if prober is None:
            return
        counts = prober.counts
        yield _counter("leadline_runs_started_total", "Probes begun.", counts.started)
        yield _counter("leadline_runs_stored_total", "Results stored.", counts.stored)
        unknown = CounterMetricFamily(
            "leadline_runs_unknown_total", "Runs that could not be made.", labels=["reason"]
        )
        for reason, count in sorted(counts.unknown.items()):
            unknown.add_metric([reason], count)
        yield unknown


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)


def _counter(name: str, text: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(name, text, value=value)


def _pools(*pools: Pool) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "leadline_pool_connections", "Connections by pool and state.", labels=["pool", "state"]
    )
    for pool in pools:
        counts = pool.counts()
        for state in ("open", "idle", "waiting"):
            family.add_metric([pool.name, state], getattr(counts, state))
    return family
