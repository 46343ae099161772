"""An arrival: one result as it comes to be stored, and what became of it.

`dues` are the windows it answers. A probe's run answers one, and is stored only if that window
takes it (`windowed`); a heartbeat that was pushed is stored in any case and covers whatever windows
it falls into.
"""

from enum import StrEnum

import msgspec

from .instant import Instant
from .schedule import LATE_ARRIVAL_US
from .state import Status


class Source(StrEnum):
    RUN = "run"
    PUSH = "push"
    BACKFILL = "backfill"


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """`reach_us` behind the fence its instant still counts as live: the run's time-out and the
    late-arrival grace, for a push the grace alone."""

    org: int
    monitor: int
    shard: int
    ts: Instant
    up: bool
    latency_ms: int = 0
    code: int | None = None
    msg: str = ""
    dns_us: int | None = None
    connect_us: int | None = None
    tls_us: int | None = None
    first_byte_us: int | None = None
    dues: tuple[Instant, ...] = ()
    windowed: bool = False
    # The window's own term, by which its lateness is judged; 0 without a window.
    covered_until: Instant = Instant(0)
    reach_us: int = LATE_ARRIVAL_US
    source: Source = Source.RUN
    # The state's version that a steady fold was computed from; see tables/results.
    version: int = 0
    late: bool = False

    @property
    def key(self) -> tuple[int, int]:
        return self.org, self.monitor

    def is_history(self, fence: Instant) -> bool:
        """Whether what it belongs to was sealed before it could be committed."""
        return self.ts < fence - self.reach_us


class Fate(StrEnum):
    """What became of an arrival."""

    LIVE = "live"
    HISTORY = "history"
    DUPLICATE = "duplicate"
    # The monitor is gone: acknowledged, counted nowhere.
    IGNORED = "ignored"
    # The store will not take it; nothing was written.
    REFUSED = "refused"


class Standing(msgspec.Struct, frozen=True):
    """A state as a process last saw it: by it, and only while its version holds, the process can
    tell that a result changes nothing. `quiet_until` is a push's next deadline."""

    version: int
    status: Status
    failures: int
    failure_threshold: int
    quiet_until: Instant | None = None

    def is_left_unchanged_by(self, arrival: Arrival) -> bool:
        if arrival.source is Source.PUSH and (
            self.quiet_until is None or arrival.ts > self.quiet_until
        ):
            return False
        if arrival.up:
            return self.status is Status.UP and self.failures == 0
        return self.status is Status.DOWN and self.failures >= self.failure_threshold


class Flip(msgspec.Struct, frozen=True):
    """A change of status, as the process that stored it tells it on."""

    org: int
    monitor: int
    at: Instant
    was: Status
    became: Status


class Recorded(msgspec.Struct, frozen=True):
    """The answer to whoever brought an arrival. `ts` is the instant it was stored at."""

    fate: Fate
    ts: Instant
    standing: Standing | None = None
    reason: str = ""
