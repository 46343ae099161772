"""A silence over everything that is watched: until it ends people are told of nothing new.

It keeps true: what was told before is told to be over, whenever that is; what is found meanwhile
waits, and of it that is told which still holds when the silence has ended.
"""

from typing import Final

import msgspec

from ...core.instant import SECOND, Instant

LONGEST_US: Final = 366 * 86_400 * SECOND
# How soon what waits is looked at again, as it may be lifted at any time.
LOOK_US: Final = 15 * SECOND


class GlobalSilence(msgspec.Struct, frozen=True):
    """Without `until` it lasts until somebody lifts it."""

    enabled: bool = False
    until: Instant | None = None

    def is_in_force(self, now: Instant) -> bool:
        return self.enabled and (self.until is None or now < self.until)

    def next_check_at(self, now: Instant) -> Instant:
        """When to look again whether one that is in force is over: no later than its end."""
        soon = Instant(now + LOOK_US)
        return soon if self.until is None else min(soon, self.until)


NO_SILENCE: Final = GlobalSilence()


def silence_fault(silence: GlobalSilence, now: Instant) -> tuple[str, str] | None:
    """The field and the rule that it breaks."""
    if not silence.enabled or silence.until is None:
        return None
    if silence.until <= now:
        return "global_silence.until", "must lie ahead"
    if silence.until - now > LONGEST_US:
        return "global_silence.until", f"must be at most {LONGEST_US // SECOND // 86_400} days off"
    return None
