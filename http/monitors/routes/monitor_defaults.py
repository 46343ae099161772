"""Routes of the defaults of new monitors. Global admins set them."""

from typing import Final

import msgspec

from ....storage.accounts.rules.access import Need, Permission
from ....storage.monitors.queries.monitor_defaults import select_monitor_defaults
from ....storage.monitors.rules.monitor_defaults import BUILT_IN
from ....storage.monitors.rules.monitor_defaults import MonitorDefaults as Defaults
from ....storage.monitors.transactions.put_monitor_defaults import EDIT, put_monitor_defaults
from ...wire.route import Request, Route, setting_routes
from ..schemas.defaults import MonitorDefaults, PutMonitorDefaults

_OWN: Final = "/api/v1/settings/monitor-defaults"


async def read(ask: Request) -> MonitorDefaults:
    async with ask.context.pool.transaction("read_monitor_defaults", read_only=True) as tx:
        found = await select_monitor_defaults(tx)
    return _defaults_json(found or BUILT_IN, configured=found is not None)


async def put(ask: Request) -> MonitorDefaults:
    given = msgspec.structs.asdict(ask.body)
    del given["configured"]
    defaults = Defaults(**given)
    async with ask.context.pool.transaction("put_monitor_defaults") as tx:
        await put_monitor_defaults(tx, ask.who, defaults)
    return _defaults_json(defaults, configured=True)


def _defaults_json(found: Defaults, *, configured: bool) -> MonitorDefaults:
    return MonitorDefaults(configured=configured, **msgspec.structs.asdict(found))


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/monitor-defaults",
        action=Permission(Need.ANYONE),
        handler=read,
        summary="Read the defaults of new monitors.",
        tag="monitor_defaults",
        answer=MonitorDefaults,
    ),
    *setting_routes(
        _OWN,
        read,
        put,
        EDIT,
        tag="monitor_defaults",
        body=PutMonitorDefaults,
        answer=MonitorDefaults,
        summaries=(
            "Read the defaults of new monitors and whether they are configured.",
            "Set the defaults of new monitors, all of them.",
        ),
    ),
)
