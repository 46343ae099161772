"""Row structs of gate that other features or layers use, and their constants."""

from uuid import UUID

import msgspec

from ..core.instant import LATEST, Instant
from .rules.gate import GateAction, GateState
from .rules.gate_evidence import Evidence, StoredReason
from .rules.gate_override import Ended
from .rules.gate_policy import Document, Governing, PolicySource


class DecisionRow(msgspec.Struct, frozen=True):
    """Stored gate decision.

    `service_uid` is None if the service is deleted; `schema_version` is 1 without a policy.
    """

    org: int
    project: int
    service: int
    uid: UUID
    evaluated_at: Instant
    service_uid: UUID | None
    service_slug: str
    service_name: str
    state: GateState
    action: GateAction | None
    unoverridden_action: GateAction | None
    reasons: tuple[StoredReason, ...]
    policy_revision: int | None
    override_uid: UUID | None
    actor_label: str
    actor_user: UUID | None
    via_token: bool
    schema_version: int


class DecisionCursor(msgspec.Struct, frozen=True):
    """Position in a list of decisions, newest first. The list continues after it."""

    at: Instant
    uid: UUID


class DecisionSeen(msgspec.Struct, frozen=True):
    uid: UUID
    evaluated_at: Instant
    state: GateState
    evidence: Evidence


class GateOverrideRow(msgspec.Struct, frozen=True):
    """Gate override. The `revoked_*` fields are None while it is not revoked."""

    org: int
    id: int
    uid: UUID
    service: int
    policy_source: PolicySource
    policy_revision: int
    reason: str
    created_at: Instant
    expires_at: Instant
    actor_label: str
    actor_user: UUID | None
    via_token: bool
    revoked_at: Instant | None
    revoked_reason: Ended | None
    revoked_by_label: str | None
    revoked_by_user: UUID | None
    revoked_via_token: bool | None


class GatePolicyRow(msgspec.Struct, frozen=True):
    """Revision of a gate policy. `service` is None for the policy of a project."""

    org: int
    id: int
    project: int
    project_uid: UUID
    service: int | None
    service_uid: UUID | None
    revision: int
    document: Document
    began_at: Instant
    ended_at: Instant | None
    author_label: str

    @property
    def source(self) -> PolicySource:
        return PolicySource.PROJECT if self.service is None else PolicySource.SERVICE

    @property
    def owner(self) -> UUID:
        return self.service_uid or self.project_uid

    @property
    def until(self) -> Instant:
        return LATEST if self.ended_at is None else self.ended_at

    @property
    def governing(self) -> Governing:
        return Governing(
            source=self.source, owner=self.owner, revision=self.revision, document=self.document
        )
