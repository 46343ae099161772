"""Maintenance of a project: announce, end early, annul. The past needs a preview first."""

from typing import Final

import msgspec

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import to_text
from ....storage.maintenance.queries.maintenances import select_maintenances_of
from ....storage.maintenance.rows import MaintenanceRow
from ....storage.maintenance.transactions.plan_maintenance import (
    EDIT,
    MaintenancePreview,
    Plan,
    announce,
    annul,
    end,
    preview_announcement,
    preview_annulment,
)
from ....storage.maintenance.transactions.preview_services import Previewed
from ....storage.services.rules.service_health import Durations
from ...wire.errors import Problem
from ...wire.route import Request, Route
from ...wire.schema import given, known
from ...wire.scope_keys import org_of, project_of
from ...wire.time_params import instant_given
from .. import schemas
from ..schemas import (
    AnnulMaintenance,
    CreateMaintenance,
    MaintenanceWindow,
    PreviewedService,
    PreviewMaintenance,
    ReliabilitySplit,
)

_ALL: Final = "/api/v1/projects/{projectID}/maintenance"
_ONE: Final = "/api/v1/maintenance/{maintenanceID}"
LISTED_MOST: Final = 1_000


class MaintenanceQuery(msgspec.Struct, frozen=True):
    """`archived` adds maintenance that was annulled or cancelled."""

    archived: bool = False


def _maintenance_json(row: MaintenanceRow) -> MaintenanceWindow:
    cut = row.cancel_effective_at
    return MaintenanceWindow(
        id=row.uid,
        project_id=row.project_uid,
        monitor_id=known(row.monitor_uid),
        starts_at=to_text(row.starts_at),
        ends_at=to_text(row.ends_at),
        reason=row.reason,
        created_at=to_text(row.created_at),
        archived_at=known(None if row.archived_at is None else to_text(row.archived_at)),
        cancel_effective_at=known(None if cut is None else to_text(cut)),
        series_id=known(row.series_uid),
        public_title=known(row.public_title),
    )


def _plan(body: CreateMaintenance | PreviewMaintenance) -> Plan:
    return Plan(
        monitor=given(body.monitor_id),
        starts_at=instant_given("starts_at", body.starts_at),
        ends_at=instant_given("ends_at", body.ends_at),
        reason=body.reason if isinstance(body, CreateMaintenance) else "",
        public_title=body.public_title.strip() if isinstance(body, CreateMaintenance) else "",
    )


async def list_maintenance(ask: Request) -> list[MaintenanceWindow]:
    async with ask.context.pool.transaction("list_maintenance", read_only=True) as tx:
        rows = await select_maintenances_of(
            tx, org_of(ask), project_of(ask), LISTED_MOST, archived=ask.query.archived
        )
    return [_maintenance_json(row) for row in rows]


async def create(ask: Request) -> MaintenanceWindow:
    body = ask.body
    async with ask.context.pool.transaction("announce_maintenance") as tx:
        row = await announce(
            tx,
            ask.who,
            ask.ids["projectID"],
            _plan(body),
            given(body.preview_id),
            ask.context.options.heartbeat_days,
        )
    return _maintenance_json(row)


async def delete(ask: Request) -> None:
    async with ask.context.pool.transaction("end_maintenance") as tx:
        await end(tx, ask.who, ask.ids["maintenanceID"])


async def annul_one(ask: Request) -> None:
    async with ask.context.pool.transaction("annul_maintenance") as tx:
        await annul(
            tx,
            ask.who,
            ask.ids["maintenanceID"],
            given(ask.body.preview_id),
            ask.context.options.heartbeat_days,
        )


async def preview(ask: Request) -> schemas.MaintenancePreview:
    body, days = ask.body, ask.context.options.heartbeat_days
    maintenance = given(body.maintenance_id)
    if (body.mutation == "annul") is (maintenance is None):
        raise Problem("maintenance_id: required for mutation annul, not allowed otherwise")
    plan = _plan(body)
    async with ask.context.pool.transaction("preview_maintenance") as tx:
        if maintenance is None:
            made = await preview_announcement(tx, ask.who, ask.ids["projectID"], plan, days)
        else:
            made = await preview_annulment(tx, ask.who, ask.ids["projectID"], maintenance, days)
    return _preview(made)


def _preview(made: MaintenancePreview) -> schemas.MaintenancePreview:
    return schemas.MaintenancePreview(
        preview_id=made.uid,
        expires_at=to_text(made.expires_at),
        coverage="approximate" if made.is_approximate else "complete",
        earliest_repairable=to_text(made.earliest_repairable),
        services=[_previewed(each) for each in made.services],
    )


def _previewed(each: Previewed) -> PreviewedService:
    return PreviewedService(
        service_id=each.service,
        before=_split(each.before),
        after=_split(each.after),
        projected=each.projected,
        reason=known(each.reason.value if each.reason is not None else None),
    )


def _split(durations: Durations) -> ReliabilitySplit:
    return ReliabilitySplit(**msgspec.structs.asdict(durations))


_READ: Final = Permission(Need.VIEWER)
_IN_PROJECT: Final = ("project", "projectID")
_MAINTENANCE: Final = ("maintenance", "maintenanceID")

ROUTES: Final = (
    Route(
        method="GET",
        path=_ALL,
        action=_READ,
        scope=_IN_PROJECT,
        handler=list_maintenance,
        summary="Announced maintenance of the project, the latest first; at most 1,000.",
        tag="maintenance",
        query=MaintenanceQuery,
        answer=list[MaintenanceWindow],
    ),
    Route(
        method="POST",
        path=_ALL,
        action=EDIT,
        scope=_IN_PROJECT,
        handler=create,
        summary="Announce maintenance; a start in the past needs a preview.",
        tag="maintenance",
        body=CreateMaintenance,
        answer=MaintenanceWindow,
        status=201,
        also=(409, 422),
    ),
    Route(
        method="POST",
        path=f"{_ALL}/preview",
        action=EDIT,
        scope=_IN_PROJECT,
        handler=preview,
        summary="Preview the effect of maintenance on past figures; valid for 10 minutes.",
        tag="maintenance",
        body=PreviewMaintenance,
        answer=schemas.MaintenancePreview,
        also=(422,),
    ),
    Route(
        method="DELETE",
        path=_ONE,
        action=EDIT,
        scope=_MAINTENANCE,
        handler=delete,
        summary="Cancel future maintenance, or end active maintenance now.",
        tag="maintenance",
        status=204,
        also=(409,),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/annul",
        action=EDIT,
        scope=_MAINTENANCE,
        handler=annul_one,
        summary="Annul maintenance; if it has begun, a preview is needed.",
        tag="maintenance",
        body=AnnulMaintenance,
        status=204,
        also=(409, 422),
    ),
)
