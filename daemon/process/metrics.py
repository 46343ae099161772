"""Prometheus metrics of the daemon, in a separate registry. No label contains a target.

Labels have slugs of monitors only if `metrics.monitors` is set.

Values that other components keep are read at the scrape, so that no hot path updates a gauge.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.registry import Collector

from ...http.wire.app_context import AppContext
from ...http.wire.request_metrics import BOUNDS, ChangeCounts, GateCounts
from ...probes.check.loop_lag import LATENESS_US
from ...storage.engine.pools import Pool, TransactionOutcome
from ..config.roles import PARTS, DaemonPart
from ..loops.outbox_leaser import BACKLOG_FRESH_US
from ..runtime.supervisor import Supervisor
from .monitor_metrics import monitor_families
from .self_metrics import self_families

if TYPE_CHECKING:
    from .wiring import Components

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
        self._counters: dict[tuple[str, TransactionOutcome], Counter] = {}

    def observe(self, name: str, seconds: float, outcome: TransactionOutcome) -> None:
        """Counts a finished transaction.

        The children are cached, because finding one by its labels costs three times as much as an
        increment.
        """
        histogram = self._children.get(name)
        if histogram is None:
            histogram = self._children[name] = self._durations.labels(name)
        histogram.observe(seconds)
        counter = self._counters.get((name, outcome))
        if counter is None:
            counter = self._counters[name, outcome] = self._outcomes.labels(name, outcome.value)
        counter.inc()

    def watch(self, house: "Components", supervisor: Supervisor) -> None:
        """Adds the metrics of the components of this process."""
        self._registry.register(_HouseCollector(house, supervisor))

    def watch_asked(self, context: AppContext) -> None:
        """Adds the metrics of gate evaluations and changes."""
        self._registry.register(_AskedCollector(context))

    def render(self) -> bytes:
        """Returns the metrics in the Prometheus text format."""
        return generate_latest(self._registry)


Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily


class _HouseCollector(Collector):
    def __init__(self, house: "Components", supervisor: Supervisor) -> None:
        self._house = house
        self._supervisor = supervisor

    def collect(self) -> Iterator[Family]:
        house = self._house
        yield _gauge(
            "leadline_recorder_queue_length", "Results not yet stored.", house.recorder.waiting
        )
        if DaemonPart.HTTP in PARTS[house.role]:
            yield _gauge("leadline_event_streams", "Open event streams.", len(house.bus))
        yield _gauge(
            "leadline_clock_ahead_seconds",
            "Lead of the product's clock over the database's clock, in seconds.",
            house.clock.skew_us / 1e6,
        )
        yield _counter(
            "leadline_component_restarts_total",
            "Restarts of components that failed.",
            self._supervisor.restarts,
        )
        stale = len(self._supervisor.heartbeats.stale())
        yield _gauge("leadline_loops_stalled", "Loops without a recent pass.", stale)
        yield from self._loop()
        yield from self._scheduling()
        yield from self._probing()
        yield from self._delivering()
        yield from self._watching()
        yield from self._evaluating()
        yield from self._keeping()
        yield from self._packing()
        yield from self._backing_up()
        yield from self._surveying()
        if house.sampler is not None and house.sampler.monitors is not None:
            yield from monitor_families(house.sampler.monitors)
        if house.self_monitor is not None:
            yield from self_families(house.self_monitor)
        yield from self._canaries()
        yield _pools(house.pools.loops, house.pools.http)

    def _canaries(self) -> Iterator[Family]:
        dispatcher = self._house.dispatcher
        if dispatcher is None:
            return
        stages = CounterMetricFamily(
            "leadline_canary_stages_total",
            "Finished stages of canary runs.",
            labels=["stage", "outcome"],
        )
        for (stage, end), count in sorted(dispatcher.stages.items()):
            stages.add_metric([stage, end], count)
        yield stages
        yield _counted(
            "leadline_canary_dispatch_refused_total",
            "Windows of canaries that were refused a run.",
            dispatcher.refused,
        )

    def _loop(self) -> Iterator[Family]:
        """Yields the event loop lag; a blocked loop delays all work of the process."""
        lag = self._house.reach.lag
        seen, buckets = 0, []
        for bound, count in zip([*LATENESS_US, None], lag.lateness, strict=True):
            seen += count
            buckets.append(("+Inf" if bound is None else str(bound / 1e6), seen))
        yield HistogramMetricFamily(
            "leadline_event_loop_lag_seconds",
            "Delay of the event loop's timer, in seconds, sampled 20 times a second during runs.",
            buckets=buckets,
            sum_value=lag.late_us / 1e6,
        )

    def _scheduling(self) -> Iterator[Family]:
        house = self._house
        if house.ticker is not None:
            yield _counter(
                "leadline_windows_reserved_total", "Windows reserved.", house.ticker.reserved
            )
            yield _counter(
                "leadline_failed_reservations_total", "Failed reservations.", house.ticker.failed
            )
            yield _gauge(
                "leadline_reservation_lag_seconds",
                "Lag of the reservation of windows behind the clock, in seconds.",
                house.ticker.lag_us() / 1e6,
            )
        if house.sealer is not None:
            missed = CounterMetricFamily(
                "leadline_windows_missed_total",
                "Windows settled without a result.",
                labels=["reason"],
            )
            for reason, count in sorted(house.sealer.missed.items()):
                missed.add_metric([reason], count)
            yield missed
        if house.composer is not None:
            evaluator = house.composer.evaluator
            yield _counter(
                "leadline_composite_results_total", "Results of composites.", evaluator.evaluated
            )
            yield _counter(
                "leadline_composites_withheld_total",
                "Windows of composites withheld because a member had no result.",
                evaluator.withheld,
            )
        if house.listener is not None:
            yield _counter(
                "leadline_pushes_missed_total",
                "Push deadlines that passed without a report.",
                house.listener.missed,
            )
        if house.service_sealer is not None:
            yield _counter(
                "leadline_service_seal_advances_total",
                "Advances of the sealed time of services.",
                house.service_sealer.sealed,
            )
        if house.repairer is not None:
            yield _counter(
                "leadline_figure_repairs_total",
                "Repairs of figures after late data.",
                house.repairer.repaired,
            )

    def _probing(self) -> Iterator[Family]:
        prober = self._house.prober
        if prober is None:
            return
        counts = prober.counts
        yield _counter("leadline_runs_started_total", "Runs started.", counts.started)
        yield _counter("leadline_runs_stored_total", "Results stored.", counts.stored)
        unknown = CounterMetricFamily(
            "leadline_runs_unknown_total", "Runs that failed for a local reason.", labels=["reason"]
        )
        for reason, count in sorted(counts.unknown.items()):
            unknown.add_metric([reason], count)
        yield unknown

    def _watching(self) -> Iterator[Family]:
        watcher = self._house.watcher
        if watcher is None:
            return
        counts = watcher.counts
        outages = CounterMetricFamily(
            "leadline_outage_notifications_total",
            "Notifications of outages.",
            labels=["kind"],
        )
        for kind in ("announced", "recovered", "reminded"):
            outages.add_metric([kind], getattr(counts, kind))
        yield outages
        held = CounterMetricFamily(
            "leadline_outage_suppressions_total",
            "Passes that left an outage without a notification.",
            labels=["reason"],
        )
        for reason, count in sorted(counts.held.items()):
            held.add_metric([reason], count)
        yield held
        steps = CounterMetricFamily(
            "leadline_escalation_steps_total", "Escalation steps taken.", labels=["subject"]
        )
        for subject, count in sorted(counts.escalated.items()):
            steps.add_metric([subject], count)
        yield steps
        yield _counted(
            "leadline_delegation_fail_open_total",
            "Outages that monitors announced although a service owns paging, by reason.",
            counts.failed_open,
        )

    def _evaluating(self) -> Iterator[Family]:
        evaluator = self._house.evaluator
        if evaluator is None:
            return
        yield _counter(
            "leadline_service_evaluations_total", "Evaluations of services.", evaluator.evaluated
        )
        yield _counter(
            "leadline_service_evaluation_errors_total",
            "Evaluations of services that raised an error.",
            evaluator.failed,
        )
        withheld = CounterMetricFamily(
            "leadline_service_alert_withheld_total",
            "Evaluations of unhealthy services that sent no page.",
            labels=["signal", "reason"],
        )
        for (signal, reason), count in sorted(evaluator.withheld.items()):
            withheld.add_metric([signal, reason], count)
        yield withheld
        yield _counted(
            "leadline_service_incidents_total",
            "Service incidents opened and resolved, by action.",
            evaluator.acts,
            label="action",
        )

    def _keeping(self) -> Iterator[Family]:
        """Yields the span of the gate partitions, relative to the instant of the scrape.

        The remaining time shrinks while no process creates partitions. A process without the
        janitor updates the span only at its start, and therefore does not report it.
        """
        kept, now = self._house.janitor.gate_ledger, self._house.clock.now()
        if kept is None or DaemonPart.JANITOR not in PARTS[self._house.role]:
            return
        yield _gauge(
            "leadline_gate_ledger_ahead_seconds",
            "Time for which partitions of gate decisions exist, in seconds.",
            (kept.until - now) / 1e6,
        )
        yield _gauge(
            "leadline_gate_ledger_kept_seconds",
            "Age of the oldest gate decision that is kept, in seconds.",
            (now - kept.from_) / 1e6,
        )

    def _packing(self) -> Iterator[Family]:
        packer = self._house.packer
        if packer is None:
            return
        yield _counter(
            "leadline_packed_rows_total",
            "Results and ledger rows packed by this process.",
            packer.packed_rows,
        )
        if packer.failures is not None:
            yield _gauge(
                "leadline_packing_failures",
                "Days of monitors that were not packed as usual and use more space.",
                packer.failures,
            )
        if packer.days_left is not None:
            yield _gauge(
                "leadline_packing_backlog",
                "Closed days that are old enough and not packed yet.",
                packer.days_left,
            )

    def _backing_up(self) -> Iterator[Family]:
        """Yields the age of the newest verified backup, which rises until the next one."""
        sampler = self._house.sampler
        if sampler is None or sampler.newest_backup is None:
            return
        yield _gauge(
            "leadline_backup_verified_age_seconds",
            "Age of the newest verified backup of the schedule, in seconds.",
            max(self._house.clock.now() - sampler.newest_backup, 0) / 1e6,
        )

    def _surveying(self) -> Iterator[Family]:
        """Yields the load by region from the last sample, unless that is too old.

        Jobs that were pending in the sample count as still pending.
        """
        surveyor = self._house.surveyor
        if surveyor is None or surveyor.seen is None:
            return
        seen, now = surveyor.seen, self._house.clock.now()
        pending = GaugeMetricFamily(
            "leadline_pull_pending_jobs",
            "Due runs that no agent has claimed.",
            labels=["region"],
        )
        lag = GaugeMetricFamily(
            "leadline_pull_agent_lag_seconds",
            "Age of the oldest due run that no agent has claimed, in seconds.",
            labels=["region"],
        )
        probing = GaugeMetricFamily(
            "leadline_region_live_probers",
            "Processes and agents that probe in a region.",
            labels=["region", "kind"],
        )
        for load in seen.regions:
            pending.add_metric([load.name], load.pending_jobs)
            lag.add_metric([load.name], (load.lag_us(now) or 0) / 1e6)
            probing.add_metric([load.name, "worker"], load.workers)
            probing.add_metric([load.name, "agent"], load.agents)
        yield pending
        yield lag
        yield probing

    def _delivering(self) -> Iterator[Family]:
        leaser = self._house.leaser
        if leaser is None:
            return
        ended = CounterMetricFamily(
            "leadline_deliveries_total",
            "Delivery attempts by outcome; dead counts events that failed for the last time.",
            labels=["kind", "outcome"],
        )
        for (kind, outcome), count in sorted(leaser.counts.items()):
            ended.add_metric([kind, outcome], count)
        yield ended
        backlog = leaser.backlog
        if backlog is None:
            return
        yield _gauge("leadline_outbox_pending", "Events waiting for delivery.", backlog.pending)
        yield _gauge("leadline_outbox_dead", "Events that failed for the last time.", backlog.dead)
        yield _gauge(
            "leadline_outbox_destinations_failing",
            "Destinations whose last delivery failed.",
            backlog.failing,
        )
        yield _gauge(
            "leadline_outbox_oldest_due_seconds",
            "Age of the oldest event that is due and not blocked by its destination, in seconds; "
            "with no such event, the time beyond 30 s since the outbox was last counted.",
            backlog.oldest_us(self._house.clock.now(), BACKLOG_FRESH_US) / 1e6,
        )


class _AskedCollector(Collector):
    def __init__(self, context: AppContext) -> None:
        self._context = context

    def collect(self) -> Iterator[Family]:
        yield from _gate(self._context.gate_counts)
        yield from _changes(self._context.change_counts)


def _gate(counts: GateCounts) -> Iterator[Family]:
    decisions = CounterMetricFamily(
        "leadline_gate_decisions_total",
        "Gate decisions, and whether an override changed the action.",
        labels=["state", "action", "overridden"],
    )
    for (state, action, overridden), count in sorted(
        counts.decisions.items(), key=lambda item: str(item[0])
    ):
        decisions.add_metric([state, action or "none", str(overridden).lower()], count)
    yield decisions
    buckets, sum_so_far = [], 0
    for bound, count in zip((*map(str, BOUNDS), "+Inf"), counts.took, strict=True):
        sum_so_far += count
        buckets.append((bound, float(sum_so_far)))
    yield HistogramMetricFamily(
        "leadline_gate_decision_duration_seconds",
        "Duration of a gate decision, including its stored row, in seconds.",
        buckets=buckets,
        sum_value=counts.took_seconds,
    )
    yield _counted(
        "leadline_gate_evaluate_rejected_total",
        "Evaluations of the gate that were turned away.",
        counts.rejected,
    )
    yield _counted(
        "leadline_gate_errors_total",
        "Evaluations of the gate that no answer could be given to.",
        counts.errors,
    )


def _changes(counts: ChangeCounts) -> Iterator[Family]:
    yield _counted(
        "leadline_changes_recorded_total",
        "Phases of changes recorded or replayed, by outcome.",
        counts.recorded,
        "outcome",
    )
    yield _counted(
        "leadline_change_record_rejected_total",
        "Phases of changes that were not taken.",
        counts.rejected,
    )
    yield _counted(
        "leadline_change_compares_total",
        "Comparisons of the time before a change with that after it.",
        counts.compares,
        "outcome",
    )
    yield _counter(
        "leadline_change_correlations_total",
        "Changes and incidents shown with each other.",
        counts.correlations,
    )


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)


def _counter(name: str, text: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(name, text, value=value)


def _counted(
    name: str, text: str, counts: Mapping[str, int], label: str = "reason"
) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=[label])
    for value, count in sorted(counts.items()):
        family.add_metric([value], count)
    return family


def _pools(*pools: Pool) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "leadline_pool_connections", "Connections by pool and state.", labels=["pool", "state"]
    )
    for pool in pools:
        counts = pool.counts()
        for state in ("open", "idle", "waiting"):
            family.add_metric([pool.name, state], getattr(counts, state))
    return family
