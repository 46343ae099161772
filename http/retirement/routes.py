"""Replacement of a monitor by a service, and retirement of the monitor."""

from typing import Final

from ...storage.engine.pools import Tx
from ...storage.monitors.rows import MonitorRow
from ...storage.retirement.transactions.convert_composite import Converted, convert_composite
from ...storage.retirement.transactions.set_successor import EDIT, reactivate, retire, set_successor
from ..monitors.routes.monitors import monitors_json, usable_regions
from ..monitors.schemas.monitors import Monitor
from ..services.routes.service_json import service_json
from ..wire.route import Request, Response, Route
from ..wire.schema import given
from .schemas import CompositeConversion, ConvertComposite, SetSuccessor

ONE: Final = "/api/v1/monitors/{monitorID}"


async def write_successor(ask: Request) -> Monitor:
    body: SetSuccessor = ask.body
    async with ask.context.pool.transaction("set_successor") as tx:
        row = await set_successor(tx, ask.who, ask.ids["monitorID"], given(body.service_id))
        return (await monitors_json(ask, tx, [row]))[0]


async def retire_monitor(ask: Request) -> Monitor:
    async def work(tx: Tx) -> tuple[MonitorRow, Monitor]:
        row = await retire(tx, ask.who, ask.ids["monitorID"])
        return row, (await monitors_json(ask, tx, [row]))[0]

    return _edited(ask, *await ask.context.pool.transact("retire_monitor", work))


async def reactivate_monitor(ask: Request) -> Monitor:
    context = ask.context

    async def work(tx: Tx) -> tuple[MonitorRow, Monitor]:
        regions = await usable_regions(ask, tx)
        row = await reactivate(tx, ask.who, ask.ids["monitorID"], context.keyring, regions)
        return row, (await monitors_json(ask, tx, [row]))[0]

    return _edited(ask, *await context.pool.transact("reactivate_monitor", work))


def _edited(ask: Request, row: MonitorRow, shape: Monitor) -> Monitor:
    """Drops the cached state of the edited monitor and wakes the loops."""
    ask.context.recorder.forget(row.key)
    ask.context.on_edit()
    return shape


async def convert(ask: Request) -> Response:
    async with ask.context.pool.transaction("convert_composite") as tx:
        done = await convert_composite(
            tx,
            ask.who,
            ask.ids["monitorID"],
            ask.body.sli,
            ask.context.options.heartbeat_days,
        )
        shape = await _conversion_json(ask, tx, done)
    return Response(status=200 if done.already else 201, body=shape)


async def _conversion_json(ask: Request, tx: Tx, done: Converted) -> CompositeConversion:
    return CompositeConversion(
        service=service_json(done.service),
        monitor=(await monitors_json(ask, tx, [done.monitor]))[0],
        already_converted=done.already,
    )


_MONITOR: Final = ("monitor", "monitorID")

ROUTES: Final = (
    Route(
        method="PUT",
        path=f"{ONE}/successor",
        action=EDIT,
        scope=_MONITOR,
        handler=write_successor,
        summary="Set the service that replaces the monitor.",
        tag="succession",
        body=SetSuccessor,
        answer=Monitor,
        also=(409,),
    ),
    Route(
        method="POST",
        path=f"{ONE}/retire",
        action=EDIT,
        scope=_MONITOR,
        handler=retire_monitor,
        summary="Retire a monitor that a service replaces; its history stays.",
        tag="succession",
        answer=Monitor,
        also=(409,),
    ),
    Route(
        method="POST",
        path=f"{ONE}/reactivate",
        action=EDIT,
        scope=_MONITOR,
        handler=reactivate_monitor,
        summary="Reactivate a retired monitor.",
        tag="succession",
        answer=Monitor,
        also=(409,),
    ),
    Route(
        method="POST",
        path=f"{ONE}/convert-to-service",
        action=EDIT,
        scope=_MONITOR,
        handler=convert,
        summary="Convert a composite to a service with the same members.",
        tag="succession",
        body=ConvertComposite,
        answer=CompositeConversion,
        status=201,
        also=(200, 409),
    ),
)
