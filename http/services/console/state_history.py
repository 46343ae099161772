"""State of a service over time, up to its seal, for all plots.

Each step shows its worst known state. Unknown time is never shown as healthy.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from ....storage.core.instant import HOUR, MINUTE, Instant
from ....storage.services.rows import ServiceRow
from ....storage.services.rules.service_health import Durations
from ...ui.data_table import exact
from ...ui.formatting import duration
from ...ui.plots.svg import BEFORE_SAID
from ...ui.plots.timeline_lanes import ServiceState, StateBand, worst
from ...ui.reliability_text import precisely
from .service_data import ServiceBucket

# Normal lag of sealing. Unsealed time within it is left blank.
_LAG_US: Final = 30 * MINUTE
WORDS: Final = {
    ServiceState.HEALTHY: "healthy",
    ServiceState.DEGRADED: "degraded",
    ServiceState.UNKNOWN: "unknown",
    ServiceState.DOWN: "down",
    ServiceState.MAINTENANCE: "in maintenance",
    ServiceState.BEFORE: BEFORE_SAID,
}


@dataclass(frozen=True, slots=True)
class StateSlot:
    from_: Instant
    to: Instant
    was: ServiceState
    down_us: int


def slots(
    row: ServiceRow, hours: Sequence[ServiceBucket], from_: Instant, to: Instant, step: int
) -> list[StateSlot]:
    """Returns the time before the service's start, and steps of whole hours up to its seal.

    A lag beyond the normal one is unknown.
    """
    start = row.materialization_start
    if start is None or start >= to:
        return [StateSlot(from_, to, ServiceState.BEFORE, 0)]
    sealed = row.sealed_through or start
    known = {bucket.start: bucket for bucket in hours}
    first = max(from_, start)
    found = [StateSlot(from_, start, ServiceState.BEFORE, 0)] if start > from_ else []
    steps = range(first - first % step, sealed, step) if sealed > first else ()
    for at in steps:
        each = [Instant(hour) for hour in range(at, at + step, HOUR)]
        within = [known.get(hour) for hour in each if hour < sealed and hour + HOUR > start]
        was = worst([was_of(bucket) for bucket in within]) or ServiceState.UNKNOWN
        down = sum(bucket.durations.bad_us for bucket in within if bucket is not None)
        found.append(
            StateSlot(max(Instant(at), first), min(Instant(at + step), sealed, to), was, down)
        )
    if to - sealed > _LAG_US:
        found.append(StateSlot(max(sealed, first), to, ServiceState.UNKNOWN, 0))
    return found


def was_of(bucket: ServiceBucket | None) -> ServiceState:
    """Returns the worst known state. Unknown time is never healthy."""
    if bucket is None:
        return ServiceState.UNKNOWN
    durations: Durations = bucket.durations
    split = durations.split
    if split.bad_us:
        return ServiceState.DOWN
    if not split.range_us or 100 * split.unknown_us > split.range_us:
        return ServiceState.UNKNOWN
    if durations.degraded_us:
        return ServiceState.DEGRADED
    return (
        ServiceState.MAINTENANCE if 2 * split.excluded_us > split.range_us else ServiceState.HEALTHY
    )


def runs(slots_: Sequence[StateSlot]) -> list[list[StateSlot]]:
    """Returns groups of equal neighbours."""
    return [list(run) for _, run in groupby(slots_, key=lambda slot: slot.was)]


def drawn(slots_: Sequence[StateSlot], share: Callable[[Instant], float]) -> list[StateBand]:
    """Returns the bands. `share` maps an instant to a share of the axis."""
    return [
        StateBand(share(run[0].from_), share(run[-1].to), _slot_text(run), run[0].was)
        for run in runs(slots_)
    ]


def plot_text(slots_: Sequence[StateSlot]) -> list[tuple[Instant, str, str]]:
    """Returns (start, state, duration). Healthy time is omitted."""
    return [
        (run[0].from_, WORDS[run[0].was].capitalize(), _length(run))
        for run in runs(slots_)
        if run[0].was is not ServiceState.HEALTHY
    ]


def _slot_text(run: Sequence[StateSlot]) -> str:
    return f"{exact(run[0].from_)} to {exact(run[-1].to)}: {WORDS[run[0].was]} {_length(run)}"


def _length(run: Sequence[StateSlot]) -> str:
    """Returns the downtime of the run, or its length if it has no downtime."""
    down = sum(slot.down_us for slot in run)
    return precisely(down) if down else duration(run[-1].to - run[0].from_)
