"""JSON bodies of status pages: for editors, and as rendered.

A rendered page has fewer fields for the public than for members. Fields for members are optional,
so these schemas are separate from the incident schemas.
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
from ....storage.status_pages.rules.component_latency import LatencyWithheld
from ....storage.status_pages.rules.page_domain import DOMAIN_LONGEST, MissingProof
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
    GROUP_LONGEST,
    POSITION_MOST,
)
from ...wire.schema import InstantText, RequestSchema, Schema, SlugText

# storage.status_pages.rules.status_page_edit checks the remaining rules.
PageTitle = Annotated[str, Meta(min_length=1, max_length=TITLE_LONGEST)]
ComponentName = Annotated[str, Meta(min_length=1, max_length=COMPONENT_NAME_LONGEST)]
Description = Annotated[str, Meta(max_length=DESCRIPTION_LONGEST)]
Group = Annotated[str, Meta(max_length=GROUP_LONGEST)]
Position = Annotated[int, Meta(ge=0, le=POSITION_MOST)]


class PageBranding(Schema, frozen=True, kw_only=True):
    """Branding of a status page. An empty field has the value of the installation."""

    accent_color: str
    logo_url: str
    footer_text: str
    support_url: str


class PageBrandingRequest(RequestSchema, frozen=True, kw_only=True):
    """Complete branding of a status page. An absent field becomes empty."""

    accent_color: str = ""
    logo_url: str = ""
    footer_text: str = ""
    support_url: str = ""


class DomainRecord(Schema, frozen=True, kw_only=True):
    """DNS record that proves a domain."""

    name: str
    value: str


class DomainFile(Schema, frozen=True, kw_only=True):
    """File of a web server that proves a domain which no other page has."""

    url: str
    content: str


class DomainProof(Schema, frozen=True, kw_only=True):
    """Missing proof of a domain: one of its parts is enough.

    `cname` is present if the installation has a host name. `reason` is that of the last check.
    """

    domain: str
    txt: DomainRecord
    cname: DomainRecord | UnsetType = UNSET
    file: DomainFile
    checked_at: InstantText | UnsetType = UNSET
    reason: MissingProof | UnsetType = UNSET


class StatusPage(Schema, frozen=True, kw_only=True):
    """Status page.

    Without a project it belongs to the organization. `unlisted_token` opens an unlisted page and is
    present for editors. At its `domain` the page is the root. `domain_proof` is present for editors
    while the proof of another domain is missing. `timezone` is that of the months in its reports.
    `language` is that of the fixed words: `auto` (that of the reader), `en` or `de`.
    """

    id: UUID
    org_id: UUID
    project_id: UUID | UnsetType = UNSET
    slug: str
    title: str
    visibility: Visibility
    domain: str | UnsetType = UNSET
    domain_proof: DomainProof | UnsetType = UNSET
    unlisted_token: str | UnsetType = UNSET
    branding: PageBranding
    timezone: str
    language: str
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
    branding: PageBrandingRequest | UnsetType = UNSET
    timezone: str | UnsetType = UNSET
    language: str | UnsetType = UNSET


class PageDomain(RequestSchema, frozen=True, kw_only=True):
    """`domain` is empty for no domain. The same domain again checks its proof."""

    domain: Annotated[str, Meta(max_length=DOMAIN_LONGEST)]


class Component(Schema, frozen=True, kw_only=True):
    """Component of a status page.

    `source_project` is the project of the source. The source is absent if it was deleted, or if the
    caller may not see its project.
    """

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
    show_latency: bool
    revision: int
    created_at: InstantText
    updated_at: InstantText


class CreateComponent(RequestSchema, frozen=True, kw_only=True):
    """Component to create.

    It has exactly one source: a monitor, a service or a manual status. Without a position it
    becomes the last. `show_latency` requires a monitor that measures latency.
    """

    name: ComponentName
    description: Description = ""
    group: Group = ""
    position: Position | UnsetType = UNSET
    monitor_id: UUID | UnsetType = UNSET
    service_id: UUID | UnsetType = UNSET
    manual_status: ComponentStatus | UnsetType = UNSET
    show_latency: bool = False


class UpdateComponent(RequestSchema, frozen=True, kw_only=True):
    """Absent fields are unchanged.

    `manual_status` requires a component with a manual status, `show_latency` a component of a
    monitor that measures latency.
    """

    name: ComponentName
    description: Description | UnsetType = UNSET
    group: Group | UnsetType = UNSET
    position: Position | UnsetType = UNSET
    manual_status: ComponentStatus | UnsetType = UNSET
    show_latency: bool | UnsetType = UNSET


class ConversionTarget(RequestSchema, frozen=True, kw_only=True):
    """New source of a component.

    `revision` and `page_generation` must equal the values of the preview. The conversion requires
    them.
    """

    source: ComponentSource
    service_id: UUID | UnsetType = UNSET
    monitor_id: UUID | UnsetType = UNSET
    manual_status: ComponentStatus | UnsetType = UNSET
    revision: int | UnsetType = UNSET
    page_generation: int | UnsetType = UNSET


class ComponentDay(Schema, frozen=True, kw_only=True):
    """Day in UTC. `uptime_percent` is absent without measurement.

    `total` counts results, or sealed minutes of a service.
    """

    day: Annotated[str, Meta(extra_json_schema={"format": "date"})]
    uptime_percent: float | UnsetType = UNSET
    total: int


class ComponentLatencyPoint(Schema, frozen=True, kw_only=True):
    """Percentiles of the successful checks of a step, in ms."""

    starts_at: InstantText
    p50_ms: int
    p95_ms: int


class ComponentLatency(Schema, frozen=True, kw_only=True):
    """Latency of a component over the last day.

    A step without a point was not measured. `withheld_reason` explains missing points.
    """

    starts_at: InstantText
    ends_at: InstantText
    step_seconds: int
    points: list[ComponentLatencyPoint]
    withheld_reason: LatencyWithheld | UnsetType = UNSET


class ComponentView(Schema, frozen=True, kw_only=True):
    """Component as rendered.

    `reason` explains missing data, and `withheld_reason` a missing `uptime_90d`. `uptime_since` is
    present if its data starts later than the first day. `latency` is present if the component
    shows it.
    """

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
    latency: ComponentLatency | UnsetType = UNSET


class PageSummary(Schema, frozen=True, kw_only=True):
    """Worst status of the measured components, and the number of unmeasured components."""

    summary: ComponentStatus
    summary_state: PageSummaryState
    unmeasured_count: int


class ConversionPreview(Schema, frozen=True, kw_only=True):
    """Component and page summary before and after a conversion.

    `reverts_to` is the current source. It is absent if the conversion changes no field.
    """

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
    """Update of an incident. `id` and `author` are present for members."""

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
    """Incident on a page, with its updates.

    `seq` is the number of the last update that the reader may see.
    """

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
    """Announced maintenance. `ends_at` is its planned or early end. Members also get ids."""

    id: UUID | UnsetType = UNSET
    project_id: UUID | UnsetType = UNSET
    monitor_id: UUID | UnsetType = UNSET
    starts_at: InstantText
    ends_at: InstantText
    reason: str
    created_at: InstantText | UnsetType = UNSET


class StatusPageRender(Schema, frozen=True, kw_only=True):
    """Rendered page. `updated_at` is the instant of the state. Unknown states are `no_data`."""

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
