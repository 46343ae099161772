"""Row structs of objectives that other features or layers use, and their constants."""

from uuid import UUID

import msgspec

from ..core.instant import Instant
from .rules import BurnRule, BurnState


class BurnRuleRow(msgspec.Struct, frozen=True):
    """Burn rule of a service or a monitor; the other key is None.

    `notified_at` is the last firing notification. It is None if no notification was sent, or after
    the recovery notification.
    """

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


class PlainTarget(msgspec.Struct, frozen=True):
    """Objective without burn rules."""

    monitor: int
    window: str
    objective: int
    burn: bool


class ProjectTarget(msgspec.Struct, frozen=True):
    window: str
    uid: UUID
    objective: int
    created_at: Instant
    updated_at: Instant


class ServiceTargetRow(msgspec.Struct, frozen=True):
    """Target of a service. `owner` is the key of the service.

    `burn_enabled` enables notifications of a high burn rate. `updated_at` is the last change of the
    objective.
    """

    org: int
    owner: int
    window: str
    uid: UUID
    objective: int
    burn_enabled: bool
    created_at: Instant
    updated_at: Instant
