"""Routes of the search and of the available regions."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.naming import words_fault
from ....storage.monitors.queries.search_hits import Hit, search
from ....storage.scheduling.queries.region_list import select_regions
from ...wire.errors import Problem
from ...wire.route import Request, Route
from ..schemas import Region, Regions, SearchHit, SearchResult

_ANYONE: Final = Permission(Need.ANYONE)


class SearchQuery(msgspec.Struct, frozen=True):
    q: Annotated[str, Meta(min_length=2, max_length=200)]


def _hit_json(hit: Hit) -> SearchHit:
    kind: Any = hit.type
    return SearchHit(
        type=kind,
        id=hit.uid,
        org_id=hit.org_uid,
        project_id=hit.project_uid,
        label=hit.label,
        sub=hit.sub,
    )


async def find(ask: Request) -> SearchResult:
    q = ask.query.q
    broken = words_fault(q)
    if broken is not None:
        raise Problem(f"q: {broken}")
    async with ask.context.pool.transaction("search", read_only=True) as tx:
        hits = await search(tx, ask.who, q)
    return SearchResult(query=q, hits=[_hit_json(hit) for hit in hits])


async def list_regions(ask: Request) -> Regions:
    async with ask.context.pool.transaction("list_regions", read_only=True) as tx:
        found = await select_regions(tx, ask.context.options.regions)
    return Regions(regions=[Region(name=name, live=live) for name, live in found])


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/search",
        action=_ANYONE,
        handler=find,
        summary="Search the monitors, projects and incidents that the caller can read.",
        tag="search",
        query=SearchQuery,
        answer=SearchResult,
    ),
    Route(
        method="GET",
        path="/api/v1/regions",
        action=_ANYONE,
        handler=list_regions,
        summary="List the regions and whether they have a prober.",
        tag="search",
        answer=Regions,
    ),
)
