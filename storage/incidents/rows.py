"""Row structs of incidents that other features or layers use, and their constants."""

from typing import Final
from uuid import UUID

import msgspec

from ..core.instant import Instant


class UpdateRow(msgspec.Struct, frozen=True):
    """Incident update. `status` is None for a note, `author_label` empty for Leadline.

    `withdraws` is the seq of an update that this one made internal.
    """

    seq: int
    uid: UUID
    status: str | None
    body: str
    public: bool
    author_label: str
    created_at: Instant
    withdraws: int | None = None


class IncidentRow(msgspec.Struct, frozen=True):
    """Incident with the uids of its project, monitor and service.

    `number` counts the incidents of the project from 1, without gaps.
    `acknowledged_by` is None if a token acknowledged or the user is deleted; `acknowledged_label`
    keeps the name. The acknowledgement in force expires at `ack_expires_at`, and the last one
    expired at `ack_expired_at`. `runbook_url` is that of the monitor or service, empty for none.
    `snoozed_label` snoozed it until `snoozed_until`. `assigned_label` is the person or the policy
    that it was reassigned to last. `self_condition` is the condition of Leadline that it is about,
    empty for none. The page of the incident `merged_into` covers it, which has `merged_number`.
    `is_postponed`: a mute has postponed the next step. `assigned_channel` is the channel of the
    assigned person, which can have been deleted since.
    """

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
    number: int
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
    runbook_url: str = ""
    ack_expires_at: Instant | None = None
    ack_expired_at: Instant | None = None
    self_condition: str = ""
    snoozed_until: Instant | None = None
    snoozed_label: str = ""
    assigned_kind: str = ""
    assigned_label: str = ""
    merged_into: int | None = None
    merged_number: int | None = None
    is_postponed: bool = False
    assigned_channel: int | None = None

    @property
    def is_acknowledged(self) -> bool:
        """Returns whether an acknowledgement is in force. The first stays after it expired."""
        return self.acknowledged_at is not None and self.ack_expired_at is None

    def is_snoozed(self, now: Instant) -> bool:
        return self.snoozed_until is not None and self.snoozed_until > now

    @property
    def is_unrouted(self) -> bool:
        """Returns whether it is of an external alert that pages nobody."""
        return self.external_key is not None and self.escalation_policy is None


class IncidentTemplateRow(msgspec.Struct, frozen=True):
    """Template of a project. `body` is the first public text of an incident, possibly empty."""

    org: int
    id: int
    uid: UUID
    project: int
    project_uid: UUID
    name: str
    title: str
    impact: str
    body: str
    created_at: Instant
    updated_at: Instant


# Step number of pages outside the escalation policy: to a monitor's own channels or to a route.
OWN_CHANNELS: Final = 0
# Step number of a ticket, which goes to the ticket destinations.
TICKET: Final = -2
# Step number of the page to the person that the incident was reassigned to.
ASSIGNEE: Final = -1


class PostmortemRow(msgspec.Struct, frozen=True):
    """Postmortem of an incident. `author_label` names the user who wrote it first.

    `published_at` counts only if it is published.
    """

    uid: UUID
    body: str
    declaration_revision: int | None
    author_label: str
    published: bool
    published_at: Instant
    created_at: Instant
    updated_at: Instant


class RouteListRow(msgspec.Struct, frozen=True):
    """Marks of the alert routes of a project, which are one object of a bundle."""

    id: int
    uid: UUID
    managed_by: str = ""
    bundle_uid: str | None = None
    bundle_path: str = ""
    orphaned_at: Instant | None = None

    @property
    def name(self) -> str:
        return "routes"


class AlertRouteRow(msgspec.Struct, frozen=True):
    """Route of external alerts. Without `matchers` it is the default.

    `pages_by` is the escalation policy that starts: that of the route, or of its service. A route
    whose service or policy was deleted has neither.
    """

    matchers: str
    service: int | None
    service_uid: UUID | None
    service_name: str | None
    pages_by: int | None
    policy: int | None
    policy_uid: UUID | None
    policy_name: str | None
