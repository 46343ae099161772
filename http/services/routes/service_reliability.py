"""Reliability figures of a service by window and over time, and its current health.

A figure that cannot be computed is absent, with a reason.
"""

from typing import Final

import msgspec

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.availability import OBJECTIVE_SCALE, ErrorBudget, percent
from ....storage.core.instant import DAY, Instant, to_text
from ....storage.engine.pools import Tx
from ....storage.objectives.queries.burn_rules import select_rules_of_services
from ....storage.objectives.queries.service_targets import select_service_targets
from ....storage.objectives.rows import ServiceTargetRow
from ....storage.objectives.rules import DEFAULT_RULES
from ....storage.services.queries.service_reports import (
    Repair,
    SeriesPoint,
    select_burns,
    select_repairing,
    select_series,
    select_window,
)
from ....storage.services.rows import ServiceRow
from ....storage.services.rules.service_health import Durations
from ....storage.services.rules.service_report import BurnWindow, ReportWindow, Segment
from ...wire.errors import Problem
from ...wire.route import Request, Route
from ...wire.schema import known
from ...wire.time_params import instant_given
from ..schemas.reliability import (
    ReliabilityDurations,
    ReliabilitySegment,
    ReliabilitySeriesPoint,
    RepairingInterval,
    SeriesQuery,
    ServiceBudget,
    ServiceBurnWindow,
    ServiceSeries,
    ServiceWindowReport,
    WindowQuery,
)
from ..schemas.services import ServiceHealthNow, WindowName
from .service_json import healths_of, sealed_through, service_named

RANGE_MOST_US: Final = 90 * DAY
_ONE: Final = "/api/v1/projects/{projectID}/services/{serviceID}"


async def reliability(ask: Request) -> ServiceWindowReport:
    window: WindowName = ask.query.window
    async with ask.context.pool.transaction("service_reliability", read_only=True) as tx:
        row = await service_named(ask, tx)
        found = await select_window(tx, row, window)
        target = (await select_service_targets(tx, [row.key]))[row.key].get(window)
        burn = None if target is None else await _burn(tx, row, target)
        repairing = await select_repairing(tx, row)
        return _report(row, found, target, burn, repairing, tx.now, window)


async def _burn(tx: Tx, row: ServiceRow, target: ServiceTargetRow) -> list[BurnWindow]:
    """Returns burn rates for the windows of the target's rules or of the default rules."""
    kept = (await select_rules_of_services(tx, [row.key])).get(row.key, {}).get(target.window, [])
    rules = [each.rule for each in kept] or DEFAULT_RULES
    lengths = sorted({length for rule in rules for length in (rule.short_us, rule.long_us)})
    return (await select_burns(tx, [(row, target.objective, lengths)]))[row.key]


def _report(
    row: ServiceRow,
    found: ReportWindow,
    target: ServiceTargetRow | None,
    burn: list[BurnWindow] | None,
    repairing: list[Repair],
    now: Instant,
    window: WindowName,
) -> ServiceWindowReport:
    sealed = sealed_through(row)
    budget = None if target is None else found.budget(target.objective)
    reason = found.reason
    if budget is not None and not isinstance(budget, ErrorBudget):
        reason = reason or budget
    available = found.availability
    return ServiceWindowReport(
        service_id=row.uid,
        window=window,
        as_of=to_text(now),
        sealed_through=None if sealed is None else to_text(sealed),
        from_=to_text(found.from_),
        to=to_text(found.to),
        status=found.status,
        reason=known(reason),
        storage_continuity=found.is_continuous,
        expected_buckets=found.expected_minutes,
        sealed_buckets=found.sealed_minutes,
        coverage=float(found.coverage),
        durations=_durations(found.durations),
        availability=known(None if available is None else percent(available)),
        aggregate_withheld=known(found.aggregate_withheld),
        objective=known(None if target is None else target.objective / OBJECTIVE_SCALE),
        objective_updated_at=known(None if target is None else to_text(target.updated_at)),
        budget=known(_budget(budget, target)),
        burn=known(None if burn is None else [_burn_window(each) for each in burn]),
        segments=[_segment(each) for each in found.segments],
        repairing=[
            RepairingInterval(from_=to_text(each.from_), to=to_text(each.to)) for each in repairing
        ],
    )


def _budget(budget: object, target: ServiceTargetRow | None) -> ServiceBudget | None:
    if target is None or not isinstance(budget, ErrorBudget):
        return None
    return ServiceBudget(
        objective=budget.objective,
        objective_updated_at=to_text(target.updated_at),
        allowed_downtime_ratio=budget.allowed_downtime_ratio,
        actual_downtime_ratio=budget.actual_downtime_ratio,
        remaining_ratio=budget.remaining_ratio,
        burned_percent=budget.burned_percent,
        met=budget.met,
    )


def _burn_window(burn: BurnWindow) -> ServiceBurnWindow:
    return ServiceBurnWindow(
        window=burn.window,
        status=burn.status,
        reason=known(burn.reason),
        expected_buckets=burn.expected_minutes,
        sealed_buckets=burn.sealed_minutes,
        storage_continuity=burn.is_continuous,
        coverage=float(burn.coverage),
        rate=known(None if burn.rate is None else float(burn.rate)),
    )


def _segment(segment: Segment) -> ReliabilitySegment:
    split = segment.durations.split
    available = split.availability()
    return ReliabilitySegment(
        revision_id=segment.revision_uid,
        revision=segment.revision,
        epoch_id=segment.epoch_uid,
        epoch_seq=segment.epoch,
        from_=to_text(segment.from_),
        to=to_text(segment.to),
        buckets=segment.minutes,
        durations=_durations(segment.durations),
        availability=known(None if available is None else percent(available)),
        coverage=float(split.coverage() or 0),
        declared_reconstruction=segment.is_reconstruction,
    )


def _durations(durations: Durations) -> ReliabilityDurations:
    return ReliabilityDurations(**msgspec.structs.asdict(durations))


async def series(ask: Request) -> ServiceSeries:
    query: SeriesQuery = ask.query
    if query.from_ is None or query.to is None or query.step is None:
        raise Problem("range_required")
    from_at, to_at = instant_given("from", query.from_), instant_given("to", query.to)
    if to_at <= from_at:
        raise Problem("range_invalid")
    if to_at - from_at > RANGE_MOST_US:
        raise Problem("range_too_wide")
    async with ask.context.pool.transaction("service_series", read_only=True) as tx:
        row = await service_named(ask, tx)
        points = await select_series(tx, row, from_at, to_at, query.step)
    return ServiceSeries(
        from_=to_text(from_at),
        to=to_text(to_at),
        step=query.step,
        points=[_point(each) for each in points],
    )


def _point(point: SeriesPoint) -> ReliabilitySeriesPoint:
    return ReliabilitySeriesPoint(
        start=to_text(point.start),
        epoch_id=point.epoch_uid,
        revision_id=point.revision_uid,
        provisional=point.provisional,
        buckets=point.minutes,
        durations=_durations(point.durations),
    )


async def health(ask: Request) -> ServiceHealthNow:
    async with ask.context.pool.transaction("service_health", read_only=True) as tx:
        row = await service_named(ask, tx)
        return (await healths_of(tx, [row.key]))[row.key]


_VIEW: Final = Permission(Need.VIEWER)
_SERVICE: Final = ("service", "serviceID")

ROUTES: Final = (
    Route(
        method="GET",
        path=f"{_ONE}/reliability",
        action=_VIEW,
        scope=_SERVICE,
        handler=reliability,
        summary="A window's figures: availability, budget, burn; withheld with their reasons.",
        tag="service_reliability",
        query=WindowQuery,
        answer=ServiceWindowReport,
    ),
    Route(
        method="GET",
        path=f"{_ONE}/reliability/series",
        action=_VIEW,
        scope=_SERVICE,
        handler=series,
        summary="Sealed figures by hour or day; from, to and step are required.",
        tag="service_reliability",
        query=SeriesQuery,
        answer=ServiceSeries,
    ),
    Route(
        method="GET",
        path=f"{_ONE}/health",
        action=_VIEW,
        scope=_SERVICE,
        handler=health,
        summary="Current health of a service from the last results of its members.",
        tag="service_reliability",
        answer=ServiceHealthNow,
    ),
)
