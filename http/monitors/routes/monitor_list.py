"""The list of a project's monitors: selected, and by pages if the caller asks for them."""

from typing import Annotated, Any, Final, Literal

import msgspec

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.slug import is_slug
from ....storage.monitors.queries.monitor_pages import MonitorSelection, select_monitor_page
from ....storage.monitors.rules.monitor import MonitorType
from ...wire.cursor import page_limit, read_text_cursor, write_text_cursor
from ...wire.errors import Problem
from ...wire.next_page import next_page
from ...wire.route import Request, Response, Route
from ...wire.scope_keys import org_of, project_of
from ..schemas.monitors import Monitor
from .kept_lists import LIST_SECONDS, read_list
from .monitors import may_see_secrets, monitors_json

Q_LONGEST: Final = 200
VALUES_MOST: Final = 100


class MonitorsQuery(msgspec.Struct, frozen=True):
    """Values of one parameter are alternatives; the parameters apply together."""

    limit: str | None = None
    cursor: str | None = None
    q: Annotated[str, msgspec.Meta(max_length=Q_LONGEST)] = ""
    tag: Annotated[list[str], msgspec.Meta(max_length=VALUES_MOST)] = []
    type: list[MonitorType] = []
    region: Annotated[list[str], msgspec.Meta(max_length=VALUES_MOST)] = []
    status: list[Literal["pending", "up", "down"]] = []


_ALL: Final = MonitorsQuery()


class _ReadPage(msgspec.Struct, frozen=True):
    """JSON of the monitors, and the slug of the last one if a page follows."""

    body: bytes
    last_slug: str | None


async def list_monitors(ask: Request) -> Response:
    """Without `limit` the list has all monitors. With it, the header `Link` names the next page."""
    query: MonitorsQuery = ask.query
    most = page_limit(query.limit) if query.limit is not None else None
    org, project = org_of(ask), project_of(ask)
    chosen: list[list[Any]] = [query.tag, query.type, query.region, query.status]
    bound = ("monitors", project, query.q, *[sorted(values) for values in chosen])
    after = read_text_cursor(query.cursor, bound) or ""
    if after and not is_slug(after):
        raise Problem("cursor_invalid")
    # All that the answer depends on. The address of the installation is part of push URLs.
    key = (org, project, msgspec.json.encode(query), may_see_secrets(ask), ask.base_url)

    async def read() -> _ReadPage:
        if query == _ALL:
            return _ReadPage(await read_list(ask), None)
        async with ask.context.pool.transaction(
            "list_monitors", read_only=True, statement_timeout_seconds=LIST_SECONDS
        ) as tx:
            wanted = None if most is None else most + 1
            rows = await select_monitor_page(tx, org, project, _selection(query), after, wanted)
            more = most is not None and len(rows) > most
            page = rows[:most]
            body = await monitors_json(ask, tx, page) if page else []
        return _ReadPage(msgspec.json.encode(body), page[-1].slug if more else None)

    found = await ask.context.shared_reads.get(("monitors", *key), read)
    headers = {}
    if found.last_slug is not None:
        headers = next_page(ask, write_text_cursor(found.last_slug, bound))
    return Response(body=found.body, headers=headers)


def _selection(query: MonitorsQuery) -> MonitorSelection:
    return MonitorSelection(
        types=tuple(query.type),
        regions=tuple(query.region),
        tags=tuple(query.tag),
        q=query.q,
        statuses=tuple(query.status),
    )


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/projects/{projectID}/monitors",
        action=Permission(Need.VIEWER),
        scope=("project", "projectID"),
        handler=list_monitors,
        summary="The project's monitors.",
        tag="monitors",
        query=MonitorsQuery,
        answer=list[Monitor],
        short=True,
    ),
)
