"""Overview screen, and its part that is refreshed periodically."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from ....storage.accounts.rules.access import Need, Permission
from ....storage.monitors.transactions.create_monitor import CREATE
from ...ui.form_routes import page_route
from ...ui.monitor_status import MonitorStatusText
from ...ui.page_layout import PageLayout, frame_of
from ...ui.render import page
from ...wire.route import Request, Response
from .first_monitor import create_first, render_first_monitor
from .overview_data import (
    MonitorData,
    hour_axis,
    select_courses_of,
    select_silent_regions,
    select_watched,
)
from .overview_rows import ATTENTION_MOST, concerns, groups, rows
from .overview_summary import incidents_open, summary, tallied, under

PAGE_ROWS: Final = 100
FINE: Final = frozenset(
    {MonitorStatusText.UP, MonitorStatusText.PAUSED, MonitorStatusText.MAINTENANCE}
)


class OverviewQuery(msgspec.Struct, frozen=True):
    page: int = 1
    show: Literal["all", "notup"] = "all"
    q: str = ""


class PartQuery(msgspec.Struct, frozen=True):
    monitor: list[str] = []


async def overview(ask: Request) -> Response:
    query = ask.query
    async with ask.context.pool.transaction("console_overview", read_only=True) as tx:
        frame = await frame_of(ask, tx, q=query.q.strip())
        watched = await select_watched(ask, tx)
        if not watched:
            return render_first_monitor(frame)
        chosen = _chosen(watched, query)
        pages = max(-(-len(chosen) // PAGE_ROWS), 1)
        number = min(max(query.page, 1), pages)
        shown_now = chosen[(number - 1) * PAGE_ROWS : number * PAGE_ROWS]
        axis = hour_axis(tx.now)
        courses = await select_courses_of(tx, shown_now, axis)
        silent = await select_silent_regions(ask, tx)
        now = tx.now
    drawn = rows(shown_now, courses, axis, now)
    return page(
        "home/console/overview_screen.html",
        **_summary(frame, watched, silent, now),
        groups=groups(watched, shown_now, drawn),
        show=query.show,
        found=len(chosen),
        page=number,
        pages=pages,
    )


async def part(ask: Request) -> Response:
    """Returns the summary and the requested rows for a refresh."""
    wanted = set(ask.query.monitor[:PAGE_ROWS])
    async with ask.context.pool.transaction("console_rows", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        watched = await select_watched(ask, tx)
        chosen = [w for w in watched if str(w.row.uid) in wanted]
        axis = hour_axis(tx.now)
        courses = await select_courses_of(tx, chosen, axis)
        silent = await select_silent_regions(ask, tx)
        now = tx.now
    drawn = rows(chosen, courses, axis, now)
    return page(
        "home/console/overview_part.html",
        **_summary(frame, watched, silent, now),
        rows=list(drawn.values()),
    )


def _chosen(watched: Sequence[MonitorData], query: OverviewQuery) -> list[MonitorData]:
    words = query.q.strip().lower()
    return [
        item
        for item in watched
        if (query.show == "all" or item.state not in FINE) and (not words or _matches(item, words))
    ]


def _matches(item: MonitorData, words: str) -> bool:
    row = item.row
    return any(words in text.lower() for text in (row.name, row.target, row.slug, *row.tags))


def _summary(
    frame: PageLayout, watched: Sequence[MonitorData], silent: Sequence[str], now: Any
) -> dict[str, Any]:
    tally = Counter(item.state for item in watched)
    unknown_in = sorted(
        {
            w.row.region
            for w in watched
            if w.state is MonitorStatusText.UNKNOWN and w.row.region in silent
        }
    )
    found = concerns(watched, now)
    return {
        "frame": frame,
        "line": summary(tally),
        "under": under(tally, unknown_in),
        "incidents": incidents_open(frame.place.incidents),
        "tally": tallied(tally),
        "concerns": found[:ATTENTION_MOST],
        "further": max(len(found) - ATTENTION_MOST, 0),
    }


_PROJECT: Final = ("project", "projectID")

ROUTES: Final = (
    page_route(
        method="GET",
        path="/projects/{projectID}",
        action=Permission(Need.VIEWER),
        scope=_PROJECT,
        handler=overview,
        summary="The overview of a project.",
        query=OverviewQuery,
    ),
    page_route(
        method="POST",
        path="/projects/{projectID}",
        action=CREATE,
        scope=_PROJECT,
        handler=create_first,
        summary="Add a first monitor.",
    ),
    page_route(
        method="GET",
        path="/projects/{projectID}/rows",
        action=Permission(Need.VIEWER),
        scope=_PROJECT,
        handler=part,
        summary="Rows of the overview that changed.",
        query=PartQuery,
    ),
)
