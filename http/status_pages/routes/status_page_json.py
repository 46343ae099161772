"""JSON of a rendered status page. Fields that `status_page.render` omits are absent."""

from functools import lru_cache

from ....storage.core.availability import uptime_percent
from ....storage.core.instant import SECOND, Instant, to_text
from ....storage.status_pages.rules.component_latency import STEP_US, ComponentLatency
from ....storage.status_pages.rules.status_page import (
    DAYS,
    Component,
    ComponentDay,
    Incident,
    Maintenance,
    Page,
    Postmortem,
    Summary,
    Update,
)
from ...wire.schema import instant_text, known
from ..schemas import status_pages as schemas
from ..schemas.status_pages import (
    ComponentView,
    IncidentDetail,
    PageMaintenance,
    PagePostmortem,
    PageSummary,
    PageUpdate,
    StatusPageRender,
)


def page_json(page: Page) -> StatusPageRender:
    summary = page.summary
    return StatusPageRender(
        slug=page.slug,
        title=page.title,
        visibility=page.visibility,
        summary=summary.status,
        summary_state=summary.state,
        unmeasured_count=summary.unmeasured,
        components=[component_json(one) for one in page.components],
        active_incidents=[incident_json(one) for one in page.active],
        recent_incidents=[incident_json(one) for one in page.recent],
        recent_incidents_more=page.recent_more,
        maintenance=[_maintenance(one) for one in page.maintenance],
        updated_at=to_text(page.updated_at),
    )


def summary_json(summary: Summary) -> PageSummary:
    return PageSummary(
        summary=summary.status,
        summary_state=summary.state,
        unmeasured_count=summary.unmeasured,
    )


def component_json(one: Component) -> ComponentView:
    measured = one.measured
    return ComponentView(
        id=one.uid,
        name=one.name,
        group=known(one.group or None),
        description=known(one.description or None),
        status=one.status,
        uptime_90d=known(None if measured is None else measured.figure.uptime_percent),
        uptime_since=instant_text(None if measured is None else measured.since),
        daily=[] if measured is None else [_day(day) for day in measured.days],
        source=one.source,
        reason=known(one.reason),
        unavailable=known(one.unavailable or None),
        withheld_reason=known(one.withheld),
        latency=known(None if one.latency is None else _latency(one.latency)),
    )


def _latency(found: ComponentLatency) -> schemas.ComponentLatency:
    return schemas.ComponentLatency(
        starts_at=to_text(found.from_at),
        ends_at=to_text(found.until),
        step_seconds=STEP_US // SECOND,
        points=[
            schemas.ComponentLatencyPoint(
                starts_at=to_text(one.at), p50_ms=one.p50_ms, p95_ms=one.p95_ms
            )
            for one in found.points
        ],
        withheld_reason=known(found.withheld),
    )


def _day(day: ComponentDay) -> schemas.ComponentDay:
    return schemas.ComponentDay(
        day=_date_text(day.day),
        uptime_percent=known(uptime_percent(day.split)),
        total=day.total,
    )


@lru_cache(maxsize=4 * DAYS)
def _date_text(midnight: Instant) -> str:
    return to_text(midnight).partition("T")[0]


def incident_json(one: Incident) -> IncidentDetail:
    return IncidentDetail(
        id=one.uid,
        project_id=known(one.project),
        monitor_id=known(one.monitor),
        service_id=known(one.service),
        external_key=known(one.external_key),
        seq=one.seq,
        title=one.title,
        status=one.status,
        impact=one.impact,
        source=one.source,
        started_at=to_text(one.started_at),
        resolved_at=instant_text(one.resolved_at),
        acknowledged_at=instant_text(one.acknowledged_at),
        acknowledged_by=known(one.acknowledged_by),
        acknowledged_by_name=known(one.acknowledged_label or None),
        escalation_step=known(one.escalation_step),
        last_escalated_at=instant_text(one.last_escalated_at),
        created_at=to_text(one.created_at),
        updated_at=to_text(one.updated_at),
        updates=[_update(one, update) for update in one.updates],
        postmortem=known(None if one.postmortem is None else _postmortem(one, one.postmortem)),
    )


def _update(incident: Incident, update: Update) -> PageUpdate:
    return PageUpdate(
        id=known(update.uid),
        incident_id=incident.uid,
        seq=update.seq,
        status=known(update.status),
        body=update.body,
        public=update.public,
        author=known(update.author or None),
        created_at=to_text(update.created_at),
    )


def _postmortem(incident: Incident, found: Postmortem) -> PagePostmortem:
    return PagePostmortem(
        id=known(found.uid),
        incident_id=incident.uid,
        body=found.body,
        declaration_revision=known(found.declaration_revision),
        author=known(found.author or None),
        published_at=to_text(found.published_at),
        created_at=to_text(found.created_at),
        updated_at=to_text(found.updated_at),
    )


def _maintenance(one: Maintenance) -> PageMaintenance:
    return PageMaintenance(
        id=known(one.uid),
        project_id=known(one.project),
        monitor_id=known(one.monitor),
        starts_at=to_text(one.starts_at),
        ends_at=to_text(one.over_at),
        reason=one.reason,
        created_at=instant_text(one.created_at),
    )
