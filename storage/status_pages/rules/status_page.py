"""What a status page says, made of one snapshot of facts: the one place that decides what leaves.

Whoever shows a page (JSON, HTML, feeds, mail) shows what `render` returns, so they cannot disagree.
What is not known is `no_data` and never operational. To the public no id leaves but those of
components and incidents, no person's name, and nothing that a check or another system wrote.
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

RECENT_MOST: Final = 10
COMPONENTS_MOST: Final = 200
DAYS: Final = 90
# To the public, of what another system told us.
TITLE_OF_ALERT: Final = "Incident"


class ComponentStatus(StrEnum):
    """Of a component and of a page, from the best that was measured to the worst."""

    NO_DATA = "no_data"
    OPERATIONAL = "operational"
    MAINTENANCE = "maintenance"
    DEGRADED = "degraded"
    PARTIAL_OUTAGE = "partial_outage"
    MAJOR_OUTAGE = "major_outage"


class PageSummaryState(StrEnum):
    """Impaired is all that is not wholly operational, planned maintenance included."""

    OPERATIONAL = "operational"
    IMPAIRED = "impaired"
    NO_DATA = "no_data"
    EMPTY = "empty"


class Visibility(StrEnum):
    LISTED = "listed"
    UNLISTED = "unlisted"
    INTERNAL = "internal"


class ComponentSource(StrEnum):
    MONITOR = "monitor"
    SERVICE = "service"
    MANUAL = "manual"


class Audience(StrEnum):
    """Who reads it: anybody, or those who may see the page's organization."""

    PUBLIC = "public"
    MEMBER = "member"


class NoDataReason(StrEnum):
    """Why a component has no data."""

    NOT_BOUND = "not_bound"
    PAUSED = "paused"
    NO_RESULT_YET = "no_result_yet"
    NO_FRESH_RESULT = "no_fresh_result"
    NOT_DECLARED = "not_declared"
    MEMBERS_UNKNOWN = "members_unknown"
    SET_BY_HAND = "set_by_hand"


@dataclass(frozen=True, slots=True)
class Now:
    """How a component stands; the reason is there exactly where there is no data."""

    status: ComponentStatus
    reason: NoDataReason | None = None

    def __post_init__(self) -> None:
        assert (self.status is ComponentStatus.NO_DATA) is (self.reason is not None), self


class ComponentDay(msgspec.Struct, frozen=True, gc=False):
    """A day in UTC by its midnight, with its time by condition; `degraded_us` lies within the good
    time. `total` counts results, or sealed minutes of a service."""

    day: Instant
    split: Split
    degraded_us: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentMeasurement:
    """What was measured of a component over DAYS. `since` is where its time begins, if that is
    later than the first of the days; `sample` is how many results the figure is made of."""

    figure: Availability
    split: Split = NOTHING
    sample: int = 0
    since: Instant | None = None
    days: Sequence[ComponentDay] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentFacts:
    """`anchor` is the monitor or service that it is bound to; None for a manual one, and where what
    it was bound to is gone. A manual one is not measured."""

    uid: UUID
    name: str
    description: str
    group: str
    source: ComponentSource
    anchor: UUID | None
    now: Now
    measured: ComponentMeasurement | None
    updated_at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What was said of an incident. `by_person` is false where a machine wrote it, or a token."""

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
    """As members see it; what is None or empty is not shown. `updates` are in their order."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """Announced time. `monitor` None is the whole project; `components` are those of the page that
    it is about. `over_at` is where it ends, or was ended."""

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
    """One snapshot. `project` is None for a page of the whole organization; the incidents are those
    that `may_show` may be asked of, newest first."""

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
    """What is shown. `updated_at` is when it was so."""

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
    """The page for an audience."""
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
    """The worst of what is known, and how many are not known."""
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
    """How a service's component stands; None is all of it in maintenance."""
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
    """A component by what it is bound to, and what the page calls that."""

    anchor: UUID | None
    name: str


@dataclass(frozen=True, slots=True)
class PageFrame:
    """What of a page decides on its incidents."""

    project: UUID | None
    components: Sequence[Named]


def shown_incidents(
    facts: PageFacts | PageFrame, incidents: Iterable[Incident], audience: Audience
) -> list[Incident]:
    """Those of the incidents that this audience may see, as it may see them, in the order given."""
    found = [one for one in incidents if may_show(facts, one)]
    if audience is Audience.MEMBER:
        return found
    redacted = (_public(facts, one) for one in found)
    return [one for one in redacted if one is not None]


def may_show(facts: PageFacts | PageFrame, incident: Incident) -> bool:
    """A component is bound to what it is about; or it is about nothing, and both stand in one
    project. One that Leadline opened was about something that may be gone."""
    anchors = {one.anchor for one in facts.components if one.anchor is not None}
    if incident.monitor is None and incident.service is None:
        is_ours = incident.source is IncidentSource.AUTO
        return facts.project is not None and facts.project == incident.project and not is_ours
    return incident.monitor in anchors or incident.service in anchors


def _public(facts: PageFacts | PageFrame, incident: Incident) -> Incident | None:
    """Without what the public must not see; None where nothing public was said."""
    updates = [_public_update(one) for one in incident.updates if _is_public(incident, one)]
    if not updates:
        return None
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
        updated_at=max(incident.resolved_at or updates[-1].created_at, updates[-1].created_at),
        updates=updates,
        postmortem=_public_postmortem(incident.postmortem),
    )


def _is_public(incident: Incident, update: Update) -> bool:
    """What another system's alert says is for whoever runs it: a person says what the public
    reads."""
    return update.public and (incident.external_key is None or update.by_person)


def _public_update(update: Update) -> Update:
    return replace(update, uid=None, author="", by_person=False)


def _public_postmortem(postmortem: Postmortem | None) -> Postmortem | None:
    return None if postmortem is None else replace(postmortem, uid=None, author="")


def _public_title(facts: PageFacts | PageFrame, incident: Incident) -> str:
    """What Leadline opened is called after what it is about; the page has a name of its own for
    that. What another system opened is called what that system says."""
    if incident.external_key is not None:
        return TITLE_OF_ALERT
    if incident.source is not IncidentSource.AUTO:
        return incident.title
    about = (incident.monitor, incident.service)
    names = [one.name for one in facts.components if one.anchor is not None and one.anchor in about]
    tail = next((one for one in _TAILS if incident.title.endswith(one)), _TAIL_OTHERWISE)
    return clipped_title(names[0], tail)


# What Leadline says of a thing after its name; of what it cannot see it says no more to the public.
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
    )


def _maintenance(facts: PageFacts, audience: Audience) -> list[Maintenance]:
    """What runs or is to come and is about a component, the first to begin first."""
    found = [one for one in facts.maintenance if one.over_at > facts.as_of and one.components]
    found.sort(key=lambda one: (one.starts_at, one.over_at, one.reason))
    if audience is Audience.MEMBER:
        return found
    hidden = [replace(one, uid=None, project=None, monitor=None, created_at=None) for one in found]
    # One announcement for each of several monitors of a component reads as one.
    return list(dict.fromkeys(replace(one, components=tuple(one.components)) for one in hidden))
