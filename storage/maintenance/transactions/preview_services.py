"""Preview of the effect of a maintenance on the sealed time of services.

The function that repairs the figures computes the preview from the same results, so that both
agree. If the computation takes too long or results are deleted, the effect is reported as unknown
and the present figures are returned.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from uuid import UUID

from ...core.instant import DAY, MINUTE, Instant
from ...core.key import ServiceKey
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ...figures.queries.monitor_time import AssumedMaintenance
from ...monitors.tables import compositions
from ...services.queries.service_reports import select_sum
from ...services.queries.service_time import minutes_of, select_governed
from ...services.rows import ServiceRow
from ...services.rules.service_health import Durations
from ...services.tables import service_revisions as declarations
from ...services.tables import services

RANGE_MOST_US: Final = 7 * DAY
# Share of the few seconds that a transaction may take.
WALL_SECONDS: Final = 2.0


class Unknown(StrEnum):
    RANGE_TOO_LONG = "range_too_long"
    WALL_BUDGET = "wall_budget"
    EVIDENCE_GONE = "evidence_gone"


@dataclass(frozen=True, slots=True)
class Previewed:
    """Effect on the sealed part of the time that the maintenance changes.

    `projected`: that time extends beyond the sealed time. With a `reason`, `after` equals `before`.
    """

    service: UUID
    name: str
    before: Durations
    after: Durations
    projected: bool
    reason: Unknown | None


async def preview_services(
    tx: Tx,
    org: int,
    monitors: Sequence[int],
    maintenance: TimeSpan,
    hold_us: int,
    supposing: AssumedMaintenance,
    evidence_from: Instant,
    elapsed: Callable[[], float],
) -> list[Previewed]:
    """Returns the effect on every service that declared one of the monitors or a composite of them.

    Services without sealed time in the changed range are omitted.

    Args:
        hold_us: longest freshness of a result. The effect can extend so far beyond the end.
        elapsed: returns the seconds since the start of the preview.
    """
    range_ = TimeSpan(maintenance.from_, Instant(maintenance.until + hold_us))
    above = await compositions.select_above(tx, org, monitors, range_)
    part = [*monitors, *(composite for _, composite in above)]
    keys = await declarations.select_declaring(tx, org, part)
    found = []
    for key, row in sorted((await services.select_services(tx, keys)).items()):
        within = _sealed_part(row, range_)
        if within is not None:
            reason = _unknown(within, evidence_from, RANGE_MOST_US + hold_us)
            spare = _Spare(supposing, lambda: elapsed() < WALL_SECONDS)
            found.append(await _previewed(tx, key, row, within, range_, spare, reason))
    return found


def _sealed_part(row: ServiceRow, range_: TimeSpan) -> TimeSpan | None:
    start, sealed = row.materialization_start, row.sealed_through
    if start is None or sealed is None:
        return None
    from_ = max(start, Instant(range_.from_ - range_.from_ % MINUTE))
    until = min(sealed, Instant(range_.until + (-range_.until) % MINUTE))
    return TimeSpan(from_, until) if from_ < until else None


@dataclass(frozen=True, slots=True)
class _Spare:
    """Assumed maintenance, and whether time remains to compute its effect."""

    supposing: AssumedMaintenance
    is_time: Callable[[], bool]


def _unknown(within: TimeSpan, evidence_from: Instant, most_us: int) -> Unknown | None:
    if within.from_ < evidence_from:
        return Unknown.EVIDENCE_GONE
    return Unknown.RANGE_TOO_LONG if within.length_us > most_us else None


async def _previewed(
    tx: Tx,
    key: ServiceKey,
    row: ServiceRow,
    within: TimeSpan,
    range_: TimeSpan,
    spare: _Spare,
    reason: Unknown | None,
) -> Previewed:
    before = after = (await select_sum(tx, key, within)).durations
    if reason is None:
        governed_by = await select_governed(tx, [key], tx.now)
        numbers = {epoch.from_: n for n, epoch in enumerate(governed_by[key].epochs)}
        told = await minutes_of(
            tx, governed_by, {key: within}, {key: numbers}, spare.supposing, spare.is_time
        )
        if told is None:
            reason = Unknown.WALL_BUDGET
        else:
            after = sum((run.total for run in told[key]), Durations())
    projected = row.sealed_through is not None and range_.until > row.sealed_through
    return Previewed(row.uid, row.name, before, after, projected, reason)
