"""Routes of incidents: list, open, update, acknowledge and postmortem."""

from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import to_text
from ....storage.engine.pools import Tx
from ....storage.incidents.queries.incident_impacts import select_impacts, select_incident_members
from ....storage.incidents.queries.incident_updates import select_updates
from ....storage.incidents.queries.incidents import select_incident, select_incidents_of
from ....storage.incidents.queries.postmortems import select_postmortem
from ....storage.incidents.rows import IncidentRow, PostmortemRow, UpdateRow
from ....storage.incidents.transactions.edit_incidents import (
    EDIT,
    IncidentDraft,
    acknowledge,
    add_update,
    create_incident,
    put_postmortem,
)
from ....storage.incidents.transactions.incident_payload import incident_body, update_body
from ...wire.errors import Problem
from ...wire.route import Request, Route
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
    ServiceImpactLink,
)

INCIDENTS_MOST: Final = 500
_ALL: Final = "/api/v1/projects/{projectID}/incidents"
_ONE: Final = "/api/v1/incidents/{incidentID}"


class IncidentsQuery(msgspec.Struct, frozen=True):
    """`limit` is capped at 500. Without `status`, open and resolved incidents are returned."""

    limit: int = 100
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


async def list_incidents(ask: Request) -> list[Incident]:
    query: IncidentsQuery = ask.query
    if query.limit < 1:
        raise Problem("limit_invalid")
    async with ask.context.pool.transaction("list_incidents", read_only=True) as tx:
        rows = await select_incidents_of(
            tx,
            org_of(ask),
            project_of(ask),
            min(query.limit, INCIDENTS_MOST),
            open_ones=None if query.status is UNSET else query.status == "open",
        )
    return [shape(row) for row in rows]


async def create(ask: Request) -> Incident:
    body: CreateIncident = ask.body
    draft = IncidentDraft(
        title=body.title,
        status=body.status,
        impact=body.impact,
        body=body.body,
        monitor=given(body.monitor_id),
    )
    async with ask.context.pool.transaction("create_incident") as tx:
        row = await create_incident(tx, ask.who, ask.ids["projectID"], draft)
    ask.context.on_told()
    return shape(row)


async def read(ask: Request) -> AuthedIncident:
    async with ask.context.pool.transaction("read_incident", read_only=True) as tx:
        row = await select_incident(tx, ask.ids["incidentID"])
        if row is None:
            raise Problem("not_found")
        return await _incident_json(tx, row)


async def _incident_json(tx: Tx, row: IncidentRow) -> AuthedIncident:
    impacts = await select_impacts(tx, row)
    body: dict[str, Any] = {**incident_body(row), "impacts": None}
    if impacts:
        body["impacts"] = [
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
    if row.service is not None:
        body["members"] = [
            IncidentMember(monitor_id=one.monitor, name=one.name, roles=list(one.parts))
            for one in await select_incident_members(tx, row)
        ]
    return msgspec.convert(body, AuthedIncident)


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
    async with ask.context.pool.transaction("acknowledge_incident") as tx:
        return shape(await acknowledge(tx, ask.who, ask.ids["incidentID"]))


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
        summary="Open an incident; it pages if its monitor has an escalation policy.",
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
)
