"""Row structs of incidents that other features or layers use, and their constants."""

from typing import Final
from uuid import UUID

import msgspec

from ..core.instant import Instant


class UpdateRow(msgspec.Struct, frozen=True):
    """`status` is None for a plain note; `author_label` is empty where a machine wrote it."""

    seq: int
    uid: UUID
    status: str | None
    body: str
    public: bool
    author_label: str
    created_at: Instant


class IncidentRow(msgspec.Struct, frozen=True):
    """With the ids of where it stands. `acknowledged_by` is None where no person is known; who it
    was stands in `acknowledged_label` all the same."""

    org: int
    id: int
    uid: UUID
    project: int
    project_uid: UUID
    monitor: int | None
    monitor_uid: UUID | None
    service: int | None
    service_uid: UUID | None
    external_key: str | None
    seq: int
    title: str
    status: str
    impact: str
    source: str
    started_at: Instant
    resolved_at: Instant | None
    acknowledged_at: Instant | None
    acknowledged_by: UUID | None
    acknowledged_label: str
    escalation_policy: int | None
    escalation_step: int
    last_escalated_at: Instant | None
    escalate_at: Instant | None
    escalation_started_at: Instant
    created_at: Instant
    updated_at: Instant


# The step under which a monitor's own channels stand.
OWN_CHANNELS: Final = 0


class PostmortemRow(msgspec.Struct, frozen=True):
    """`author_label` is who published it."""

    uid: UUID
    body: str
    declaration_revision: int | None
    author_label: str
    published_at: Instant
    created_at: Instant
    updated_at: Instant
