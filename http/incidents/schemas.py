"""Bodies of incidents, what is said of them, and what other systems' alerts are taken as."""

from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ...storage.incidents.queries.incident_impacts import ImpactRole, IncidentPart
from ...storage.incidents.rules.alertmanager_alert import ALERTS_MOST
from ...storage.incidents.rules.incident import (
    BODY_LONGEST,
    POSTMORTEM_LONGEST,
    TITLE_LONGEST,
    IncidentImpact,
    IncidentSource,
    IncidentStatus,
)
from ..wire.schema import InstantText, RequestSchema, Schema

# What a title and a body may further be is storage.incidents.rules.incident's to say, in words.
Title = Annotated[str, Meta(min_length=1, max_length=TITLE_LONGEST)]
Body = Annotated[str, Meta(max_length=BODY_LONGEST)]


class Incident(Schema, frozen=True, kw_only=True):
    """`acknowledged_by` is a person, and lacks where a token acknowledged; its name stands in
    `acknowledged_by_name` all the same. `seq` is the number of the last update."""

    id: UUID
    project_id: UUID
    monitor_id: UUID | UnsetType = UNSET
    service_id: UUID | UnsetType = UNSET
    external_key: str | UnsetType = UNSET
    seq: int
    title: str
    status: IncidentStatus
    impact: IncidentImpact
    source: IncidentSource
    started_at: InstantText
    resolved_at: InstantText | UnsetType = UNSET
    acknowledged_at: InstantText | UnsetType = UNSET
    acknowledged_by: UUID | UnsetType = UNSET
    acknowledged_by_name: str | UnsetType = UNSET
    escalation_step: int
    last_escalated_at: InstantText | UnsetType = UNSET
    created_at: InstantText
    updated_at: InstantText


class ServiceImpactLink(Schema, frozen=True, kw_only=True):
    """A service that the incident reaches, or one that may be behind it; `path` leads there by
    slugs."""

    service_id: UUID
    slug: str
    name: str
    role: ImpactRole
    path: list[str]
    computed_at: InstantText


class IncidentMember(Schema, frozen=True, kw_only=True):
    """What counts in the SLI has the role `sli`; it has both where that was declared otherwise
    meanwhile."""

    monitor_id: UUID
    name: str
    roles: list[IncidentPart]


class AuthedIncident(Incident, frozen=True, kw_only=True):
    """`impacts` is null where it has to do with no service. `members` are those that the incident's
    service was declared of while it lasted."""

    impacts: list[ServiceImpactLink] | None
    members: list[IncidentMember] | UnsetType = UNSET


class CreateIncident(RequestSchema, frozen=True, kw_only=True):
    title: Title
    status: IncidentStatus = IncidentStatus.INVESTIGATING
    impact: IncidentImpact = IncidentImpact.MINOR
    body: Body = ""
    monitor_id: UUID | UnsetType = UNSET


class IncidentUpdate(Schema, frozen=True, kw_only=True):
    """Without `status` it is a note; without `author` Leadline wrote it."""

    id: UUID
    incident_id: UUID
    seq: int
    status: IncidentStatus | UnsetType = UNSET
    body: str
    public: bool
    author: str | UnsetType = UNSET
    created_at: InstantText


class AddIncidentUpdate(RequestSchema, frozen=True, kw_only=True):
    """`public` is true with a status and false for a note, where it is left out."""

    status: IncidentStatus | UnsetType = UNSET
    body: Body = ""
    public: bool | UnsetType = UNSET


class Postmortem(Schema, frozen=True, kw_only=True):
    """`author` is who published it."""

    id: UUID
    incident_id: UUID
    body: str
    declaration_revision: int | UnsetType = UNSET
    author: str | UnsetType = UNSET
    published_at: InstantText
    created_at: InstantText
    updated_at: InstantText


class PutPostmortem(RequestSchema, frozen=True, kw_only=True):
    """`declaration_revision` is one by which the incident's service was governed meanwhile; it is
    required where there is a service."""

    body: Annotated[str, Meta(max_length=POSTMORTEM_LONGEST)]
    declaration_revision: int | UnsetType = UNSET


# An alert of a label or two is small, and a label's value may be long: the body bounds them.
Texts = dict[str, str]


class AlertmanagerAlert(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What Leadline reads of an alert; whatever else stands in it is passed over."""

    status: Literal["firing", "resolved"]
    fingerprint: str
    labels: Texts | None = None
    annotations: Texts | None = None
    starts_at: InstantText | None = None
    ends_at: InstantText | None = None


class AlertmanagerPayload(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A notification in the format that Alertmanager's webhooks have, of version 4. Its owner may
    add fields: those that are not known are passed over here, and here only."""

    version: Literal["4"]
    alerts: Annotated[list[AlertmanagerAlert], Meta(max_length=ALERTS_MOST)]
    truncated_alerts: Annotated[int, Meta(ge=0)] | None = None


class AlertmanagerResult(Schema, frozen=True, kw_only=True):
    """How many alerts opened an incident, resolved one, changed nothing, and were left out by the
    sender."""

    opened: int
    resolved: int
    ignored: int
    truncated: int
