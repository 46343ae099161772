"""Flap damping: alerts of a monitor that changes its status often.

A monitor with a threshold is flapping from the outage on that is the last of so many within
WINDOW_US. Its alert then stays open while it is up, so that later outages send nothing. It has
settled when its status did not change for SETTLED_US: if it is up, the alert ends as of its last
recovery; if it is down, it is announced again.

Invariant: a flapping monitor that is down has an open alert, and one that stays down is
announced again within SETTLED_US. Statuses and figures are not changed.
"""

from dataclasses import dataclass, replace
from typing import Final

from ...core.instant import HOUR, MINUTE, Instant

WINDOW_US: Final = HOUR
SETTLED_US: Final = 15 * MINUTE


@dataclass(frozen=True, slots=True)
class FlapState:
    """Outages of one monitor since it settled.

    `downs` are the begins of the newest outages, `since` is the instant at which it began to flap,
    `up_at` since when it is up, None while it is down. `seen` is the last counted change.
    """

    downs: tuple[Instant, ...] = ()
    since: Instant | None = None
    up_at: Instant | None = None
    seen: Instant | None = None

    @property
    def is_flapping(self) -> bool:
        return self.since is not None

    def settles_at(self) -> Instant | None:
        """Returns when it has settled if its status does not change, None if it is not flapping."""
        if self.since is None:
            return None
        return Instant((self.up_at or self.downs[-1]) + SETTLED_US)

    def is_settled(self, now: Instant) -> bool:
        at = self.settles_at()
        return at is not None and at <= now


def changed(state: FlapState, at: Instant, threshold: int, *, is_down: bool) -> FlapState:
    """Returns the state after a change of the status. A change that was counted has no effect."""
    if state.seen is not None and at <= state.seen:
        return state
    if not is_down:
        return replace(state, up_at=at, seen=at)
    recent = [begun for begun in state.downs if begun > at - WINDOW_US]
    downs = (*recent, at)[-threshold:]
    since = state.since
    if since is None and len(downs) >= threshold:
        since = at
    return FlapState(downs, since, None, at)


def settled(state: FlapState) -> FlapState:
    """Returns the state after it has settled: the count of outages begins again."""
    return FlapState(seen=state.seen)
