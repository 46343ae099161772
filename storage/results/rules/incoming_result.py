"""An arrival: one result as it comes to be stored, and what became of it.

`dues` are the windows it answers. A probe's run answers one, and is stored only if that window
takes it (`windowed`); a heartbeat that was pushed is stored in any case and covers whatever windows
it falls into.
"""

from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec

from ...core.instant import LATEST, Instant
from ...core.key import MonitorKey
from ...monitors.rules.monitor_state import MonitorStatus
from ...scheduling.rules.run_schedule import LATE_ARRIVAL_US, ScheduleTerm
from .push_deadline import newly_covered

# The reason of a result that was refused because its process ended; another process may store it.
RECORDER_STOPPED: Final = "the recorder stopped"


class ResultSource(StrEnum):
    RUN = "run"
    PUSH = "push"
    BACKFILL = "backfill"


class IncomingResult(msgspec.Struct, frozen=True, kw_only=True):
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
    # Committed by then it covers its window in time; a push judges its windows by themselves.
    covered_until: Instant = LATEST
    reach_us: int = LATE_ARRIVAL_US
    source: ResultSource = ResultSource.RUN
    # The state's version that a steady fold was computed from; see tables/results.
    version: int = 0
    late: bool = False
    # Why its window was not run: a canary's refusal, which is a failure and no run.
    withheld: str = ""
    # Of the definition that was run; 0 where nothing was run by one.
    revision: int = 0

    @property
    def key(self) -> MonitorKey:
        return MonitorKey((self.org, self.monitor))

    def is_outdated(self, revision: int, updated_at: Instant) -> bool:
        """Whether it was begun by an older definition after the monitor had this one."""
        return 0 < self.revision < revision and self.ts > updated_at

    def is_history(self, fence: Instant) -> bool:
        """Whether what it belongs to was sealed before it could be committed."""
        return self.ts < fence - self.reach_us


class StoreOutcome(StrEnum):
    """What became of an arrival."""

    LIVE = "live"
    HISTORY = "history"
    DUPLICATE = "duplicate"
    # The monitor is gone: acknowledged, counted nowhere.
    IGNORED = "ignored"
    # A push of a paused monitor: acknowledged, recorded nowhere.
    PAUSED = "paused"
    # The store will not take it; nothing was written.
    REFUSED = "refused"
    # Begun after an edit by what was true before it: it says nothing, and is to be run again.
    OUTDATED = "outdated"
    # A push after a deadline that cannot be judged yet; nothing was written, bring it again.
    UNDECIDED = "undecided"
    # The database is unavailable: the recorder keeps the result and stores it later.
    DELAYED = "delayed"


class CachedState(msgspec.Struct, frozen=True, kw_only=True):
    """A state as a process last saw it: by it, and only while its version holds, the process can
    tell that a result changes nothing.

    `quiet_until` is a push's next deadline by the newest heartbeat known here. Another process may
    have stored a newer one, which only makes the true deadline later: the doubt errs to the lock.
    """

    version: int
    status: MonitorStatus
    failures: int
    failure_threshold: int
    monitor_uid: UUID
    project_uid: UUID
    project: int
    quiet_until: Instant | None = None
    patience_us: int = 0
    terms: tuple[ScheduleTerm, ...] = ()

    def is_left_unchanged_by(self, arrival: IncomingResult) -> bool:
        if arrival.source is ResultSource.PUSH and (
            self.quiet_until is None or arrival.ts > self.quiet_until
        ):
            return False
        if arrival.up:
            return self.status is MonitorStatus.UP and self.failures == 0
        return self.status is MonitorStatus.DOWN and self.failures >= self.failure_threshold

    def windows_of(self, arrival: IncomingResult) -> tuple[Instant, ...]:
        """The windows that a heartbeat covers and the one before it did not."""
        if arrival.source is not ResultSource.PUSH:
            return arrival.dues
        known = self.quiet_until is not None
        previous = Instant((self.quiet_until or 0) - self.patience_us) if known else None
        if previous is not None and previous >= arrival.ts:
            # Overtaken by a newer one, which need not cover all that this one does.
            previous = None
        return tuple(window.due for window in newly_covered(self.terms, arrival.ts, previous))

    def heard(self, arrival: IncomingResult) -> "CachedState":
        """The same state after a result that left it unchanged."""
        if arrival.source is not ResultSource.PUSH:
            return self
        deadline = Instant(arrival.ts + self.patience_us)
        quiet_until = max(self.quiet_until or deadline, deadline)
        return msgspec.structs.replace(self, quiet_until=quiet_until)


class StoreResult(msgspec.Struct, frozen=True):
    """The answer to whoever brought an arrival. `ts` is the instant it was stored at."""

    fate: StoreOutcome
    ts: Instant
    standing: CachedState | None = None
    reason: str = ""
