"""Current status and last 90 days of the components of a status page."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

import msgspec

from ...core.availability import Availability, figure
from ...core.instant import DAY, Instant
from ...core.key import MonitorKey
from ...core.sli import total
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ...figures.queries.availability import Days, select_days
from ...monitors.queries.monitors import MonitorStatusRow, held_until, select_standings, status_of
from ...monitors.rules.monitor_state import MonitorStatus
from ...scheduling.queries import shards
from ...scheduling.rules.maintenance_window import is_in_maintenance
from ...services.queries.service_health import HealthNow, select_health_now
from ...services.queries.service_reports import EpochSum, select_windows
from ...services.queries.service_reports import select_days as select_service_days
from ...services.rows import ServiceRow
from ...services.rules.service_health import ServiceHealthState
from ...services.rules.service_report import ReportWindow
from ...services.tables.services import COLUMNS, FROM
from ..rows import ComponentRow
from ..rules.component_latency import PLOTS_MOST, latency_of, latency_span, measures_latency
from ..rules.status_page import (
    DAYS,
    ComponentDay,
    ComponentFacts,
    ComponentMeasurement,
    ComponentSource,
    ComponentStatus,
    NoDataReason,
    Now,
    of_health,
)
from .component_latency import select_latency_points

_WINDOW: Final = "90d"
_MONITORS: Final = """
select m.org, m.id, m.uid, m.type, m.enabled from monitors m
where m.org = %(org)s and m.id = any(%(ids)s::int[])
"""
_SERVICES: Final = f"select {COLUMNS} {FROM} where s.org = %(org)s and s.id = any(%(ids)s::int[])"


class BoundComponent(msgspec.Struct, frozen=True, kw_only=True):
    """Existing or proposed component.

    A monitor or service source without a binding means that the object was deleted.

    """

    uid: UUID
    name: str
    description: str
    group: str
    source: str
    monitor: int | None
    service: int | None
    manual_status: str | None
    show_latency: bool
    updated_at: Instant


class _Monitor(msgspec.Struct, frozen=True):
    org: int
    id: int
    uid: UUID
    type: str
    enabled: bool


async def select_component_facts(
    tx: Tx,
    org: int,
    bindings: Sequence[BoundComponent],
    *,
    latency: bool = False,
    days: bool = True,
) -> list[ComponentFacts]:
    """Returns the facts of each component, in the order given; without `days` only their status."""
    monitors = await _of_monitors(
        tx, org, {b.monitor for b in bindings if b.monitor is not None}, with_days=days
    )
    services = await _of_services(
        tx, org, {b.service for b in bindings if b.service is not None}, with_days=days
    )
    facts = [_facts(binding, monitors, services) for binding in bindings]
    return await _with_latency(tx, org, bindings, facts) if latency else facts


async def _with_latency(
    tx: Tx, org: int, bindings: Sequence[BoundComponent], facts: Sequence[ComponentFacts]
) -> list[ComponentFacts]:
    """Adds the latency of the components that show it, at most PLOTS_MOST."""
    shown = [binding for binding in bindings if binding.show_latency][:PLOTS_MOST]
    ids = sorted({binding.monitor for binding in shown if binding.monitor is not None})
    rows = await tx.structs(_Monitor, _MONITORS, org=org, ids=ids)
    span = latency_span(tx.now)
    able = [row.id for row in rows if measures_latency(row.type)]
    points = await select_latency_points(tx, org, able, span)
    maintenance = await shards.select_maintenances(tx, span.from_, monitors=able) if able else {}
    uids = {binding.uid: binding.monitor for binding in shown}
    return [
        replace(one, latency=latency_of(uids[one.uid], points, maintenance, tx.now))
        if one.uid in uids
        else one
        for one in facts
    ]


Found = tuple[UUID, Now, ComponentMeasurement | None]


def _facts(
    binding: BoundComponent, monitors: Mapping[int, Found], services: Mapping[int, Found]
) -> ComponentFacts:
    found: Found | None = None
    if binding.monitor is not None:
        found = monitors.get(binding.monitor)
    elif binding.service is not None:
        found = services.get(binding.service)
    now = Now(ComponentStatus.NO_DATA, NoDataReason.NOT_BOUND) if found is None else found[1]
    if binding.manual_status is not None:
        now = _by_hand(ComponentStatus(binding.manual_status))
    return ComponentFacts(
        uid=binding.uid,
        name=binding.name,
        description=binding.description,
        group=binding.group,
        source=ComponentSource(binding.source),
        anchor=None if found is None else found[0],
        now=now,
        measured=None if found is None else found[2],
        updated_at=binding.updated_at,
    )


def _by_hand(status: ComponentStatus) -> Now:
    return Now(status, NoDataReason.SET_BY_HAND if status is ComponentStatus.NO_DATA else None)


async def _of_monitors(tx: Tx, org: int, ids: set[int], *, with_days: bool) -> dict[int, Found]:
    if not ids:
        return {}
    rows = await tx.structs(_Monitor, _MONITORS, org=org, ids=sorted(ids))
    types = {MonitorKey((row.org, row.id)): row.type for row in rows}
    standings = await select_standings(tx, list(types), counted=False)
    # Also maintenance that is over: it ended the freshness of earlier results.
    since = min((s.last_at for s in standings.values() if s.last_at is not None), default=tx.now)
    maintenance = await shards.select_maintenances(
        tx, min(since, tx.now), monitors=[row.id for row in rows]
    )
    days = await select_days(tx, types, tx.now, DAYS) if with_days else {}
    return {
        row.id: (
            row.uid,
            _monitor_now(
                row, standings.get(MonitorKey((org, row.id))), maintenance.get(row.id, ()), tx.now
            ),
            _monitor_measured(days[MonitorKey((org, row.id))], tx.now) if days else None,
        )
        for row in rows
    }


def _monitor_now(
    row: _Monitor, standing: MonitorStatusRow | None, maintenance: Sequence[TimeSpan], now: Instant
) -> Now:
    if is_in_maintenance(now, maintenance):
        return Now(ComponentStatus.MAINTENANCE)
    if not row.enabled:
        return Now(ComponentStatus.NO_DATA, NoDataReason.PAUSED)
    match status_of(standing, row.type, now, maintenance):
        case MonitorStatus.UP:
            return Now(ComponentStatus.OPERATIONAL)
        case MonitorStatus.DOWN:
            return Now(ComponentStatus.MAJOR_OUTAGE)
        case MonitorStatus.PENDING:
            if standing is None or standing.last_at is None:
                return Now(ComponentStatus.NO_DATA, NoDataReason.NO_RESULT_YET)
            held = held_until(standing, row.type, now, maintenance)
            is_fresh = held is not None and held > now
            why = NoDataReason.NO_RESULT_YET if is_fresh else NoDataReason.NO_FRESH_RESULT
            return Now(ComponentStatus.NO_DATA, why)


def _monitor_measured(days: Days, now: Instant) -> ComponentMeasurement:
    whole = total(measured.split for _, measured in days.days)
    begun, mark = days.begun, days.watermark
    sealed = begun is not None and mark is not None and mark > begun
    return ComponentMeasurement(
        figure=figure(whole, sealed=sealed),
        split=whole,
        sample=sum(measured.total for _, measured in days.days),
        since=_since(begun, now),
        days=[ComponentDay(day, found.split, total=found.total) for day, found in days.days],
    )


async def _of_services(tx: Tx, org: int, ids: set[int], *, with_days: bool) -> dict[int, Found]:
    if not ids:
        return {}
    rows = await tx.structs(ServiceRow, _SERVICES, org=org, ids=sorted(ids))
    health = await select_health_now(tx, [row.key for row in rows])
    if not with_days:
        return {row.id: (row.uid, _service_now(health[row.key]), None) for row in rows}
    windows = await select_windows(tx, rows, _WINDOW)
    first = Instant(_today(tx.now) - (DAYS - 1) * DAY)
    days = await select_service_days(tx, rows, first)
    return {
        row.id: (
            row.uid,
            _service_now(health[row.key]),
            _service_measured(row, windows[row.key], days[row.key], tx.now),
        )
        for row in rows
    }


def _service_now(health: HealthNow) -> Now:
    if health.state is None:
        return Now(ComponentStatus.NO_DATA, NoDataReason.NOT_DECLARED)
    return of_state(health.state)


def of_state(state: ServiceHealthState) -> Now:
    return of_health(state.health)


def _service_measured(
    row: ServiceRow, window: ReportWindow, days: Mapping[Instant, EpochSum], now: Instant
) -> ComponentMeasurement:
    split = window.durations.split
    percent = None if window.availability is None else figure(split).uptime_percent
    today = _today(now)
    found = [
        (day, days.get(day)) for day in (Instant(today - n * DAY) for n in reversed(range(DAYS)))
    ]
    return ComponentMeasurement(
        figure=Availability(percent, float(window.coverage), window.aggregate_withheld),
        split=split,
        sample=window.sealed_minutes,
        since=_since(row.materialization_start, now),
        days=[_service_day(day, sealed) for day, sealed in found],
    )


def _service_day(day: Instant, sealed: EpochSum | None) -> ComponentDay:
    if sealed is None:
        return ComponentDay(day, total([]))
    split = sealed.durations.split
    return ComponentDay(day, split, degraded_us=sealed.durations.degraded_us, total=sealed.minutes)


def _today(now: Instant) -> Instant:
    return Instant(now - now % DAY)


def _since(begun: Instant | None, now: Instant) -> Instant | None:
    """Returns the begin if it is within the days that are shown."""
    return begun if begun is not None and begun > _today(now) - (DAYS - 1) * DAY else None


_COLUMNS = """
c.org, c.id, c.uid, o.uid, c.page, g.uid, c.name, c.description, c.group_name, c.position, c.source,
c.monitor, m.uid, c.service, s.uid, c.manual_status, p.id, p.uid, c.revision, c.created_at,
c.updated_at, c.show_latency, m.type
"""

_FROM = """
from status_components c join organizations o on o.id = c.org
  join status_pages g on g.org = c.org and g.id = c.page
  left join monitors m on m.org = c.org and m.id = c.monitor
  left join services s on s.org = c.org and s.id = c.service
  left join projects p on p.org = c.org and p.id = coalesce(m.project, s.project)
"""

_BY_UID = f"select {_COLUMNS} {_FROM} where c.uid = %(uid)s"

_OF_PAGE = f"""
select {_COLUMNS} {_FROM} where c.org = %(org)s and c.page = %(page)s order by c.position, c.id
"""


async def select_component(tx: Tx, uid: UUID) -> ComponentRow | None:
    return await tx.one(ComponentRow, _BY_UID, uid=uid)


async def select_components_of(tx: Tx, org: int, page: int) -> list[ComponentRow]:
    """Returns the components in the order of the page."""
    return await tx.structs(ComponentRow, _OF_PAGE, org=org, page=page)
