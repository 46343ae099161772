"""Routes of incidents: list, open, update, acknowledge and postmortem."""

import logging
from collections.abc import Awaitable
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import to_text
from ....storage.core.refusal import Unavailable
from ....storage.engine.pools import Pool
from ....storage.incidents.queries.incident_impacts import select_impacts, select_incident_members
from ....storage.incidents.queries.incident_updates import select_updates
from ....storage.incidents.queries.incidents import select_incident, select_incidents_of
from ....storage.incidents.queries.postmortems import select_postmortem
from ....storage.incidents.rows import IncidentRow, PostmortemRow, UpdateRow
from ....storage.incidents.rules.answer_link import AnswerAction
from ....storage.incidents.transactions.answer_incident import IncidentAnswer, answer_incident
from ....storage.incidents.transactions.edit_incidents import (
    EDIT,
    IncidentDraft,
    add_update,
    put_postmortem,
    undo_update,
)
from ....storage.incidents.transactions.incident_payload import incident_body, update_body
from ....storage.oncall.rules.escalation import TargetKind
from ....storage.status_pages.transactions.open_public_incident import (
    AffectedComponent,
    open_public_incident,
)
from ...wire.cursor import read_cursor, write_cursor
from ...wire.errors import Problem
from ...wire.next_page import next_page
from ...wire.route import Request, Response, Route
from ...wire.schema import given, known
from ...wire.scope_keys import org_of, project_of
from ..schemas import (
    AddIncidentUpdate,
    AuthedIncident,
    CreateIncident,
    Incident,
    IncidentMember,
    IncidentUpdate,
    Postmortem,
    PutPostmortem,
    ReassignIncident,
    ServiceImpactLink,
    SnoozeIncident,
)

log = logging.getLogger("leadline.http")

INCIDENTS_MOST: Final = 500
# The largest number of a row.
IDS_MOST: Final = 2**31 - 1
# Longest time of each part of an incident that other objects determine.
PART_SECONDS: Final = 2.0
_ALL: Final = "/api/v1/projects/{projectID}/incidents"
_ONE: Final = "/api/v1/incidents/{incidentID}"


class IncidentsQuery(msgspec.Struct, frozen=True):
    """`limit` is capped at 500; older incidents are on the next pages.

    Without `status`, open and resolved incidents are returned.
    """

    limit: int = 100
    cursor: str | None = None
    status: Literal["open", "resolved"] | UnsetType = UNSET


def shape(row: IncidentRow) -> Incident:
    """Returns the incident with the same content as the webhook payload."""
    return msgspec.convert(incident_body(row), Incident)


def update_json(incident: IncidentRow, row: UpdateRow) -> IncidentUpdate:
    return msgspec.convert(update_body(incident, row), IncidentUpdate)


def _postmortem_json(incident: IncidentRow, row: PostmortemRow) -> Postmortem:
    return Postmortem(
        id=row.uid,
        incident_id=incident.uid,
        body=row.body,
        declaration_revision=known(row.declaration_revision),
        author=known(row.author_label or None),
        published=row.published,
        published_at=to_text(row.published_at) if row.published else UNSET,
        created_at=to_text(row.created_at),
        updated_at=to_text(row.updated_at),
    )


async def list_incidents(ask: Request) -> Response:
    """The header `Link` names the page of the next older incidents."""
    query: IncidentsQuery = ask.query
    if query.limit < 1:
        raise Problem("limit_invalid")
    most, project = min(query.limit, INCIDENTS_MOST), project_of(ask)
    open_ones = None if query.status is UNSET else query.status == "open"
    bound = ("incidents", project, open_ones)
    last = read_cursor(query.cursor, bound, 1)
    if last and not 0 < last[0] <= IDS_MOST:
        raise Problem("cursor_invalid")
    async with ask.context.pool.transaction("list_incidents", read_only=True) as tx:
        rows = await select_incidents_of(
            tx,
            org_of(ask),
            project,
            most + 1,
            open_ones=open_ones,
            before=last[0] if last else None,
        )
    page = rows[:most]
    more = len(rows) > most
    headers = next_page(ask, write_cursor([page[-1].id], bound)) if more else {}
    return Response(body=[shape(row) for row in page], headers=headers)


async def create(ask: Request) -> Incident:
    body: CreateIncident = ask.body
    draft = IncidentDraft(
        title=body.title,
        status=body.status,
        impact=body.impact,
        body=body.body,
        monitor=given(body.monitor_id),
        service=given(body.service_id),
        policy=given(body.escalation_policy_id),
        public=body.public,
    )
    affected = [AffectedComponent(one.component_id, given(one.status)) for one in body.components]
    async with ask.context.pool.transaction("create_incident") as tx:
        row = await open_public_incident(tx, ask.who, ask.ids["projectID"], draft, affected)
    ask.context.on_told()
    return shape(row)


async def read(ask: Request) -> AuthedIncident:
    pool = ask.context.pool
    async with pool.transaction("read_incident", read_only=True) as tx:
        row = await select_incident(tx, ask.ids["incidentID"])
    if row is None:
        raise Problem("not_found")
    body = incident_body(row)
    body |= await _in_time("impacts", _impacts(pool, row), {"impacts": None})
    if row.service is not None:
        body |= await _in_time("members", _members(pool, row), {})
    return msgspec.convert(body, AuthedIncident)


async def _in_time(
    name: str, part: Awaitable[dict[str, Any]], missing: dict[str, Any]
) -> dict[str, Any]:
    """Returns the part, or that it is unavailable: the incident itself is answered in any case."""
    try:
        return await part
    except Unavailable as error:
        log.warning("part of an incident is unavailable", extra={"part": name, "cause": str(error)})
        return {**missing, f"{name}_unavailable": True}


async def _impacts(pool: Pool, row: IncidentRow) -> dict[str, Any]:
    async with pool.transaction(
        "read_incident_impacts", read_only=True, statement_timeout_seconds=PART_SECONDS
    ) as tx:
        impacts = await select_impacts(tx, row)
    if not impacts:
        return {"impacts": None}
    links = [
        ServiceImpactLink(
            service_id=impact.service.uid,
            slug=impact.service.slug,
            name=impact.service.name,
            role=impact.role,
            path=list(impact.path),
            computed_at=to_text(tx.now),
        )
        for impact in impacts
    ]
    return {"impacts": links}


async def _members(pool: Pool, row: IncidentRow) -> dict[str, Any]:
    async with pool.transaction(
        "read_incident_members", read_only=True, statement_timeout_seconds=PART_SECONDS
    ) as tx:
        members = await select_incident_members(tx, row)
    found = [
        IncidentMember(monitor_id=one.monitor, name=one.name, roles=list(one.parts))
        for one in members
    ]
    return {"members": found}


async def list_updates(ask: Request) -> list[IncidentUpdate]:
    async with ask.context.pool.transaction("list_incident_updates", read_only=True) as tx:
        row = await select_incident(tx, ask.ids["incidentID"])
        if row is None:
            raise Problem("not_found")
        updates = await select_updates(tx, row.org, row.id)
    return [update_json(row, update) for update in updates]


async def write_update(ask: Request) -> IncidentUpdate:
    body: AddIncidentUpdate = ask.body
    async with ask.context.pool.transaction("add_incident_update") as tx:
        row, update = await add_update(
            tx,
            ask.who,
            ask.ids["incidentID"],
            given(body.status),
            body.body,
            given(body.public),
        )
    ask.context.on_told()
    return update_json(row, update)


async def undo(ask: Request) -> IncidentUpdate:
    uid, update = ask.ids["incidentID"], ask.ids["updateID"]
    async with ask.context.pool.transaction("undo_incident_update") as tx:
        row, written = await undo_update(tx, ask.who, uid, update)
    ask.context.on_told()
    return update_json(row, written)


async def read_postmortem(ask: Request) -> Postmortem:
    async with ask.context.pool.transaction("read_postmortem", read_only=True) as tx:
        row = await select_incident(tx, ask.ids["incidentID"])
        found = None if row is None else await select_postmortem(tx, row.org, row.id)
    if row is None or found is None:
        raise Problem("not_found")
    return _postmortem_json(row, found)


async def write_postmortem(ask: Request) -> Postmortem:
    body: PutPostmortem = ask.body
    uid = ask.ids["incidentID"]
    async with ask.context.pool.transaction("put_postmortem") as tx:
        written = await put_postmortem(
            tx,
            ask.who,
            uid,
            body.body,
            given(body.declaration_revision),
            published=body.published,
        )
        row = await select_incident(tx, uid)
        assert row is not None, "it is locked"
    return _postmortem_json(row, written)


async def acknowledge_incident(ask: Request) -> Incident:
    return await perform(ask, IncidentAnswer(action=AnswerAction.ACKNOWLEDGE))


async def snooze_incident(ask: Request) -> Incident:
    return await perform(ask, IncidentAnswer(action=AnswerAction.SNOOZE, minutes=ask.body.minutes))


async def reassign_incident(ask: Request) -> Incident:
    body: ReassignIncident = ask.body
    assignee = (TargetKind(body.type), body.id)
    return await perform(ask, IncidentAnswer(action=AnswerAction.REASSIGN, assignee=assignee))


async def perform(ask: Request, answer: IncidentAnswer) -> Incident:
    """Performs an answer of the caller."""
    async with ask.context.pool.transaction("answer_incident") as tx:
        row = await answer_incident(tx, ask.who, ask.ids["incidentID"], answer)
        found = await select_incident(tx, row.uid)
    assert found is not None, "it is locked"
    ask.context.on_told()
    return shape(found)


_VIEW: Final = Permission(Need.VIEWER)
_PROJECT: Final = ("project", "projectID")
_INCIDENT: Final = ("incident", "incidentID")

ROUTES: Final = (
    Route(
        method="GET",
        path=_ALL,
        action=_VIEW,
        scope=_PROJECT,
        handler=list_incidents,
        summary="The project's incidents, the newest first.",
        tag="incidents",
        query=IncidentsQuery,
        answer=list[Incident],
    ),
    Route(
        method="POST",
        path=_ALL,
        action=EDIT,
        scope=_PROJECT,
        handler=create,
        summary="Open an incident; it pages if its monitor or service has an escalation policy.",
        tag="incidents",
        body=CreateIncident,
        answer=Incident,
        status=201,
    ),
    Route(
        method="GET",
        path=_ONE,
        action=_VIEW,
        scope=_INCIDENT,
        handler=read,
        summary="Incident.",
        tag="incidents",
        answer=AuthedIncident,
    ),
    Route(
        method="GET",
        path=f"{_ONE}/updates",
        action=_VIEW,
        scope=_INCIDENT,
        handler=list_updates,
        summary="List the updates of an incident, oldest first.",
        tag="incidents",
        answer=list[IncidentUpdate],
    ),
    Route(
        method="POST",
        path=f"{_ONE}/updates",
        action=EDIT,
        scope=_INCIDENT,
        handler=write_update,
        summary="Add a status update or a note to an incident.",
        tag="incidents",
        body=AddIncidentUpdate,
        answer=IncidentUpdate,
        status=201,
        also=(409,),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/updates/{{updateID}}/undo",
        action=EDIT,
        scope=_INCIDENT,
        handler=undo,
        summary="Withdraw a public update within 10 s, before subscribers get it.",
        tag="incidents",
        answer=IncidentUpdate,
        also=(409,),
    ),
    Route(
        method="GET",
        path=f"{_ONE}/postmortem",
        action=_VIEW,
        scope=_INCIDENT,
        handler=read_postmortem,
        summary="Read the postmortem of an incident.",
        tag="incidents",
        answer=Postmortem,
    ),
    Route(
        method="PUT",
        path=f"{_ONE}/postmortem",
        action=EDIT,
        scope=_INCIDENT,
        handler=write_postmortem,
        summary="Write or publish the postmortem of a resolved incident.",
        tag="incidents",
        body=PutPostmortem,
        answer=Postmortem,
        also=(409,),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/acknowledge",
        action=EDIT,
        scope=_INCIDENT,
        handler=acknowledge_incident,
        summary="Acknowledge the incident; stops the escalation. A repetition has no effect.",
        tag="incidents",
        answer=Incident,
        also=(409,),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/snooze",
        action=EDIT,
        scope=_INCIDENT,
        handler=snooze_incident,
        summary="Stop the escalation for some minutes; it then continues.",
        tag="incidents",
        body=SnoozeIncident,
        answer=Incident,
        also=(409,),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/reassign",
        action=EDIT,
        scope=_INCIDENT,
        handler=reassign_incident,
        summary="Reassign the incident to a person, who is paged, or to an escalation policy.",
        tag="incidents",
        body=ReassignIncident,
        answer=Incident,
        also=(409,),
    ),
)
