"""Whether a run falls into maintenance, which is announced time that counts neither way.

A probed window is judged by its due instant. A push window is a promise that ends later, so it is
judged by the end of that promise. A maintenance includes its start and excludes its end.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .instant import Instant
from .schedule import Manner, Window, result_expected_by
from .span import Span, holding, merged


@dataclass(frozen=True, slots=True)
class Maintenance:
    """One announced maintenance: of a monitor, or of its whole project where `monitor` is None.

    `cancelled_at` is where an annulment cut it short; at or before its start, nothing is left.
    """

    starts_at: Instant
    ends_at: Instant
    monitor: int | None = None
    cancelled_at: Instant | None = None


def spans_of(monitor: int, maintenances: Iterable[Maintenance]) -> list[Span]:
    """All maintenance that a monitor is under, its own and its project's, as one set."""
    return merged(
        Span(m.starts_at, m.ends_at if m.cancelled_at is None else min(m.ends_at, m.cancelled_at))
        for m in maintenances
        if m.monitor in (None, monitor)
    )


def is_in_maintenance(instant: Instant, spans: Sequence[Span]) -> bool:
    return holding(spans, instant) is not None


def withholds(window: Window, manner: Manner, spans: Sequence[Span]) -> bool:
    """Whether the window is withheld for maintenance."""
    judged_at = result_expected_by(window, manner) if manner is Manner.PUSH else window.due
    return is_in_maintenance(judged_at, spans)


def last_end(spans: Sequence[Span], now: Instant) -> Instant | None:
    """When the newest maintenance that is over ended."""
    return max((span.until for span in spans if span.until <= now), default=None)


def is_retroactive(starts_at: Instant, now: Instant, sealed_through: Instant | None) -> bool:
    """Whether announcing it changes what was already measured: it then needs a preview."""
    return starts_at < now or (sealed_through is not None and starts_at < sealed_through)
