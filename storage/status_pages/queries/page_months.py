"""Calendar month of a service, and of the components of a status page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...core.instant import MINUTE, Instant
from ...core.key import MonitorKey
from ...core.sli import Split
from ...core.time_span import TimeSpan, clipped, total_us
from ...engine.pools import Tx
from ...figures.queries.month_sums import select_span_times
from ...services.queries.service_reports import select_sum
from ...services.rows import ServiceRow
from ...services.tables.services import COLUMNS, FROM
from ..rules.page_month import MonthFigure, covered_part, month_figure
from .status_page_components import BoundComponent

_TYPES: Final = """
select id, type from monitors where org = %(org)s and id = any(%(ids)s::int[])
"""
_SERVICES: Final = f"select {COLUMNS} {FROM} where s.org = %(org)s and s.id = any(%(ids)s::int[])"


@dataclass(frozen=True, slots=True)
class ComponentMonth:
    """Month of a component; None for a component without a monitor or service."""

    component: BoundComponent
    figure: MonthFigure | None


async def select_service_month(tx: Tx, service: ServiceRow, month: TimeSpan) -> MonthFigure:
    """Returns the figure of the sealed whole minutes of a service in the month."""
    covered = covered_part(month, service.materialization_start, service.sealed_through)
    if covered is None:
        return month_figure(None, 0, Split(), 0)
    found = await select_sum(tx, service.key, covered)
    stored_us, split = found.minutes * MINUTE, found.durations.split
    return month_figure(covered, stored_us, split, found.minutes, over_at=_over_at(tx, month))


async def select_component_months(
    tx: Tx, org: int, bindings: Sequence[BoundComponent], month: TimeSpan, raw_days: int
) -> list[ComponentMonth]:
    """Returns the month of each component, in the order given."""
    services = await tx.structs(
        ServiceRow, _SERVICES, org=org, ids=[b.service for b in bindings if b.service is not None]
    )
    figures = {("service", s.id): await select_service_month(tx, s, month) for s in services}
    rows = await tx.rows(
        _TYPES, org=org, ids=[b.monitor for b in bindings if b.monitor is not None]
    )
    types = {MonitorKey((org, key)): kind for key, kind in rows}
    for (_, key), one in (await select_span_times(tx, types, month, raw_days)).items():
        split = one.measured.split
        covered = covered_part(month, one.begun, one.through)
        edges = [] if covered is None else clipped(one.unmeasured, covered)
        figures["monitor", key] = month_figure(
            covered,
            split.range_us,
            split,
            one.measured.total,
            over_at=_over_at(tx, month),
            edge_us=total_us(edges),
        )
    return [
        ComponentMonth(
            b,
            figures.get(("service", b.service or 0)) or figures.get(("monitor", b.monitor or 0)),
        )
        for b in bindings
    ]


def _over_at(tx: Tx, month: TimeSpan) -> Instant | None:
    return month.until if month.until <= tx.now else None
