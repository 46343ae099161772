"""Row structs of services that other features or layers use, and their constants."""

from uuid import UUID

import msgspec

from ..core.instant import Instant
from ..core.key import ServiceKey


class EpochRow(msgspec.Struct, frozen=True):
    org: int
    service: int
    seq: int
    uid: UUID
    revision: int
    effective_at: Instant
    snapshot_hash: str
    members: int


class RevisionAuthor(msgspec.Struct, frozen=True):
    """Author and instant of a revision. `author` is None for a token and for a deleted user."""

    revision: int
    created_at: Instant
    author: UUID | None
    label: str


class ServiceRow(msgspec.Struct, frozen=True):
    """Service with its seal, and with both ids and uids of referenced rows."""

    org: int
    id: int
    uid: UUID
    project: int
    project_uid: UUID
    slug: str
    name: str
    description: str
    escalation_policy: int | None
    escalation_policy_uid: UUID | None
    oncall_schedule: int | None
    oncall_schedule_uid: UUID | None
    managed_by: str
    materialization_start: Instant | None
    sealed_through: Instant | None
    backfill_from: Instant | None
    created_at: Instant
    updated_at: Instant
    # Bundle fields, as in a monitor.
    bundle_uid: str | None = None
    bundle_path: str = ""
    orphaned_at: Instant | None = None
    runbook_url: str = ""
    # Support hours: weekly windows in a zone, empty for all hours.
    support_zone: str = ""
    support_hours: list[str] = []
    # Whether the bundle that manages the service states them.
    hours_managed: bool = False
    # True if its bundle states the gate policy.
    gate_managed: bool = False

    @property
    def key(self) -> ServiceKey:
        return ServiceKey((self.org, self.id))
