"""Row structs of scheduling that other features or layers use, and their constants."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import msgspec

from ..core.instant import Instant
from ..core.key import MonitorKey
from .rules.run_schedule import ScheduleTerm


class PresenceRow(msgspec.Struct, frozen=True):
    process: UUID
    host: str
    roles: list[str]
    # Regions that the process probes in; empty if it does not probe.
    regions: list[str]
    version: str
    from_at: Instant
    through_at: Instant


class Shard(msgspec.Struct, frozen=True):
    id: int
    org: int
    region: str
    reserved_through: Instant
    sealed_through: Instant
    settled_through: Instant
    rolled_up_through: Instant


class NewTerm(msgspec.Struct, frozen=True):
    """Schedule term to insert. It begins at `from_at` or later."""

    org: int
    monitor: int
    from_at: Instant
    shard: int
    anchor: Instant
    interval_seconds: int
    timeout_seconds: int
    grace_seconds: int
    enabled: bool
    schedule: str
    timezone: str

    @classmethod
    def of(cls, key: MonitorKey, term: ScheduleTerm, from_at: Instant) -> "NewTerm":
        return cls(
            *key,
            from_at,
            term.shard,
            term.anchor,
            term.interval_us // 1_000_000,
            term.timeout_us // 1_000_000,
            term.grace_us // 1_000_000,
            term.enabled,
            term.schedule,
            term.timezone,
        )

    def not_before(self, instant: Instant) -> "NewTerm":
        return msgspec.structs.replace(self, from_at=max(self.from_at, instant))


class NewJob(msgspec.Struct, frozen=True):
    uid: UUID
    org: int
    monitor: int
    shard: int
    reason: str
    due: Instant
    claim_until: Instant


class LeasedBatch(msgspec.Struct, frozen=True):
    id: int
    shard: int
    orgs: list[int]
    monitors: list[int]
    due_ats: list[Instant]
    claim_untils: list[Instant]


class OpenBatch(msgspec.Struct, frozen=True):
    """Windows in parallel lists, some of which may still be claimable."""

    id: int
    shard: int
    orgs: list[int]
    monitors: list[int]
    due_ats: list[Instant]
    seal_ats: list[Instant]
    claim_untils: list[Instant]


@dataclass(frozen=True, slots=True)
class JobLimits:
    """Limits for the leases of jobs.

    `rooms` has the number of jobs that the costly monitors of an organization, or its other ones,
    may have more: (organization, is costly). The monitors of `costly_orgs` are costly, and those of
    other organizations are not; for the `exceptions` it is the other way round.
    """

    rooms: Mapping[tuple[int, bool], int] = field(default_factory=dict)
    costly_orgs: Sequence[int] = ()
    exceptions: Sequence[MonitorKey] = ()


NO_LIMITS: Final = JobLimits()


class LeasedJob(msgspec.Struct, frozen=True):
    org: int
    id: int
    uid: UUID
    shard: int
    monitor: int
    reason: str
    due_at: Instant
