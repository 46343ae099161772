"""Times to acknowledge and to resolve the incidents of a service, over a range."""

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import to_text
from ....storage.incidents.queries.response_times import (
    RANGE_MOST_US,
    ResponseSpread,
    ResponseTimes,
    select_response_times,
)
from ...wire.route import Request, Route
from ...wire.schema import known
from ...wire.time_params import range_given
from ..schemas.response_times import ResponseTime, ResponseTimesQuery, ServiceResponseTimes
from .service_json import service_named

NO_INCIDENTS: Final = "no_incidents"


async def response_times(ask: Request) -> ServiceResponseTimes:
    within = range_given(ask.query.from_, ask.query.to, RANGE_MOST_US)
    async with ask.context.pool.transaction("service_response_times", read_only=True) as tx:
        row = await service_named(ask, tx)
        found = await select_response_times(tx, row.key, within)
        as_of = to_text(tx.now)

    def number(value: int) -> int | UnsetType:
        return UNSET if found.withheld else value

    return ServiceResponseTimes(
        service_id=row.uid,
        from_=to_text(within.from_),
        to=to_text(within.until),
        as_of=as_of,
        incidents=number(found.incidents),
        covered=number(found.covered),
        open=number(found.open),
        unacknowledged=number(found.unacknowledged),
        incidents_withheld=found.withheld or UNSET,
        deleted_monitors=number(found.deleted_monitors),
        time_to_acknowledge=known(_time(found.acknowledge)),
        time_to_acknowledge_withheld=known(
            _withheld(found, found.acknowledge, "none_acknowledged")
        ),
        time_to_resolve=known(_time(found.resolve)),
        time_to_resolve_withheld=known(_withheld(found, found.resolve, "none_resolved")),
    )


def _time(spread: ResponseSpread | None) -> ResponseTime | None:
    return None if spread is None else ResponseTime(**msgspec.structs.asdict(spread))


def _withheld(found: ResponseTimes, spread: ResponseSpread | None, none: str) -> str | None:
    """Returns the reason for an absent time."""
    if spread is not None:
        return None
    return found.withheld or (none if found.incidents else NO_INCIDENTS)


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/projects/{projectID}/services/{serviceID}/response-times",
        action=Permission(Need.VIEWER),
        scope=("service", "serviceID"),
        handler=response_times,
        summary="Times to acknowledge and to resolve the incidents of a range.",
        tag="service_reliability",
        query=ResponseTimesQuery,
        answer=ServiceResponseTimes,
    ),
)
