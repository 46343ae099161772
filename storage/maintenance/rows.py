"""Row structs of maintenance that other features or layers use, and their constants."""

from uuid import UUID

import msgspec

from ..core.instant import SECOND, Instant
from .rules import Recurrence


class _Row(msgspec.Struct, frozen=True):
    """Common fields. `monitor` is None for a maintenance of the whole project."""

    org: int
    id: int
    uid: UUID
    project: int
    project_uid: UUID
    monitor: int | None
    monitor_uid: UUID | None


class SeriesRow(_Row, frozen=True):
    rrule: str
    starts_at: Instant
    duration_seconds: int
    timezone: str
    reason: str
    generated_through: Instant
    ended_at: Instant | None
    created_at: Instant

    @property
    def recurrence(self) -> Recurrence:
        return Recurrence(self.rrule, self.starts_at, self.duration_seconds * SECOND, self.timezone)


class MaintenanceRow(_Row, frozen=True):
    starts_at: Instant
    ends_at: Instant
    reason: str
    created_at: Instant
    archived_at: Instant | None
    cancel_effective_at: Instant | None
    series_uid: UUID | None
    # Title for subscribers of status pages, None if they are not told.
    public_title: str | None

    @property
    def over_at(self) -> Instant:
        """Returns the instant at which it ends or was cut short."""
        cut = self.cancel_effective_at
        return self.ends_at if cut is None else min(cut, self.ends_at)
