"""Bodies of status pages: how they are edited, and what they show.

What a page shows has fewer fields for the public than for members: those that only members see may
lack, and so these shapes stand beside the ones that the editing of incidents has.
"""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from ....storage.core.availability import Withheld
from ....storage.incidents.rules.incident import (
    TITLE_LONGEST,
    IncidentImpact,
    IncidentSource,
    IncidentStatus,
)
from ....storage.status_pages.rules.status_page import (
    ComponentSource,
    ComponentStatus,
    NoDataReason,
    PageSummaryState,
    Visibility,
)
from ....storage.status_pages.rules.status_page_edit import (
    COMPONENT_NAME_LONGEST,
    DESCRIPTION_LONGEST,
    DOMAIN_LONGEST,
    GROUP_LONGEST,
    POSITION_MOST,
)
from ...wire.schema import InstantText, RequestSchema, Schema, SlugText

# What a text may further be is storage.status_pages.rules.status_page_edit's to say, in words.
PageTitle = Annotated[str, Meta(min_length=1, max_length=TITLE_LONGEST)]
ComponentName = Annotated[str, Meta(min_length=1, max_length=COMPONENT_NAME_LONGEST)]
Description = Annotated[str, Meta(max_length=DESCRIPTION_LONGEST)]
Group = Annotated[str, Meta(max_length=GROUP_LONGEST)]
Position = Annotated[int, Meta(ge=0, le=POSITION_MOST)]


class StatusPage(Schema, frozen=True, kw_only=True):
    """Without a project it is of the whole organization. `unlisted_token` opens an unlisted page,
    and is for those who may edit it. At its `domain` it is the root."""

    id: UUID
    org_id: UUID
    project_id: UUID | UnsetType = UNSET
    slug: str
    title: str
    visibility: Visibility
    domain: str | UnsetType = UNSET
    unlisted_token: str | UnsetType = UNSET
    created_at: InstantText
    updated_at: InstantText


class CreateStatusPage(RequestSchema, frozen=True, kw_only=True):
    slug: SlugText
    title: PageTitle
    visibility: Visibility = Visibility.LISTED
    project_id: UUID | UnsetType = UNSET


class UpdateStatusPage(RequestSchema, frozen=True, kw_only=True):
    title: PageTitle | UnsetType = UNSET
    visibility: Visibility | UnsetType = UNSET


class PageDomain(RequestSchema, frozen=True, kw_only=True):
    """Empty for none."""

    domain: Annotated[str, Meta(max_length=DOMAIN_LONGEST)]


class Component(Schema, frozen=True, kw_only=True):
    """`source_project` is where what it is bound to stands. What it is bound to lacks where that is
    gone, and where the caller is no member of its project."""

    id: UUID
    status_page_id: UUID
    name: str
    description: str
    group: str
    position: int
    org_id: UUID
    source: ComponentSource
    source_project: UUID | UnsetType = UNSET
    monitor_id: UUID | UnsetType = UNSET
    service_id: UUID | UnsetType = UNSET
    manual_status: ComponentStatus | UnsetType = UNSET
    revision: int
    created_at: InstantText
    updated_at: InstantText


class CreateComponent(RequestSchema, frozen=True, kw_only=True):
    """Bound to exactly one of a monitor, a service and a status that is set by hand. Without a
    position it is the last."""

    name: ComponentName
    description: Description = ""
    group: Group = ""
    position: Position | UnsetType = UNSET
    monitor_id: UUID | UnsetType = UNSET
    service_id: UUID | UnsetType = UNSET
    manual_status: ComponentStatus | UnsetType = UNSET


class UpdateComponent(RequestSchema, frozen=True, kw_only=True):
    """What is left out stays; `manual_status` is for a component that is set by hand."""

    name: ComponentName
    description: Description | UnsetType = UNSET
    group: Group | UnsetType = UNSET
    position: Position | UnsetType = UNSET
    manual_status: ComponentStatus | UnsetType = UNSET


class ConversionTarget(RequestSchema, frozen=True, kw_only=True):
    """What a component is to be bound to. `revision` and `page_generation` are those of the
    preview, and are needed where it is done."""

    source: ComponentSource
    service_id: UUID | UnsetType = UNSET
    monitor_id: UUID | UnsetType = UNSET
    manual_status: ComponentStatus | UnsetType = UNSET
    revision: int | UnsetType = UNSET
    page_generation: int | UnsetType = UNSET


class ComponentDay(Schema, frozen=True, kw_only=True):
    """A day in UTC. Without `uptime_percent` nothing was measured; `total` counts results, or
    sealed minutes of a service."""

    day: Annotated[str, Meta(extra_json_schema={"format": "date"})]
    uptime_percent: float | UnsetType = UNSET
    total: int


class ComponentView(Schema, frozen=True, kw_only=True):
    """`reason` says why there is no data, `withheld_reason` why there is no `uptime_90d`.
    `uptime_since` is where its time begins, where that is later than the first of the days."""

    id: UUID
    name: str
    group: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    status: ComponentStatus
    uptime_90d: float | UnsetType = UNSET
    uptime_since: InstantText | UnsetType = UNSET
    daily: list[ComponentDay]
    source: ComponentSource
    reason: NoDataReason | UnsetType = UNSET
    unavailable: bool | UnsetType = UNSET
    withheld_reason: Withheld | UnsetType = UNSET


class PageSummary(Schema, frozen=True, kw_only=True):
    """The worst of what is measured, and how many components are not."""

    summary: ComponentStatus
    summary_state: PageSummaryState
    unmeasured_count: int


class ConversionPreview(Schema, frozen=True, kw_only=True):
    """How the component and the page's summary are, and how they would be. `reverts_to` is the
    source that it has now; it lacks where nothing would change."""

    component: ComponentView
    proposed: ComponentView
    summary: PageSummary
    proposed_summary: PageSummary
    revision: int
    page_generation: int
    no_op: bool
    reverts_to: ComponentSource | UnsetType = UNSET
    notes: list[str]


class PageUpdate(Schema, frozen=True, kw_only=True):
    """What was said of an incident; `id` and `author` are for members."""

    id: UUID | UnsetType = UNSET
    incident_id: UUID
    seq: int
    status: IncidentStatus | UnsetType = UNSET
    body: str
    public: bool
    author: str | UnsetType = UNSET
    created_at: InstantText


class PagePostmortem(Schema, frozen=True, kw_only=True):
    id: UUID | UnsetType = UNSET
    incident_id: UUID
    body: str
    declaration_revision: int | UnsetType = UNSET
    author: str | UnsetType = UNSET
    published_at: InstantText
    created_at: InstantText
    updated_at: InstantText


class IncidentDetail(Schema, frozen=True, kw_only=True):
    """An incident as a page shows it, with what was said of it. `seq` is the number of the last
    update that the reader may see."""

    id: UUID
    project_id: UUID | UnsetType = UNSET
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
    escalation_step: int | UnsetType = UNSET
    last_escalated_at: InstantText | UnsetType = UNSET
    created_at: InstantText
    updated_at: InstantText
    updates: list[PageUpdate]
    postmortem: PagePostmortem | UnsetType = UNSET


class PageMaintenance(Schema, frozen=True, kw_only=True):
    """Announced time; `ends_at` is where it ends, or was ended. Ids are for members."""

    id: UUID | UnsetType = UNSET
    project_id: UUID | UnsetType = UNSET
    monitor_id: UUID | UnsetType = UNSET
    starts_at: InstantText
    ends_at: InstantText
    reason: str
    created_at: InstantText | UnsetType = UNSET


class StatusPageRender(Schema, frozen=True, kw_only=True):
    """What a page says. `updated_at` is when it was so; what is not known is no_data."""

    slug: str
    title: str
    visibility: Visibility
    summary: ComponentStatus
    summary_state: PageSummaryState
    unmeasured_count: int
    components: list[ComponentView]
    active_incidents: list[IncidentDetail]
    recent_incidents: list[IncidentDetail]
    recent_incidents_more: bool
    maintenance: list[PageMaintenance]
    updated_at: InstantText


class IncidentMonth(Schema, frozen=True, kw_only=True):
    """Incidents that began in a calendar month in UTC, newest first."""

    month: str
    incidents: list[IncidentDetail]
    next_cursor: str | None
