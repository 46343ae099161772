"""Comparison of a service's availability before and after a change, from sealed time only."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ...core.instant import Instant
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ...services.queries.service_reports import select_sum
from ...services.queries.service_revisions import select_revisions
from ...services.rows import ServiceRow
from ..rows import PhaseRow
from ..rules.change import ChangePhaseName
from ..rules.change_comparison import (
    HORIZONS,
    SealedRange,
    SealedSums,
    Side,
    after_of,
    before_of,
    begins_of,
    delta_of,
    sides_of,
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of both sides. `delta` is in percentage points, None without two figures."""

    ended: PhaseRow
    before: Side
    after: Side

    @property
    def delta(self) -> Fraction | None:
        return delta_of(self.before, self.after)

    @property
    def outcome(self) -> str:
        """Returns `figures`, `withheld` if a side is withheld, or `pending`."""
        if self.delta is not None:
            return "figures"
        return "withheld" if self.before.withheld or self.after.withheld else "pending"


async def select_comparison(
    tx: Tx, service: ServiceRow, phases: Sequence[PhaseRow], horizon: str
) -> Comparison | None:
    """Returns the comparison over one of `HORIZONS`, None while the change has not ended."""
    at: dict[ChangePhaseName, Instant] = {phase.phase: phase.occurred_at for phase in phases}
    ended = next((phase for phase in phases if phase.phase is not ChangePhaseName.STARTED), None)
    if ended is None:
        return None
    before, after = sides_of(at.get(ChangePhaseName.STARTED), ended.occurred_at, HORIZONS[horizon])
    begins = begins_of((await select_revisions(tx, [service.key]))[service.key])
    sealed = _sealed(service)
    facts = [await _facts(tx, service, span) for span in (before, after)]
    return Comparison(
        ended,
        before_of(before, sealed, begins, facts[0]),
        after_of(after, before, sealed, begins, facts[1]),
    )


def _sealed(service: ServiceRow) -> SealedRange | None:
    start, through = service.materialization_start, service.sealed_through
    return None if start is None or through is None else SealedRange(start, through)


async def _facts(tx: Tx, service: ServiceRow, span: TimeSpan) -> SealedSums:
    found = await select_sum(tx, service.key, span)
    return SealedSums(found.minutes, found.durations.split)
