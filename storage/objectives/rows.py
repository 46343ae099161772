"""Row structs of objectives that other features or layers use, and their constants."""

from uuid import UUID

import msgspec

from ..core.instant import Instant
from .rules import BurnRule, BurnState


class BurnRuleRow(msgspec.Struct, frozen=True):
    """Of `service` and `monitor` one is None. `notified_at` is when people were told last that it
    fires; None where nobody was, or they know that it is over."""

    org: int
    id: int
    uid: UUID
    service: int | None
    monitor: int | None
    window: str
    place: int
    rule: BurnRule
    firing: bool
    firing_since: Instant | None
    last_verdict: BurnState | None
    evaluated_at: Instant | None
    lease_until: Instant | None
    notified_at: Instant | None


class MonitorTarget(msgspec.Struct, frozen=True):
    org: int
    monitor: int
    window: str
    uid: UUID
    objective: int
    burn_enabled: bool
    created_at: Instant
    updated_at: Instant


class ProjectTarget(msgspec.Struct, frozen=True):
    window: str
    uid: UUID
    objective: int
    created_at: Instant
    updated_at: Instant


class ServiceTargetRow(msgspec.Struct, frozen=True):
    """`owner` is the key of what it is aimed at for; `burn_enabled` whether somebody is told when
    its budget burns too fast. `updated_at` is when something else was aimed at."""

    org: int
    owner: int
    window: str
    uid: UUID
    objective: int
    burn_enabled: bool
    created_at: Instant
    updated_at: Instant
