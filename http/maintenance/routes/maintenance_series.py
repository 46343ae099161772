"""Recurring maintenance of a project, by a recurrence rule."""

from typing import Final

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import SECOND, to_text
from ....storage.maintenance.queries.maintenance_series import select_series_of
from ....storage.maintenance.rows import SeriesRow
from ....storage.maintenance.rules import Recurrence
from ....storage.maintenance.transactions.extend_series import (
    EDIT,
    SeriesPlan,
    begin_series,
    end_series,
)
from ...wire.route import Request, Route
from ...wire.schema import given, known
from ...wire.scope_keys import org_of, project_of
from ...wire.time_params import instant_given
from ..schemas import CreateMaintenanceSeries, MaintenanceSeries

_ALL: Final = "/api/v1/projects/{projectID}/maintenance-series"


def _series_json(row: SeriesRow) -> MaintenanceSeries:
    return MaintenanceSeries(
        id=row.uid,
        project_id=row.project_uid,
        monitor_id=known(row.monitor_uid),
        rrule=row.rrule,
        starts_at=to_text(row.starts_at),
        duration_seconds=row.duration_seconds,
        timezone=row.timezone,
        reason=row.reason,
        created_at=to_text(row.created_at),
    )


async def list_series(ask: Request) -> list[MaintenanceSeries]:
    async with ask.context.pool.transaction("list_series", read_only=True) as tx:
        return [
            _series_json(row) for row in await select_series_of(tx, org_of(ask), project_of(ask))
        ]


async def create(ask: Request) -> MaintenanceSeries:
    body: CreateMaintenanceSeries = ask.body
    plan = SeriesPlan(
        recurrence=Recurrence(
            body.rrule,
            instant_given("starts_at", body.starts_at),
            body.duration_seconds * SECOND,
            body.timezone,
        ),
        monitor=given(body.monitor_id),
        reason=body.reason,
    )
    async with ask.context.pool.transaction("begin_series") as tx:
        return _series_json(await begin_series(tx, ask.who, ask.ids["projectID"], plan))


async def delete(ask: Request) -> None:
    async with ask.context.pool.transaction("end_series") as tx:
        await end_series(tx, ask.who, ask.ids["seriesID"])


_PROJECT: Final = ("project", "projectID")

ROUTES: Final = (
    Route(
        method="GET",
        path=_ALL,
        action=Permission(Need.VIEWER),
        scope=_PROJECT,
        handler=list_series,
        summary="List the recurring maintenance that has not ended.",
        tag="maintenance_series",
        answer=list[MaintenanceSeries],
    ),
    Route(
        method="POST",
        path=_ALL,
        action=EDIT,
        scope=_PROJECT,
        handler=create,
        summary="Announce recurring maintenance; windows are generated five weeks ahead.",
        tag="maintenance_series",
        body=CreateMaintenanceSeries,
        answer=MaintenanceSeries,
        status=201,
        also=(409,),
    ),
    Route(
        method="DELETE",
        path="/api/v1/maintenance-series/{seriesID}",
        action=EDIT,
        scope=("series", "seriesID"),
        handler=delete,
        summary="End recurring maintenance; future windows are cancelled, begun ones stay.",
        tag="maintenance_series",
        status=204,
        also=(409,),
    ),
)
