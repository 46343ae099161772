"""Availability over windows compared with objectives: of a monitor, and of a project."""

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.availability import OBJECTIVE_SCALE, ErrorBudget, budget, figure
from ....storage.core.instant import DAY, SECOND, Instant, to_text
from ....storage.core.refusal import Refused
from ....storage.figures.queries.availability import Days, WindowTime, select_days, select_windows
from ....storage.figures.queries.latency_windows import LatencyWindow, select_latency_windows
from ....storage.figures.queries.monitor_time import MonitorTime
from ....storage.figures.queries.project_availability import (
    ProjectTime,
    select_project_days,
    select_project_windows,
)
from ....storage.monitors.queries.monitors import select_monitor, select_standings, status_of
from ....storage.objectives.queries import burn_rules as burn_rules_queries
from ....storage.objectives.queries import monitor_targets as monitor_targets_queries
from ....storage.objectives.queries import project_targets as project_targets_queries
from ....storage.objectives.rows import BurnRuleRow, MonitorTarget, ProjectTarget
from ....storage.scheduling.queries.shards import select_maintenances
from ....storage.services.rules.service_report import WINDOWS
from ...monitors.routes.monitor_results import DaysQuery, daily
from ...monitors.schemas.monitors import DailyAvailability
from ...wire.route import Request, Route
from ...wire.schema import known
from ...wire.scope_keys import org_of, project_of
from .. import schemas
from ..schemas import BurnRule, MonitorSLA, ProjectSLA, WindowSLA


async def monitor_sla(ask: Request) -> MonitorSLA:
    async with ask.context.pool.transaction("monitor_sla", read_only=True) as tx:
        row = await select_monitor(tx, ask.ids["monitorID"])
        if row is None:
            raise Refused("not_found")
        key = row.key
        measured = (
            await select_windows(
                tx, {key: row.type}, list(WINDOWS.values()), ask.context.options.heartbeat_days
            )
        )[key]
        days = (await select_days(tx, {key: row.type}, tx.now, 1))[key]
        until = days.watermark or tx.now
        kept_from = Instant(tx.now - ask.context.options.heartbeat_days * DAY)
        # Older results can be packed, but are not part of the figures.
        sinces = [max(Instant(until - length), kept_from) for length in WINDOWS.values()]
        latency = await select_latency_windows(tx, key, sinces, until)
        targets = (await monitor_targets_queries.select_monitor_targets(tx, [key])).get(key, {})
        rules = (await burn_rules_queries.select_rules_of_monitors(tx, [key])).get(key, {})
        standing = (await select_standings(tx, [key], counted=False)).get(key)
        spans = (await select_maintenances(tx, tx.now, monitors=[row.id])).get(row.id, ())
        status = status_of(standing, row.type, tx.now, spans)
    return MonitorSLA(
        monitor_id=row.uid,
        status=status.value,
        windows=[
            _of_monitor(window, measured[n], days, latency[n], sinces[n], kept_from, target, owned)
            for n, window in enumerate(WINDOWS)
            for target, owned in [(targets.get(window), rules.get(window, ()))]
        ],
    )


def _of_monitor(
    window: str,
    measured: WindowTime,
    days: Days,
    latency: LatencyWindow | None,
    since: Instant,
    kept_from: Instant,
    target: MonitorTarget | None,
    rules: Sequence[BurnRuleRow],
) -> WindowSLA:
    begun = days.begun
    sealed = days.watermark is not None and begun is not None and days.watermark > begun
    latency_from = kept_from if begun is None else max(begun, kept_from)
    return _window(
        window,
        measured.measured,
        sealed=sealed,
        objective=None if target is None else target.objective,
        window_from=None if measured.from_ == since else measured.from_,
        burn=target is not None and target.burn_enabled,
        rules=rules,
        latency=latency,
        data_from=begun if begun is not None and begun > since else None,
        latency_from=latency_from if latency_from > since else None,
    )


def _window(
    window: str,
    measured: MonitorTime,
    *,
    sealed: bool,
    objective: int | None,
    burn: bool = False,
    rules: Sequence[BurnRuleRow] = (),
    latency: LatencyWindow | None = None,
    data_from: Instant | None = None,
    latency_from: Instant | None = None,
    window_from: Instant | None = None,
) -> WindowSLA:
    said = figure(measured.split, sealed=sealed)
    error_budget = None
    reason = said.withheld_reason
    if objective is not None and sealed:
        found = budget(measured.split, objective)
        error_budget = _budget(found) if isinstance(found, ErrorBudget) else None
        # The budget can be withheld although the figure is not.
        reason = reason or (None if isinstance(found, ErrorBudget) else found)
    return WindowSLA(
        window=window,  # type: ignore[arg-type]
        total=measured.total,
        up=measured.up,
        uptime_percent=known(said.uptime_percent),
        coverage=said.coverage,
        withheld_reason=known(reason.value if reason is not None else None),
        avg_latency_ms=UNSET if latency is None else latency.avg_ms,
        p95_latency_ms=UNSET if latency is None else latency.p95_ms,
        objective=UNSET if objective is None else objective / OBJECTIVE_SCALE,
        error_budget=known(error_budget),
        burn_alert=burn,
        burn_firing=any(row.firing for row in rules),
        burn_rules=[rule_json(row) for row in rules],
        data_from=known(to_text(data_from) if data_from is not None else None),
        latency_from=known(to_text(latency_from) if latency_from is not None else None),
        window_from=known(to_text(window_from) if window_from is not None else None),
    )


def _budget(found: ErrorBudget) -> schemas.ErrorBudget:
    return schemas.ErrorBudget(
        objective=found.objective,
        allowed_downtime_ratio=found.allowed_downtime_ratio,
        actual_downtime_ratio=found.actual_downtime_ratio,
        remaining_ratio=found.remaining_ratio,
        burned_percent=found.burned_percent,
        met=found.met,
    )


def rule_json(row: BurnRuleRow) -> BurnRule:
    return BurnRule(
        long_window_seconds=row.rule.long_us // SECOND,
        short_window_seconds=row.rule.short_us // SECOND,
        threshold=float(row.rule.threshold),
        severity=row.rule.severity.value,
        runbook_url=known(row.rule.runbook_url or None),
        firing=row.firing,
    )


async def project_sla(ask: Request) -> ProjectSLA:
    org, project = org_of(ask), project_of(ask)
    async with ask.context.pool.transaction("project_sla", read_only=True) as tx:
        found = await select_project_windows(tx, org, project, list(WINDOWS.values()))
        targets = await project_targets_queries.select_project_targets(tx, org, project)
        weekly = await project_targets_queries.is_reported_weekly(tx, org, project)
    return ProjectSLA(
        project_id=ask.ids["projectID"],
        windows=[
            _of_project(window, found.windows[n], found, target)
            for n, window in enumerate(WINDOWS)
            for target in [targets.get(window)]
        ],
        sla_report_weekly=weekly,
    )


def _of_project(
    window: str, measured: WindowTime, found: ProjectTime, target: ProjectTarget | None
) -> WindowSLA:
    since = None if found.until is None else Instant(found.until - WINDOWS[window])
    late = found.begun is not None and since is not None and found.begun > since
    return _window(
        window,
        measured.measured,
        sealed=measured.measured.split.range_us > 0,
        objective=None if target is None else target.objective,
        data_from=found.begun if late else None,
        window_from=None if late or measured.from_ == since else measured.from_,
    )


async def project_availability(ask: Request) -> list[DailyAvailability]:
    org, project = org_of(ask), project_of(ask)
    async with ask.context.pool.transaction("project_availability", read_only=True) as tx:
        today = Instant(tx.now - tx.now % DAY)
        first = Instant(today - (ask.query.days - 1) * DAY)
        found = await select_project_days(tx, org, project, first)
        order = [Instant(first + n * DAY) for n in range(ask.query.days)]
        kept_from = Instant(tx.now - ask.context.options.heartbeat_days * DAY)
    days = [(day, found.days.get(day, MonitorTime.nothing())) for day in order]
    return daily(Days(days, found.begun, found.until), kept_from)


_VIEW: Final = Permission(Need.VIEWER)
_MONITOR: Final = ("monitor", "monitorID")
_PROJECT: Final = ("project", "projectID")

ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/monitors/{monitorID}/sla",
        action=_VIEW,
        scope=_MONITOR,
        handler=monitor_sla,
        summary="Availability of a monitor over four windows, with latency and error budgets.",
        tag="sla",
        answer=MonitorSLA,
    ),
    Route(
        method="GET",
        path="/api/v1/projects/{projectID}/sla",
        action=_VIEW,
        scope=_PROJECT,
        handler=project_sla,
        summary="Availability of a project's monitors together, from hours and days.",
        tag="sla",
        answer=ProjectSLA,
    ),
    Route(
        method="GET",
        path="/api/v1/projects/{projectID}/availability",
        action=_VIEW,
        scope=_PROJECT,
        handler=project_availability,
        summary="Availability of a project's monitors together by day in UTC, oldest first.",
        tag="sla",
        query=DaysQuery,
        answer=list[DailyAvailability],
    ),
)
