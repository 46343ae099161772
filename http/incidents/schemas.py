"""JSON bodies of incidents, their updates and the Alertmanager webhook."""

from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ...storage.incidents.queries.incident_impacts import ImpactRole, IncidentPart
from ...storage.incidents.rules.alert_route import LABELS_MOST, ROUTES_MOST
from ...storage.incidents.rules.alertmanager_alert import ALERTS_MOST
from ...storage.incidents.rules.escalation_pause import SNOOZE_MINUTES
from ...storage.incidents.rules.incident import (
    BODY_LONGEST,
    POSTMORTEM_LONGEST,
    TITLE_LONGEST,
    IncidentImpact,
    IncidentSource,
    IncidentStatus,
)
from ...storage.mutes.rules.label_matcher import TEXT_LONGEST
from ...storage.status_pages.rules.status_page import ComponentStatus
from ..wire.schema import InstantText, Name, RequestSchema, Schema

# storage.incidents.rules.incident checks the remaining rules.
Title = Annotated[str, Meta(min_length=1, max_length=TITLE_LONGEST)]
Body = Annotated[str, Meta(max_length=BODY_LONGEST)]


class Incident(Schema, frozen=True, kw_only=True):
    """Incident.

    `number` counts the incidents of the project from 1. The console shows it as INC-214.
    `acknowledged_by` is a user. It is absent if an API token acknowledged; `acknowledged_by_name`
    is present in both cases. `seq` is the number of the last update. `runbook_url` is that of the
    monitor or the service. The acknowledgement in force expires at `ack_expires_at`. With
    `ack_expired_at` it has expired, and the escalation continues. `unrouted` is present if the
    external alert has no escalation policy, so that it pages nobody. With `snoozed_until` the
    escalation stops until then. `assigned_to_name` is the person or the policy that it was
    reassigned to last. `self_condition` names the condition of Leadline that the incident is about;
    no target has failed then. In a storm of alerts of one service, `paged_with` is the number of
    the incident whose page covers this one.
    """

    id: UUID
    project_id: UUID
    monitor_id: UUID | UnsetType = UNSET
    service_id: UUID | UnsetType = UNSET
    external_key: str | UnsetType = UNSET
    number: int
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
    ack_expires_at: InstantText | UnsetType = UNSET
    ack_expired_at: InstantText | UnsetType = UNSET
    snoozed_until: InstantText | UnsetType = UNSET
    snoozed_by_name: str | UnsetType = UNSET
    assigned_to_type: Literal["person", "policy"] | UnsetType = UNSET
    assigned_to_name: str | UnsetType = UNSET
    paged_with: int | UnsetType = UNSET
    runbook_url: str | UnsetType = UNSET
    self_condition: str | UnsetType = UNSET
    unrouted: bool | UnsetType = UNSET
    escalation_step: int
    last_escalated_at: InstantText | UnsetType = UNSET
    created_at: InstantText
    updated_at: InstantText


class ServiceImpactLink(Schema, frozen=True, kw_only=True):
    """Service that the incident affects, or that may have caused it. `path` consists of slugs."""

    service_id: UUID
    slug: str
    name: str
    role: ImpactRole
    path: list[str]
    computed_at: InstantText


class IncidentMember(Schema, frozen=True, kw_only=True):
    """Member of the incident's service.

    SLI members have the role `sli`. A member has both roles if its role changed during the
    incident.
    """

    monitor_id: UUID
    name: str
    roles: list[IncidentPart]


class AuthedIncident(Incident, frozen=True, kw_only=True):
    """Incident for members of the project.

    `impacts` is null if no service is concerned. `members` are the declared members of the
    incident's service during the incident. `impacts_unavailable` and `members_unavailable` are
    true if they could not be read in time: then their absence states nothing.
    """

    impacts: list[ServiceImpactLink] | None
    impacts_unavailable: bool | UnsetType = UNSET
    members: list[IncidentMember] | UnsetType = UNSET
    members_unavailable: bool | UnsetType = UNSET


class ButtonAnswer(Schema, frozen=True, kw_only=True):
    """Text for the person who pressed the button, also if the answer was refused."""

    ephemeral_text: str


class SnoozeIncident(RequestSchema, frozen=True, kw_only=True):
    """The escalation stops for `minutes` from now and then continues, unless it is resolved."""

    minutes: Annotated[int, Meta(ge=SNOOZE_MINUTES[0], le=SNOOZE_MINUTES[1])]


class ReassignIncident(RequestSchema, frozen=True, kw_only=True):
    """`id` is that of a user who is a member of the project, or of an escalation policy of it."""

    type: Literal["person", "policy"]
    id: UUID


class NamedComponent(RequestSchema, frozen=True, kw_only=True):
    """Component of a status page that the incident affects.

    `status` sets the state of a manual component; any other component refuses it.
    """

    component_id: UUID
    status: ComponentStatus | UnsetType = UNSET


class CreateIncident(RequestSchema, frozen=True, kw_only=True):
    """Incident to open.

    It is about at most one of `monitor_id` and `service_id`. `escalation_policy_id` starts, or else
    the escalation policy of the monitor or service.
    `components` decide, with the monitor or service, which status pages show it. `public` is of the
    first update.
    """

    title: Title
    status: IncidentStatus = IncidentStatus.INVESTIGATING
    impact: IncidentImpact = IncidentImpact.MINOR
    body: Body = ""
    monitor_id: UUID | UnsetType = UNSET
    service_id: UUID | UnsetType = UNSET
    escalation_policy_id: UUID | UnsetType = UNSET
    components: list[NamedComponent] = []
    public: bool = True


class IncidentUpdate(Schema, frozen=True, kw_only=True):
    """Update of an incident. A note has no `status`. Leadline's own updates have no `author`.

    `withdraws` is the `seq` of the update that this one made internal. Before `undo_until`, the
    update can be withdrawn and messages to subscribers wait.
    """

    id: UUID
    incident_id: UUID
    seq: int
    status: IncidentStatus | UnsetType = UNSET
    body: str
    public: bool
    author: str | UnsetType = UNSET
    created_at: InstantText
    withdraws: int | UnsetType = UNSET
    undo_until: InstantText | UnsetType = UNSET


class AddIncidentUpdate(RequestSchema, frozen=True, kw_only=True):
    """`public` defaults to true with a status, and to false for a note."""

    status: IncidentStatus | UnsetType = UNSET
    body: Body = ""
    public: bool | UnsetType = UNSET


class IncidentTemplate(Schema, frozen=True, kw_only=True):
    """Template of a project. `body` is the first public text of an incident, possibly empty."""

    id: UUID
    project_id: UUID
    name: str
    title: str
    impact: IncidentImpact
    body: str
    created_at: InstantText
    updated_at: InstantText


class CreateIncidentTemplate(RequestSchema, frozen=True, kw_only=True):
    """Template to create. No other template of the project has the name, in any case."""

    name: Name
    title: Title
    impact: IncidentImpact = IncidentImpact.MINOR
    body: Body = ""


class PatchIncidentTemplate(RequestSchema, frozen=True, kw_only=True):
    """An absent field is unchanged."""

    name: Name | UnsetType = UNSET
    title: Title | UnsetType = UNSET
    impact: IncidentImpact | UnsetType = UNSET
    body: Body | UnsetType = UNSET


class Postmortem(Schema, frozen=True, kw_only=True):
    """`author` is the user who wrote it first. It is public only if it is published."""

    id: UUID
    incident_id: UUID
    body: str
    declaration_revision: int | UnsetType = UNSET
    author: str | UnsetType = UNSET
    published: bool
    published_at: InstantText | UnsetType = UNSET
    created_at: InstantText
    updated_at: InstantText


class PutPostmortem(RequestSchema, frozen=True, kw_only=True):
    """Postmortem to write. Status pages, feeds and the Statuspage format show it if `published`.

    `declaration_revision` was in effect during the incident. It is required if the incident has a
    service.
    """

    body: Annotated[str, Meta(max_length=POSTMORTEM_LONGEST)]
    declaration_revision: int | UnsetType = UNSET
    published: bool = False


# No limit per value, as labels can be long. The limit of the body bounds them.
Texts = dict[str, str]


class AlertmanagerAlert(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Fields of an alert that Leadline reads. Unknown fields are ignored."""

    status: Literal["firing", "resolved"]
    fingerprint: str
    labels: Texts | None = None
    annotations: Texts | None = None
    starts_at: InstantText | None = None
    ends_at: InstantText | None = None


class AlertmanagerPayload(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Alertmanager webhook notification, version 4.

    Alertmanager can add fields. Unknown fields are ignored here, in contrast to all other requests.
    """

    version: Literal["4"]
    alerts: Annotated[list[AlertmanagerAlert], Meta(max_length=ALERTS_MOST)]
    truncated_alerts: Annotated[int, Meta(ge=0)] | None = None


class AlertmanagerResult(Schema, frozen=True, kw_only=True):
    """Number of alerts that opened an incident, resolved one, or changed none.

    `truncated` is the number that the sender left out.
    """

    opened: int
    resolved: int
    ignored: int
    truncated: int


class AlertTarget(RequestSchema, frozen=True, kw_only=True):
    """One of a service, whose escalation policy starts, and an escalation policy."""

    service_id: UUID | UnsetType = UNSET
    escalation_policy_id: UUID | UnsetType = UNSET


class AlertRoute(AlertTarget, frozen=True, kw_only=True):
    """Route of the alerts whose labels match all `matchers`, in the syntax of Alertmanager."""

    matchers: Annotated[str, Meta(min_length=1, max_length=TEXT_LONGEST)]


Routes = Annotated[list[AlertRoute], Meta(max_length=ROUTES_MOST)]


class AlertRoutes(RequestSchema, frozen=True, kw_only=True):
    """Routes in their order: the first that matches decides, else `default`.

    An alert without a route is unrouted: its incident pages nobody. A route in an answer has no
    target if its service or escalation policy was deleted.
    """

    routes: Routes = []
    default: AlertTarget | None = None


class AlertRoutesSample(AlertRoutes, frozen=True, kw_only=True):
    """Routes that need not be saved, and the labels of a sample alert."""

    labels: Annotated[dict[str, str], Meta(max_length=LABELS_MOST)]


class AlertRouteResult(Schema, frozen=True, kw_only=True):
    """Decision about a sample. `route` is the index of the route, absent for the default.

    `matching` states for each route whether it matches, also if an earlier one decides.
    """

    outcome: Literal["route", "default", "unrouted"]
    route: int | UnsetType = UNSET
    matching: list[bool]
