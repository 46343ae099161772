"""Row structs of alerting that other features or layers use, and their constants."""

from typing import Final

import msgspec

from ..core.instant import Instant
from ..core.key import MonitorKey, ServiceKey

# Validity of the lease that a successful evaluation renews.
LEASE_SECONDS: Final = 90


class AlertingRow(msgspec.Struct, frozen=True):
    """Row of `service_alerting`. The database clock determines `*_lease_holds`."""

    org: int
    service: int
    owns_paging: bool
    page_on: list[str]
    page_on_unknown: bool
    confirm_evaluations: int
    renotify_seconds: int
    generation: int
    edited_at: Instant
    live_evaluated_at: Instant | None
    live_generation: int | None
    live_revision: int | None
    live_state: str | None
    live_streak: int
    live_since: Instant | None
    live_reason: str | None
    live_error: str | None
    live_lease_until: Instant | None
    live_lease_holds: bool
    due_at: Instant
    burn_evaluated_at: Instant | None
    burn_generation: int | None
    burn_reason: str | None
    burn_error: str | None
    burn_lease_until: Instant | None
    burn_lease_holds: bool

    @property
    def key(self) -> ServiceKey:
        return ServiceKey((self.org, self.service))


class WatchedMonitor(msgspec.Struct, frozen=True):
    """Monitor with a threshold, and its stored warning. `above_ms` is 0 if it was turned off."""

    org: int
    id: int
    above_ms: int
    runs: int
    interval_seconds: int
    seen: Instant | None
    since: Instant | None

    @property
    def key(self) -> MonitorKey:
        return MonitorKey((self.org, self.id))
