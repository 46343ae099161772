"""Routes of mutes: those of a project, and those in force for one object."""

from functools import partial
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from ...storage.accounts.rules.access import Need, Permission
from ...storage.alerting.queries.paging_owners import select_owning
from ...storage.core.instant import Instant, to_text
from ...storage.core.key import MonitorKey
from ...storage.engine.pools import Tx
from ...storage.monitors.queries.monitors import select_monitor
from ...storage.mutes.queries import (
    mutes_of_incident,
    mutes_of_monitors,
    mutes_of_services,
    select_mutes_of,
    select_shown_mute,
)
from ...storage.mutes.rows import MuteRow
from ...storage.mutes.rules.mute import MuteState, mute_state
from ...storage.mutes.transactions import EDIT, MuteDraft, create_mute, edit_mute, end_mute
from ...storage.services.queries.services import select_service
from ..wire.errors import Problem
from ..wire.route import Request, Route
from ..wire.schema import given, known
from ..wire.scope_keys import org_of, project_of
from ..wire.time_params import instant_given, instant_if_given
from .schemas import CreateMute, Mute, PatchMute

_ALL: Final = "/api/v1/projects/{projectID}/mutes"
_ONE: Final = "/api/v1/mutes/{muteID}"


class MutesQuery(msgspec.Struct, frozen=True):
    """Without `state`, mutes of all states are returned, the ended ones last."""

    state: MuteState | UnsetType = UNSET


def mute_json(row: MuteRow, now: Instant) -> Mute:
    return Mute(
        id=row.uid,
        project_id=row.project_uid,
        monitor_id=known(row.monitor_uid),
        service_id=known(row.service_uid),
        matchers=row.matchers or UNSET,
        reason=row.reason,
        starts_at=to_text(row.starts_at),
        ends_at=to_text(row.ends_at),
        state=mute_state(row.starts_at, row.ends_at, now),
        muted_by=row.author_label,
        created_at=to_text(row.created_at),
    )


async def list_mutes(ask: Request) -> list[Mute]:
    async with ask.context.pool.transaction("list_mutes", read_only=True) as tx:
        rows = await select_mutes_of(tx, org_of(ask), project_of(ask))
        found = [mute_json(row, tx.now) for row in rows]
    return [one for one in found if ask.query.state in (UNSET, one.state)]


async def create(ask: Request) -> Mute:
    body: CreateMute = ask.body
    draft = MuteDraft(
        reason=body.reason,
        starts_at=instant_if_given("starts_at", given(body.starts_at)),
        ends_at=instant_given("ends_at", body.ends_at),
        monitor=given(body.monitor_id),
        service=given(body.service_id),
        matchers=given(body.matchers) or "",
    )
    async with ask.context.pool.transaction("create_mute") as tx:
        return mute_json(await create_mute(tx, ask.who, ask.ids["projectID"], draft), tx.now)


async def read(ask: Request) -> Mute:
    async with ask.context.pool.transaction("read_mute", read_only=True) as tx:
        row = await select_shown_mute(tx, ask.ids["muteID"])
        if row is None:
            raise Problem("not_found")
        return mute_json(row, tx.now)


async def update(ask: Request) -> Mute:
    body: PatchMute = ask.body
    ends_at = instant_if_given("ends_at", given(body.ends_at))
    async with ask.context.pool.transaction("edit_mute") as tx:
        row = await edit_mute(tx, ask.who, ask.ids["muteID"], given(body.reason), ends_at)
        return mute_json(row, tx.now)


async def delete(ask: Request) -> None:
    async with ask.context.pool.transaction("end_mute") as tx:
        await end_mute(tx, ask.who, ask.ids["muteID"])


async def list_of_monitor(ask: Request) -> list[Mute]:
    async with ask.context.pool.transaction("mutes_of_monitor", read_only=True) as tx:
        row = await select_monitor(tx, ask.ids["monitorID"])
        rows = [] if row is None else await mutes_of_monitor(tx, row.key)
        return [mute_json(one, tx.now) for one in rows]


async def list_of_service(ask: Request) -> list[Mute]:
    async with ask.context.pool.transaction("mutes_of_service", read_only=True) as tx:
        row = await select_service(tx, ask.ids["serviceID"])
        if row is None or row.project_uid != ask.ids["projectID"]:
            raise Problem("not_found")
        found = await mutes_of_services(tx, [row.key])
        return [mute_json(one, tx.now) for rows in found.values() for one in rows]


async def list_of_incident(ask: Request) -> list[Mute]:
    async with ask.context.pool.transaction("mutes_of_incident", read_only=True) as tx:
        rows = await mutes_of_incident(tx, ask.ids["incidentID"])
        return [mute_json(one, tx.now) for one in rows]


async def mutes_of_monitor(tx: Tx, key: MonitorKey) -> list[MuteRow]:
    """Returns the mutes in force, also those of the services that page for the monitor."""
    owning = await select_owning(tx, [key], tx.now)
    return (await mutes_of_monitors(tx, [key], owning)).get(key, [])


_all: Final = partial(Route, path=_ALL, scope=("project", "projectID"), tag="alerting")
_one: Final = partial(Route, path=_ONE, scope=("mute", "muteID"), tag="alerting")
_VIEW: Final = Permission(Need.VIEWER)

ROUTES: Final = (
    _all(
        method="GET",
        action=_VIEW,
        handler=list_mutes,
        summary="The project's mutes, those that ended in the last 30 days included.",
        query=MutesQuery,
        answer=list[Mute],
    ),
    _all(
        method="POST",
        action=EDIT,
        handler=create,
        summary="Mute the alerts of a monitor, a service or matching labels.",
        body=CreateMute,
        answer=Mute,
        status=201,
        also=(409,),
    ),
    _one(method="GET", action=_VIEW, handler=read, summary="Read a mute.", answer=Mute),
    _one(
        method="PATCH",
        action=EDIT,
        handler=update,
        summary="Change the reason or the end of a mute.",
        body=PatchMute,
        answer=Mute,
        also=(409,),
    ),
    _one(method="DELETE", action=EDIT, handler=delete, summary="End a mute now.", status=204),
    Route(
        method="GET",
        path="/api/v1/monitors/{monitorID}/mutes",
        scope=("monitor", "monitorID"),
        action=_VIEW,
        handler=list_of_monitor,
        summary="The mutes in force of a monitor.",
        tag="alerting",
        answer=list[Mute],
    ),
    Route(
        method="GET",
        path="/api/v1/projects/{projectID}/services/{serviceID}/mutes",
        scope=("service", "serviceID"),
        action=_VIEW,
        handler=list_of_service,
        summary="The mutes in force of a service.",
        tag="alerting",
        answer=list[Mute],
    ),
    Route(
        method="GET",
        path="/api/v1/incidents/{incidentID}/mutes",
        scope=("incident", "incidentID"),
        action=_VIEW,
        handler=list_of_incident,
        summary="The mutes in force of an incident.",
        tag="alerting",
        answer=list[Mute],
    ),
)
