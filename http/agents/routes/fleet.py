"""Fleet for operators: processes, and the load of the regions."""

from typing import Final

from ....storage.accounts.rules.access import Need, Permission
from ....storage.agents.queries import fleet
from ....storage.core.instant import SECOND, Instant, to_text
from ....storage.scheduling.rows import PresenceRow
from ...wire.route import Request, Route
from ...wire.schema import known
from ..schemas.fleet import Fleet, Presence, RegionLoad


def _presence(row: PresenceRow) -> Presence:
    return Presence(
        process_id=row.process,
        host=row.host,
        roles=row.roles,
        region=known(row.regions[0] if row.regions else None),
        version=row.version,
        from_=to_text(row.from_at),
        through=to_text(row.through_at),
    )


def _load(row: fleet.RegionLoad, now: Instant) -> RegionLoad:
    lag_us = row.lag_us(now)
    return RegionLoad(
        name=row.name,
        live=row.is_live,
        workers=row.workers,
        agents=row.agents,
        pending_jobs=row.pending_jobs,
        lag_seconds=known(None if lag_us is None else lag_us / SECOND),
    )


async def read_fleet(ask: Request) -> Fleet:
    async with ask.context.pool.transaction("show_fleet", read_only=True) as tx:
        found = await fleet.select_fleet(tx, ask.context.options.regions)
    return Fleet(
        processes=[_presence(row) for row in found.processes],
        regions=[_load(row, found.at) for row in found.regions],
    )


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/admin/fleet",
        action=Permission(Need.GLOBAL_ADMIN),
        handler=read_fleet,
        summary="List live processes, and the pending jobs of each region.",
        tag="fleet",
        answer=Fleet,
    ),
)
