"""Spans in which the server received pushes, computed from the presences of its processes.

`through` of a presence states that the process listened until then and committed every push that it
received. Silence counts against a target only if every process that could have received its push
states that it received none. Listening spans include both ends; a gap excludes both.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...core.instant import SECOND, Instant
from ...core.time_span import TimeSpan, merged, without

RENEWAL_US = 5 * SECOND
# A later renewal begins a new presence. After an unclean end, this much time counts as not
# listened: senders still sent pushes to the process that no longer answered.
LATE_RENEWAL_US = 15 * SECOND


@dataclass(frozen=True, slots=True)
class Presence:
    """Unbroken listening of one process. `ended` marks an orderly stop."""

    from_: Instant
    through: Instant
    ended: bool = False

    def is_live(self, now: Instant) -> bool:
        """Returns whether a renewal at `now` continues this presence.

        A later one begins a new one.
        """
        return not self.ended and now - self.through <= LATE_RENEWAL_US


def listened(presences: Iterable[Presence], now: Instant) -> list[TimeSpan]:
    """Returns the spans in which every push that was sent was received, in order.

    After an unclean end of a process, LATE_RENEWAL_US count as not listened although other
    processes listened: pushes to the dead process may be lost.
    """
    known = list(presences)
    # The end is exclusive by 1 µs. Otherwise the first instant of a presence, which has length
    # zero, would be dropped, although listening begins again there.
    heard = merged(TimeSpan(p.from_, Instant(p.through + 1)) for p in known)
    deaf = merged(
        TimeSpan(Instant(p.through + 1), Instant(p.through + LATE_RENEWAL_US))
        for p in known
        if not p.ended and not p.is_live(now)
    )
    return [TimeSpan(s.from_, Instant(s.until - 1)) for s in without(heard, deaf)]


def judged_through(presences: Iterable[Presence], now: Instant) -> Instant | None:
    """Returns the instant that all live presences have passed.

    Up to this instant, silence is known to be silence. Returns None if no process listens. A
    process that died delays the instant until its presence expires.
    """
    return min((p.through for p in presences if p.is_live(now)), default=None)


def is_wholly_listened(heard: Sequence[TimeSpan], from_: Instant, through: Instant) -> bool:
    """Returns whether the span was listened to without a gap, both ends included."""
    index = bisect_right(heard, from_, key=lambda span: span.from_) - 1
    return index >= 0 and through <= heard[index].until
