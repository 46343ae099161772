"""Were we listening? What the presences of the public processes prove about our own hearing.

A presence's `through` means: this process listened until then, and every push that it received is
committed. So silence counts against a target only where every process that could have heard it
says that it did not. Spans of listening include both ends; a gap is what lies strictly between.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...core.instant import SECOND, Instant
from ...core.time_span import TimeSpan, merged, without

RENEWAL_US = 5 * SECOND
# A renewal later than this begins a new presence, and an unclean end leaves this much unheard:
# senders were still being sent to a process that no longer answered.
LATE_RENEWAL_US = 15 * SECOND


@dataclass(frozen=True, slots=True)
class Presence:
    """One process's unbroken hearing; `ended` is a stop that closed it in order."""

    from_: Instant
    through: Instant
    ended: bool = False

    def is_live(self, now: Instant) -> bool:
        """Whether a renewal at that instant would continue it; a later one begins a new one."""
        return not self.ended and now - self.through <= LATE_RENEWAL_US


def listened(presences: Iterable[Presence], now: Instant) -> list[TimeSpan]:
    """When we heard everything that was sent to us, as a set.

    Where a process ended uncleanly the time after is unheard, though others listened: what was
    sent to the dead one may be lost.
    """
    known = list(presences)
    # Counted in whole microseconds with an open end, so that the first instant of a presence,
    # which is no length yet, is there already: it is where listening begins again.
    heard = merged(TimeSpan(p.from_, Instant(p.through + 1)) for p in known)
    deaf = merged(
        TimeSpan(Instant(p.through + 1), Instant(p.through + LATE_RENEWAL_US))
        for p in known
        if not p.ended and not p.is_live(now)
    )
    return [TimeSpan(s.from_, Instant(s.until - 1)) for s in without(heard, deaf)]


def judged_through(presences: Iterable[Presence], now: Instant) -> Instant | None:
    """The instant that all live presences have passed: up to it silence is known to be silence.

    None while nobody listens. A process that died holds it back until it is known to be dead.
    """
    return min((p.through for p in presences if p.is_live(now)), default=None)


def is_wholly_listened(heard: Sequence[TimeSpan], from_: Instant, through: Instant) -> bool:
    """Whether we heard all of it, both ends included."""
    index = bisect_right(heard, from_, key=lambda span: span.from_) - 1
    return index >= 0 and through <= heard[index].until
