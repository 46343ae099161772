"""Overview screen, and its part that is refreshed periodically."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal
from uuid import UUID

import msgspec

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import Instant
from ....storage.engine.pools import Tx
from ....storage.monitors.transactions.create_monitor import CREATE
from ....storage.mutes.queries import select_mutes_of
from ....storage.mutes.rows import MuteRow
from ....storage.mutes.rules.mute import MuteState, mute_state
from ...monitors.console.project_statuses import MonitorData, refreshed, select_statuses
from ...services.console.service_list import select_facts
from ...ui.form_routes import page_route
from ...ui.formatting import count
from ...ui.live_page import not_modified, select_tag, tagged
from ...ui.monitor_status import MonitorStatusText
from ...ui.render import page
from ...ui.shell.mute_fact import scope_words
from ...ui.shell.page_layout import PageLayout, frame_of
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of
from .first_monitor import create_first, render_first_monitor
from .overview_attention import Attention, select_attention
from .overview_data import (
    hour_axis,
    select_courses_of,
)
from .overview_folds import (
    FINE,
    FOLDED_ABOVE,
    OverviewFolds,
    OverviewGroup,
    folds,
    grouped,
    listed,
)
from .overview_rail import select_rail
from .overview_rows import MonitorItem, groups, row_key, rows
from .overview_summary import (
    MissingResults,
    incidents_open,
    monitors_below,
    service_summary,
    summary,
    tallied,
    under,
)

PAGE_ROWS: Final = 100
# Key of a row that the client does not show.
NEVER: Final = "never"


class OverviewQuery(msgspec.Struct, frozen=True):
    """`show=region` groups by region in place of the first tag."""

    page: int = 1
    show: Literal["all", "notup", "region"] = "all"
    q: str = ""


class PartQuery(OverviewQuery, frozen=True):
    """Query of the list, and the rows that the client shows, each as `monitor~key`."""

    shown: list[str] = []


async def overview(ask: Request) -> Response:
    query = ask.query
    async with ask.context.pool.transaction("console_overview", read_only=True) as tx:
        frame = await frame_of(ask, tx, q=query.q.strip())
        statuses = await select_statuses(ask, tx)
        watched = statuses.monitors
        if not watched:
            return await render_first_monitor(tx, frame)
        folded = _groups(watched, query)
        chosen = _chosen(watched, query)
        number, pages, shown_now = _page(chosen, query)
        shown_now = await refreshed(tx, listed(folded) if folded is not None else shown_now)
        axis = hour_axis(tx.now)
        courses = await select_courses_of(tx, shown_now, axis)
        facts = await select_facts(tx, org_of(ask), project_of(ask), statuses)
        rail = await select_rail(ask, tx, watched, facts)
        attention = await select_attention(ask, tx, watched, facts)
        mutes = await select_mutes_of(tx, org_of(ask), project_of(ask))
        now = tx.now
    drawn = rows(shown_now, courses, axis, now)
    return page(
        "home/console/overview_screen.html",
        rail=rail,
        muted=_muted(mutes, now),
        **_summary(frame, watched, attention),
        groups=[]
        if folded is not None
        else groups(watched, shown_now, drawn, by_region=query.show == "region"),
        folds=_folds(ask, folded, drawn),
        has_regions=len(watched) > FOLDED_ABOVE or len({one.row.region for one in watched}) > 1,
        show=query.show,
        found=len(chosen),
        page=number,
        pages=pages,
    )


def _muted(mutes: Sequence[MuteRow], now: Instant) -> str:
    """Returns how many mutes are in force, empty without one."""
    active = [one for one in mutes if _is_active(one, now)]
    if not active:
        return ""
    if len(active) == 1:
        return f"Alerts of {scope_words(active[0])} are muted: {active[0].reason}."
    return f"{count(len(active), 'mute')} are in force."


def _is_active(mute: MuteRow, now: Instant) -> bool:
    return mute_state(mute.starts_at, mute.ends_at, now) is MuteState.ACTIVE


async def part(ask: Request) -> Response:
    """Returns the summary, the panels and the changed rows for a refresh, 304 if nothing changed.

    The rows are those that the client shows and whose keys differ. The answer also lists the
    monitors of the page with its filter, and those that the client shows although they are on
    another page now. A monitor in neither list was deleted.
    """
    query = ask.query
    wanted = _shown(query.shown[:PAGE_ROWS])
    async with ask.context.pool.transaction("console_rows", read_only=True) as tx:
        view = (query.page, query.show, query.q, sorted(wanted))
        tag = await select_tag(ask, tx, wanted, services=True, view=view)
        if known := not_modified(ask, tag):
            return known
        frame = await frame_of(ask, tx)
        statuses = await select_statuses(ask, tx)
        watched = statuses.monitors
        folded = _groups(watched, query)
        axis, now = hour_axis(tx.now), tx.now
        here: list[MonitorData] = []
        moved: list[MonitorData] = []
        if folded is not None:
            changed = await refreshed(tx, listed(folded))
        else:
            here, moved = await _listed(tx, watched, query, wanted.keys())
            changed = [
                w
                for w in (*here, *moved)
                if wanted.get(w.row.uid, NEVER) not in (NEVER, row_key(w, now))
            ]
        courses = await select_courses_of(tx, changed, axis)
        facts = await select_facts(tx, org_of(ask), project_of(ask), statuses)
        rail = await select_rail(ask, tx, watched, facts)
        attention = await select_attention(ask, tx, watched, facts)
    drawn = rows(changed, courses, axis, now)
    answer = page(
        "home/console/overview_part.html",
        rail=rail,
        **_summary(frame, watched, attention),
        folds=_folds(ask, folded, drawn),
        rows=[] if folded is not None else list(drawn.values()),
        listed=[w.row.uid for w in here],
        elsewhere=[w.row.uid for w in moved],
    )
    return tagged(answer, tag)


async def _listed(
    tx: Tx, watched: Sequence[MonitorData], query: OverviewQuery, wanted: Collection[UUID]
) -> tuple[list[MonitorData], list[MonitorData]]:
    """Returns the monitors of the page, and the wanted ones that are not on it."""
    _, _, page_now = _page(_chosen(watched, query), query)
    uids = {w.row.uid for w in page_now}
    moved = [w for w in watched if w.row.uid in wanted and w.row.uid not in uids]
    return await refreshed(tx, page_now), await refreshed(tx, moved)


def _groups(watched: Sequence[MonitorData], query: OverviewQuery) -> list[OverviewGroup] | None:
    """Returns the groups of a large project, None if the screen lists single monitors."""
    if len(watched) <= FOLDED_ABOVE or query.show == "notup" or query.q.strip():
        return None
    return grouped(watched, by_region=query.show == "region")


def _folds(
    ask: Request, folded: Sequence[OverviewGroup] | None, drawn: Mapping[str, MonitorItem]
) -> OverviewFolds | None:
    if folded is None:
        return None
    monitors = f"/projects/{ask.ids['projectID']}/monitors"
    return folds(folded, drawn, monitors, by_region=ask.query.show == "region")


def _shown(given: Sequence[str]) -> dict[UUID, str]:
    """Returns the key of each row that the client shows. Other texts are skipped."""
    found = {}
    for text in given:
        name, _, key = text.partition("~")
        with suppress(ValueError):
            found[UUID(name)] = key
    return found


def _page(
    chosen: Sequence[MonitorData], query: OverviewQuery
) -> tuple[int, int, Sequence[MonitorData]]:
    """Returns the number of the page, the number of pages, and the monitors of the page."""
    pages = max(-(-len(chosen) // PAGE_ROWS), 1)
    number = min(max(query.page, 1), pages)
    return number, pages, chosen[(number - 1) * PAGE_ROWS : number * PAGE_ROWS]


def _chosen(watched: Sequence[MonitorData], query: OverviewQuery) -> list[MonitorData]:
    words = query.q.strip().lower()
    return [
        item
        for item in watched
        if (query.show != "notup" or item.state not in FINE)
        and (not words or _matches(item, words))
    ]


def _matches(item: MonitorData, words: str) -> bool:
    row = item.row
    return any(words in text.lower() for text in (row.name, row.target, row.slug, *row.tags))


def _summary(
    frame: PageLayout, watched: Sequence[MonitorData], attention: Attention
) -> dict[str, Any]:
    tally = Counter(item.state for item in watched)
    of_services = service_summary(attention.marks)
    return {
        "frame": frame,
        "line": of_services or summary(tally),
        "under": under(tally, _missing(watched)) if of_services is None else monitors_below(tally),
        "incidents": incidents_open(frame.place.incidents),
        "tally": tallied(tally),
        "attention": attention,
    }


def _missing(watched: Sequence[MonitorData]) -> MissingResults:
    served = [w for w in watched if not w.is_unserved]
    return MissingResults(
        Counter(w.row.region for w in watched if w.is_unserved),
        Counter(w.trouble for w in served if w.trouble),
        sum(w.state is MonitorStatusText.UNKNOWN and not w.trouble for w in served),
    )


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
