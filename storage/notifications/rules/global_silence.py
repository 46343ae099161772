"""Global silence: no new notifications are sent until it ends.

Invariant: a notified outage gets its recovery notification regardless of the silence. A new outage
waits, and is announced if it still lasts when the silence ends.
"""

from typing import Final

import msgspec

from ...core.instant import SECOND, Instant

LONGEST_US: Final = 366 * 86_400 * SECOND
REASON_LONGEST: Final = 200
# Recheck interval of waiting outages, since the silence can be lifted at any time.
LOOK_US: Final = 15 * SECOND


class GlobalSilence(msgspec.Struct, frozen=True):
    """Setting of the global silence. Without `until` it lasts until a user lifts it.

    `by` is the label of the user or token that set it last, at `set_at`. An earlier version did not
    store them.
    """

    enabled: bool = False
    until: Instant | None = None
    reason: str = ""
    by: str = ""
    set_at: Instant | None = None

    def is_in_force(self, now: Instant) -> bool:
        return self.enabled and (self.until is None or now < self.until)

    def next_check_at(self, now: Instant) -> Instant:
        """Returns when to check again whether the silence is over: no later than its end."""
        soon = Instant(now + LOOK_US)
        return soon if self.until is None else min(soon, self.until)


def is_same(one: GlobalSilence, other: GlobalSilence) -> bool:
    """Returns whether two settings differ at most in author and time."""
    return (one.enabled, one.until, one.reason) == (other.enabled, other.until, other.reason)


NO_SILENCE: Final = GlobalSilence()


def silence_fault(silence: GlobalSilence, now: Instant) -> tuple[str, str] | None:
    """Returns the invalid field and the violated rule."""
    if len(silence.reason) > REASON_LONGEST:
        return "global_silence.reason", f"must be at most {REASON_LONGEST} characters"
    if not silence.enabled or silence.until is None:
        return None
    if silence.until <= now:
        return "global_silence.until", "must lie ahead"
    if silence.until - now > LONGEST_US:
        return "global_silence.until", f"must be at most {LONGEST_US // SECOND // 86_400} days off"
    return None
