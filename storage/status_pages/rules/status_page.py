"""Content of a status page, computed from one snapshot of facts.

This is the only module that decides what is published. All outputs (JSON, HTML, feeds, mail) use
`render`, so they are consistent.

Invariant: unknown is `no_data` and never operational. The public sees only the ids of components
and incidents, no names of persons, and no text by a check or another system.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec

from ...alerting.rules.outage_text import DOWN_TAIL
from ...core.availability import Availability, Withheld
from ...core.instant import Instant
from ...core.sli import NOTHING, Split
from ...incidents.rules.incident import (
    IncidentImpact,
    IncidentSource,
    IncidentStatus,
    clipped_title,
)
from ...services.rules.service_health import Health
from .component_latency import ComponentLatency

RECENT_MOST: Final = 10
COMPONENTS_MOST: Final = 200
DAYS: Final = 90
# Public title of an incident from another system.
TITLE_OF_ALERT: Final = "Incident"


class ComponentStatus(StrEnum):
    """Status of a component or page, in ascending severity."""

    NO_DATA = "no_data"
    OPERATIONAL = "operational"
    MAINTENANCE = "maintenance"
    DEGRADED = "degraded"
    PARTIAL_OUTAGE = "partial_outage"
    MAJOR_OUTAGE = "major_outage"


class PageSummaryState(StrEnum):
    """State of a page. Impaired is any known status except operational, including maintenance."""

    OPERATIONAL = "operational"
    IMPAIRED = "impaired"
    NO_DATA = "no_data"
    EMPTY = "empty"


class Visibility(StrEnum):
    """Who can read a status page. Older clients write `public` for `listed`."""

    LISTED = "listed"
    UNLISTED = "unlisted"
    INTERNAL = "internal"

    @classmethod
    def _missing_(cls, value: object) -> "Visibility | None":
        return cls.LISTED if value == "public" else None


class ComponentSource(StrEnum):
    MONITOR = "monitor"
    SERVICE = "service"
    MANUAL = "manual"


class Audience(StrEnum):
    """Audience of a page: the public, or members who can see its organization."""

    PUBLIC = "public"
    MEMBER = "member"


class NoDataReason(StrEnum):
    """Reason why a component has no data."""

    NOT_BOUND = "not_bound"
    PAUSED = "paused"
    NO_RESULT_YET = "no_result_yet"
    NO_FRESH_RESULT = "no_fresh_result"
    NOT_DECLARED = "not_declared"
    MEMBERS_UNKNOWN = "members_unknown"
    SET_BY_HAND = "set_by_hand"


@dataclass(frozen=True, slots=True)
class Now:
    """Current status of a component. `reason` is set if and only if it has no data."""

    status: ComponentStatus
    reason: NoDataReason | None = None

    def __post_init__(self) -> None:
        assert (self.status is ComponentStatus.NO_DATA) is (self.reason is not None), self


class ComponentDay(msgspec.Struct, frozen=True, gc=False):
    """Day in UTC with the time by condition.

    `day` is its midnight. `degraded_us` is part of the good time. `total` counts results, or sealed
    minutes of a service.
    """

    day: Instant
    split: Split
    degraded_us: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentMeasurement:
    """Measurements of a component over DAYS.

    `since` is the begin of its time, if later than the first day. `sample` is the number of results
    in the figure, or of the sealed minutes of a service.
    """

    figure: Availability
    split: Split = NOTHING
    sample: int = 0
    since: Instant | None = None
    days: Sequence[ComponentDay] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentFacts:
    """Facts of a component.

    `anchor` is its monitor or service; None for a manual component and if the source is deleted. A
    manual component is not measured.
    """

    uid: UUID
    name: str
    description: str
    group: str
    source: ComponentSource
    anchor: UUID | None
    now: Now
    measured: ComponentMeasurement | None
    updated_at: Instant
    latency: ComponentLatency | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Update of an incident. `by_person` is false for a machine or token."""

    uid: UUID | None
    seq: int
    status: IncidentStatus | None
    body: str
    public: bool
    author: str
    by_person: bool
    created_at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Postmortem:
    uid: UUID | None
    body: str
    declaration_revision: int | None
    author: str
    published_at: Instant
    created_at: Instant
    updated_at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Incident as members see it. Empty fields and None are not shown. `updates` are in order."""

    uid: UUID
    project: UUID | None
    monitor: UUID | None
    service: UUID | None
    external_key: str | None
    seq: int
    title: str
    status: IncidentStatus
    impact: IncidentImpact
    source: IncidentSource
    started_at: Instant
    resolved_at: Instant | None
    acknowledged_at: Instant | None
    acknowledged_by: UUID | None
    acknowledged_label: str
    escalation_step: int | None
    last_escalated_at: Instant | None
    created_at: Instant
    updated_at: Instant
    updates: Sequence[Update]
    postmortem: Postmortem | None
    # Uids of the components that the incident names, of this or other pages.
    components: Sequence[UUID] = ()
    # When an update was withdrawn. Only `updated_at` shows it to the public.
    withdrawn_at: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """Announced maintenance.

    `monitor` None means the whole project. `components` are the affected components of the page.
    `over_at` is the planned or actual end.
    """

    uid: UUID | None
    project: UUID | None
    monitor: UUID | None
    starts_at: Instant
    over_at: Instant
    reason: str
    created_at: Instant | None
    components: Sequence[UUID] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFacts:
    """Snapshot of a page.

    `project` is None for a page of an organization. The incidents are candidates for `may_show`,
    newest first.
    """

    slug: str
    title: str
    visibility: Visibility
    project: UUID | None
    components: Sequence[ComponentFacts]
    incidents: Sequence[Incident]
    maintenance: Sequence[Maintenance]
    as_of: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    uid: UUID
    name: str
    description: str
    group: str
    source: ComponentSource
    status: ComponentStatus
    reason: NoDataReason | None
    unavailable: bool
    measured: ComponentMeasurement | None
    latency: ComponentLatency | None = None

    @property
    def withheld(self) -> Withheld | None:
        return None if self.measured is None else self.measured.figure.withheld_reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    status: ComponentStatus
    state: PageSummaryState
    unmeasured: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Rendered page. `updated_at` is the instant of the snapshot."""

    slug: str
    title: str
    visibility: Visibility
    summary: Summary
    components: Sequence[Component]
    active: Sequence[Incident]
    recent: Sequence[Incident]
    recent_more: bool
    maintenance: Sequence[Maintenance]
    updated_at: Instant


def render(facts: PageFacts, audience: Audience) -> Page:
    """Returns the page for an audience."""
    incidents = shown_incidents(facts, facts.incidents, audience)
    past = [one for one in incidents if one.status is IncidentStatus.RESOLVED]
    past.sort(key=lambda one: (one.started_at, one.uid), reverse=True)
    active = [one for one in incidents if one.status is not IncidentStatus.RESOLVED]
    active.sort(key=lambda one: (one.started_at, one.uid), reverse=True)
    return Page(
        slug=facts.slug,
        title=facts.title,
        visibility=facts.visibility,
        summary=summary_of([one.now for one in facts.components]),
        components=[_component(one) for one in facts.components],
        active=active,
        recent=past[:RECENT_MOST],
        recent_more=len(past) > RECENT_MOST,
        maintenance=_maintenance(facts, audience),
        updated_at=facts.as_of,
    )


def summary_of(components: Iterable[Now]) -> Summary:
    """Returns the worst known status and the number of components without data."""
    found = [one.status for one in components]
    known = [status for status in found if status is not ComponentStatus.NO_DATA]
    worst = max(known, key=_ORDER.index, default=ComponentStatus.NO_DATA)
    if not found:
        state = PageSummaryState.EMPTY
    elif not known:
        state = PageSummaryState.NO_DATA
    elif worst is ComponentStatus.OPERATIONAL:
        state = PageSummaryState.OPERATIONAL
    else:
        state = PageSummaryState.IMPAIRED
    return Summary(status=worst, state=state, unmeasured=len(found) - len(known))


_ORDER: Final = list(ComponentStatus)


def of_health(health: Health | None) -> Now:
    """Returns the status of a service component. None means all members in maintenance."""
    match health:
        case Health.HEALTHY:
            return Now(ComponentStatus.OPERATIONAL)
        case Health.DEGRADED:
            return Now(ComponentStatus.DEGRADED)
        case Health.DOWN:
            return Now(ComponentStatus.MAJOR_OUTAGE)
        case Health.UNKNOWN:
            return Now(ComponentStatus.NO_DATA, NoDataReason.MEMBERS_UNKNOWN)
        case None:
            return Now(ComponentStatus.MAINTENANCE)


@dataclass(frozen=True, slots=True)
class Named:
    """Component with its monitor or service and its name on the page."""

    anchor: UUID | None
    name: str
    uid: UUID | None = None


@dataclass(frozen=True, slots=True)
class PageFrame:
    """Data of a page that decides on its incidents."""

    project: UUID | None
    components: Sequence[Named]


def shown_incidents(
    facts: PageFacts | PageFrame, incidents: Iterable[Incident], audience: Audience
) -> list[Incident]:
    """Returns the incidents visible to the audience, redacted for it, in the order given."""
    found = [one for one in incidents if may_show(facts, one)]
    if audience is Audience.MEMBER:
        return found
    redacted = (_public(facts, one) for one in found)
    return [one for one in redacted if one is not None]


def may_show(facts: PageFacts | PageFrame, incident: Incident) -> bool:
    """Returns whether a page can show an incident.

    True if it names a component of the page, or a component is bound to its monitor or service.
    Without any of them, true if both are in the same project and Leadline did not open it: an
    automatic incident had a source, which may be deleted.
    """
    if any(one.uid in incident.components for one in facts.components):
        return True
    anchors = {one.anchor for one in facts.components if one.anchor is not None}
    if incident.monitor is None and incident.service is None:
        is_ours = incident.source is IncidentSource.AUTO or bool(incident.components)
        return facts.project is not None and facts.project == incident.project and not is_ours
    return incident.monitor in anchors or incident.service in anchors


def _public(facts: PageFacts | PageFrame, incident: Incident) -> Incident | None:
    """Returns the incident without private data, None if it has no public update."""
    name = affected_names(facts, incident)
    updates = [
        _public_update(incident, one, name[0] if name else "")
        for one in incident.updates
        if _is_public(incident, one)
    ]
    if not updates:
        return None
    last = updates[-1].created_at
    return replace(
        incident,
        project=None,
        monitor=None,
        service=None,
        external_key=None,
        seq=updates[-1].seq,
        title=_public_title(facts, incident),
        acknowledged_at=None,
        acknowledged_by=None,
        acknowledged_label="",
        escalation_step=None,
        last_escalated_at=None,
        # A reader of a feed replaces a withdrawn text only by an entry that is newer.
        updated_at=max(last, incident.resolved_at or last, incident.withdrawn_at or last),
        withdrawn_at=None,
        updates=updates,
        postmortem=_public_postmortem(incident.postmortem),
    )


def _is_public(incident: Incident, update: Update) -> bool:
    """Returns whether the public sees an update.

    Texts of alerts from other systems are for operators. Of such incidents the public sees only
    updates by a person.
    """
    return update.public and (incident.external_key is None or update.by_person)


def affected_names(facts: PageFacts | PageFrame, incident: Incident) -> list[str]:
    """Returns the names of the page's components that the incident affects, in page order."""
    about = {one for one in (incident.monitor, incident.service) if one is not None}
    return [
        one.name
        for one in facts.components
        if one.anchor in about or one.uid in incident.components
    ]


def _public_update(incident: Incident, update: Update, name: str) -> Update:
    """Returns the update without its author. Leadline's first text names the component."""
    body = update.body
    if incident.source is IncidentSource.AUTO and update.body in _FIRST_TEXTS and name:
        body = f"Our monitoring shows a problem with {name}. We are investigating."
    return replace(update, uid=None, author="", by_person=False, body=body)


def _public_postmortem(postmortem: Postmortem | None) -> Postmortem | None:
    return None if postmortem is None else replace(postmortem, uid=None, author="")


def _public_title(facts: PageFacts | PageFrame, incident: Incident) -> str:
    """Returns the public title.

    An automatic incident is named after its component on this page. An alert from another system
    has a fixed title, because its own title is private.
    """
    if incident.external_key is not None:
        return TITLE_OF_ALERT
    if incident.source is not IncidentSource.AUTO:
        return incident.title
    about = (incident.monitor, incident.service)
    names = [one.name for one in facts.components if one.anchor is not None and one.anchor in about]
    tail = next((one for one in _TAILS if incident.title.endswith(one)), _TAIL_OTHERWISE)
    return clipped_title(names[0], tail)


# First texts of automatic incidents of this and earlier versions.
_FIRST_TEXTS: Final = (
    "Our monitoring detected a problem. We are investigating.",
    "Our monitoring shows a problem. We are investigating.",
)
# Tails of automatic titles. Any other tail is replaced for the public.
_TAILS: Final = (DOWN_TAIL, " is degraded")
_TAIL_OTHERWISE: Final = " may be affected"


def _component(facts: ComponentFacts) -> Component:
    return Component(
        uid=facts.uid,
        name=facts.name,
        description=facts.description,
        group=facts.group,
        source=facts.source,
        status=facts.now.status,
        reason=facts.now.reason,
        unavailable=facts.now.reason is NoDataReason.NOT_BOUND,
        measured=facts.measured,
        latency=facts.latency,
    )


def _maintenance(facts: PageFacts, audience: Audience) -> list[Maintenance]:
    """Returns current and future maintenance that affects components, by start."""
    found = [one for one in facts.maintenance if one.over_at > facts.as_of and one.components]
    found.sort(key=lambda one: (one.starts_at, one.over_at, one.reason))
    if audience is Audience.MEMBER:
        return found
    hidden = [replace(one, uid=None, project=None, monitor=None, created_at=None) for one in found]
    # Equal announcements for several monitors of a component are merged.
    return list(dict.fromkeys(replace(one, components=tuple(one.components)) for one in hidden))
