"""Search over pages, monitors, services, incidents and projects: the palette and its own screen."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from ....storage.accounts.rules.access import Need, Permission
from ....storage.monitors.queries.search_hits import MOST_OF_A_KIND, Hit, search
from ....storage.services.queries.services import select_services_of_project
from ...ui.form_routes import page_route
from ...ui.render import page
from ...ui.shell.page_layout import PageLayout, frame_of
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of

_PATHS: Final = {
    "monitor": "/monitors/{}",
    "incident": "/incidents/{}",
    "project": "/projects/{}",
}
_ICONS: Final = {"monitor": "monitors", "incident": "incidents", "project": "overview"}


class SearchQuery(msgspec.Struct, frozen=True):
    q: Annotated[str, Meta(max_length=200)] = ""


@dataclass(frozen=True, slots=True)
class SearchResult:
    icon: str
    label: str
    note: str
    path: str


@dataclass(frozen=True, slots=True)
class SearchGroup:
    title: str
    items: Sequence[SearchResult]


async def render_search(ask: Request) -> Response:
    q = ask.query.q.strip()
    async with ask.context.pool.transaction("console_search", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        hits = await search(tx, ask.who, q) if q else []
        services = await select_services_of_project(tx, org_of(ask), project_of(ask)) if q else []
    named = [
        SearchResult("services", one.name, "service", f"/services/{one.uid}")
        for one in services
        if q.lower() in one.name.lower()
    ]
    groups = [
        SearchGroup("Pages and actions", _pages(frame, q)),
        SearchGroup("Services", named[:MOST_OF_A_KIND]),
        SearchGroup("Monitors", _hits(hits, "monitor")),
        SearchGroup("Incidents", _hits(hits, "incident")),
        SearchGroup("Projects", _hits(hits, "project")),
    ]
    return page(
        "home/console/search_screen.html",
        frame=frame,
        q=q,
        groups=[group for group in groups if group.items],
    )


def _hits(hits: Iterable[Hit], kind: str) -> list[SearchResult]:
    return [
        SearchResult(_ICONS[kind], hit.label, hit.sub, _PATHS[kind].format(hit.uid))
        for hit in hits
        if hit.type == kind
    ]


def _pages(frame: PageLayout, q: str) -> list[SearchResult]:
    """Returns the screens and actions whose label contains the text; all without a text."""
    found = [SearchResult(one.name, one.label, "page", one.path) for one in frame.entries]
    if frame.may_write:
        home = frame.home
        found += [
            SearchResult("plus", "Add monitor", "action", f"{home}/monitors/new"),
            SearchResult("plus", "Add service", "action", f"{home}/services/new"),
            SearchResult("plus", "Open incident", "action", f"{home}/incidents/new"),
            SearchResult("plus", "Schedule maintenance", "action", f"{home}/maintenance"),
        ]
    for group in frame.settings:
        found += [
            SearchResult("settings", one.label, group.title, one.path) for one in group.entries
        ]
    found.append(SearchResult("person", "Profile and security", "page", "/profile"))
    return [one for one in found if q.lower() in one.label.lower()]


ROUTES: Final = (
    page_route(
        method="GET",
        path="/projects/{projectID}/search",
        action=Permission(Need.VIEWER),
        scope=("project", "projectID"),
        handler=render_search,
        summary="Search over pages, monitors, services, incidents and projects.",
        query=SearchQuery,
    ),
)
