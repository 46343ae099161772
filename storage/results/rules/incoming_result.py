"""Incoming result and the outcome of storing it.

`dues` are the windows that the result covers. The run of a probe covers one window and is stored
only if the window is free (`windowed`). A pushed heartbeat is stored even if its windows are
settled, and covers any number of windows.
"""

from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec

from ...core.instant import LATEST, MINUTE, Instant
from ...core.key import MonitorKey
from ...monitors.rules.monitor_state import MonitorStatus
from ...scheduling.rules.run_schedule import LATE_ARRIVAL_US, ScheduleTerm, deadline_of
from .push_deadline import newly_covered

# Largest distance of a result from the due instant of its window, if they share a row. The view of
# the ledger and its functions have the same bound.
SHARED_WITHIN_US: Final = MINUTE

# The reason of a result that was refused because its process ended; another process may store it.
RECORDER_STOPPED: Final = "the recorder stopped"


class ResultSource(StrEnum):
    RUN = "run"
    PUSH = "push"
    BACKFILL = "backfill"


class IncomingResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result to store. Its instant counts as live up to `reach_us` before the fence.

    `reach_us` is the run's timeout plus the late-arrival grace; for a push, only the grace.
    """

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
    # Last commit instant that covers the window in time. The windows of a push are judged one by
    # one.
    covered_until: Instant = LATEST
    reach_us: int = LATE_ARRIVAL_US
    # Longest time for which a push can have waited in its socket, by a stall of this process.
    waited_us: int = 0
    source: ResultSource = ResultSource.RUN
    # Version of the state that a steady fold was computed from, see `tables/results.py`.
    version: int = 0
    late: bool = False
    # Whether the row of the result contains the verdict of its window.
    shares_row: bool = False
    # Reason why a canary window was refused. A refusal is a failure without a run.
    withheld: str = ""
    # Revision of the definition that was run, 0 without one.
    revision: int = 0
    # The condition that was false, and the text of its measured value.
    condition: str | None = None
    measured: str | None = None

    @property
    def key(self) -> MonitorKey:
        return MonitorKey((self.org, self.monitor))

    @property
    def came_at(self) -> Instant:
        """First instant at which it can have come. A deadline after it was kept."""
        return Instant(self.ts - self.waited_us)

    def is_outdated(self, revision: int, updated_at: Instant) -> bool:
        """Returns whether the run used an older definition after the current one was saved."""
        return 0 < self.revision < revision and self.ts > updated_at

    def can_share_row(self, settled_at: Instant) -> bool:
        """Returns whether the row of the result can contain the verdict of its one window.

        Readers of a window search its result within SHARED_WITHIN_US after the due instant.
        """
        return (
            self.windowed
            and not self.late
            and 0 <= self.ts - self.dues[0] <= SHARED_WITHIN_US
            and abs(settled_at - self.ts) < 1 << 31
        )

    def is_history(self, fence: Instant) -> bool:
        """Returns whether the time of the result was sealed before its commit."""
        return self.ts < fence - self.reach_us


class StoreOutcome(StrEnum):
    """Outcome of storing an incoming result."""

    LIVE = "live"
    HISTORY = "history"
    DUPLICATE = "duplicate"
    # The monitor is deleted: acknowledged, not counted.
    IGNORED = "ignored"
    # The push monitor is paused: acknowledged, not recorded.
    PAUSED = "paused"
    # The storage refuses the result. No row was written.
    REFUSED = "refused"
    # The run began after an edit but used the earlier definition. It is discarded and repeated.
    OUTDATED = "outdated"
    # A push after a deadline that cannot be judged yet. No row was written; the caller retries.
    UNDECIDED = "undecided"
    # The database is unavailable: the recorder keeps the result and stores it later.
    DELAYED = "delayed"


class CachedState(msgspec.Struct, frozen=True, kw_only=True):
    """Cached monitor state. Valid only while `version` equals the row's version.

    It detects results that leave the state unchanged. `heard_at` is a push monitor's newest
    heartbeat known here, None if the state does not follow from it. If another process stored a
    newer one, the real deadline is later, and the result needlessly uses the locked path.
    """

    version: int
    status: MonitorStatus
    failures: int
    # Successes of a DOWN monitor that recovers. The next failure resets them.
    successes: int = 0
    failure_threshold: int
    monitor_uid: UUID
    project_uid: UUID
    project: int
    heard_at: Instant | None = None
    terms: tuple[ScheduleTerm, ...] = ()

    def is_left_unchanged_by(self, arrival: IncomingResult) -> bool:
        if arrival.source is ResultSource.PUSH and (
            self.heard_at is None or arrival.ts > self._quiet_until(self.heard_at)
        ):
            return False
        if arrival.up:
            return self.status is MonitorStatus.UP and self.failures == 0
        is_down = self.status is MonitorStatus.DOWN and self.failures >= self.failure_threshold
        return is_down and self.successes == 0

    def windows_of(self, arrival: IncomingResult) -> tuple[Instant, ...]:
        """Returns the windows that the result covers and the previous heartbeat did not."""
        if arrival.source is not ResultSource.PUSH:
            return arrival.dues
        previous = self.heard_at
        if previous is not None and previous >= arrival.ts:
            # A newer heartbeat does not necessarily cover all windows of this one.
            previous = None
        return tuple(window.due for window in newly_covered(self.terms, arrival.ts, previous))

    def heard(self, arrival: IncomingResult) -> "CachedState":
        """Returns the state after a result that left it unchanged."""
        if arrival.source is not ResultSource.PUSH:
            return self
        return msgspec.structs.replace(self, heard_at=max(self.heard_at or arrival.ts, arrival.ts))

    def _quiet_until(self, heard_at: Instant) -> Instant:
        """Returns the deadline under the newest term."""
        return deadline_of(heard_at, self.terms[-1]) if self.terms else heard_at


class StoreResult(msgspec.Struct, frozen=True):
    """Outcome for the sender of a result. `ts` is the instant under which it was stored."""

    fate: StoreOutcome
    ts: Instant
    standing: CachedState | None = None
    reason: str = ""
