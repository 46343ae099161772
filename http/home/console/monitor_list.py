"""List of the monitors of a project: filter, order, pages, and actions on a selection."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import parse_qs
from uuid import UUID

from ....storage.accounts.rules.access import Need, Permission
from ....storage.bulk.rows import BulkObject
from ....storage.bulk.rules import OBJECTS_MOST, BulkAct
from ....storage.bulk.transactions import NOT_BEGUN
from ....storage.core.instant import Instant
from ....storage.core.key import MonitorKey
from ....storage.core.refusal import Refused
from ....storage.engine.pools import Tx
from ....storage.figures.queries.availability import select_stored_sums
from ....storage.figures.queries.monitor_time import MonitorTime
from ....storage.monitors.transactions.create_monitor import CREATE
from ....storage.notifications.queries.channels import select_channels_of
from ...monitors.console.project_statuses import (
    MonitorData,
    ProjectStatuses,
    refreshed,
    select_statuses,
)
from ...monitors.form.kind_cards import kind_name
from ...ui.facets import page_numbers
from ...ui.form_routes import page_route
from ...ui.form_values import stripped, uuid_given, value_of
from ...ui.formatting import moment, number
from ...ui.live_page import RENEWED_US, not_modified, tag_of, tagged
from ...ui.monitor_status import WORDS, MonitorStatusText
from ...ui.render import page, redirect
from ...ui.shell.page_layout import frame_of
from ...wire.errors import Problem
from ...wire.route import MANY_WRITES_SECONDS, Request, Response
from ...wire.scope_keys import org_of, project_of
from .bulk_progress import begin, finished, running_text, to_action, undo
from .monitor_bulk import (
    AT_ONCE_MOST,
    DURATIONS,
    FAILURES_SHOWN,
    BulkResult,
    act_given,
    apply_to,
    undo_objects,
    values_given,
)
from .monitor_filter import (
    ROWS_OF_PAGE,
    SORTS,
    MonitorFilter,
    MonitorListQuery,
    Ordering,
    facets,
    filter_of,
)
from .overview_data import DAYS, hour_axis, select_courses_of
from .overview_rows import MonitorItem, rows

# A selection of OBJECTS_MOST monitors, each with its id.
_SUMS: Final = "stored_sums"
_FORM_LARGEST: Final = 128 << 10


@dataclass(frozen=True, slots=True)
class MonitorLine:
    item: MonitorItem
    type: str
    region: str
    is_failed: bool


async def render_monitors(ask: Request) -> Response:
    """Shows the list; 304 to a live client if nothing that it shows changed."""
    query = ask.query
    tag = await tag_of(ask, query.shown[:ROWS_OF_PAGE])
    if known := not_modified(ask, tag):
        return known
    wanted = frozenset(query.shown[:ROWS_OF_PAGE])
    result = await finished(ask, query.action)
    answer = await _render(ask, filter_of(query), query.page, result, wanted)
    return tagged(answer, tag)


async def submit_monitors(ask: Request) -> Response:
    """Executes an action on the selected monitors: few at once, many in the background."""
    chosen, number_ = _filter_given(ask)
    try:
        return await _submit(ask, chosen, number_)
    except Refused as why:
        if why.code not in NOT_BEGUN:
            raise
        result = BulkResult(f"No monitor was changed: {why.message}.")
        return await _render(ask, chosen, number_, result)


async def _submit(ask: Request, chosen_filter: MonitorFilter, number_: int) -> Response:
    act = value_of(ask, "act")
    if act == "clear":
        return redirect(f"{_path(ask)}?{chosen_filter.query(page=number_)}")
    if act == "confirm_delete":
        return await _confirm(ask, chosen_filter)
    here = chosen_filter.query(page=number_)
    if value_of(ask, "undoes"):
        return to_action(ask, await undo(ask, uuid_given(value_of(ask, "undoes"))), here)
    kind = act_given(act)
    if kind is BulkAct.END:
        objects = [BulkObject(0, uid, "") for uid in list(_ids(ask))[:OBJECTS_MOST]]
    else:
        expected = _ids(ask)
        objects = [
            BulkObject(0, one.row.uid, one.row.name, expected.get(one.row.uid))
            for one in await _selected(ask, chosen_filter)
        ]
        if kind is BulkAct.DELETE and stripped(ask, "count") != str(len(objects)):
            return await _confirm(ask, chosen_filter, is_wrong=True)
    values = values_given(ask, kind)
    if kind is BulkAct.TAG and not values["tag"]:
        result = BulkResult("No monitor was changed: the tag is empty.")
    elif len(objects) > AT_ONCE_MOST:
        pairs = [(one.uid, one.name) for one in objects]
        return to_action(ask, await begin(ask, kind, values, pairs), here)
    else:
        result = await apply_to(ask, kind, values, objects)
    return await _render(ask, chosen_filter, number_, result)


def _path(ask: Request) -> str:
    return f"/projects/{ask.ids['projectID']}/monitors"


def _filter_given(ask: Request) -> tuple[MonitorFilter, int]:
    """Returns the filter of the list that sent the form, and its page."""
    given = parse_qs(value_of(ask, "filter")[:4_096])
    text = {name: values[0] for name, values in given.items()}
    query = MonitorListQuery(
        status=given.get("status", []),
        type=given.get("type", []),
        tag=given.get("tag", []),
        region=given.get("region", []),
        q=text.get("q", ""),
        sort=text.get("sort", ""),
    )
    page_ = text.get("page", "1")
    return filter_of(query), int(page_) if page_.isdecimal() and len(page_) < 6 else 1


def _ids(ask: Request) -> dict[UUID, int | None]:
    """Returns the ids of the form: one for each ticked box, or a list in one field.

    The value is the revision that the undo of an action needs, None without one.
    """
    try:
        return undo_objects(",".join([*ask.form.get("id", []), value_of(ask, "ids")]))
    except ValueError:
        raise Refused("invalid", "id", "names no monitor of this project") from None


async def _selected(ask: Request, chosen: MonitorFilter) -> list[MonitorData]:
    """Returns the monitors of the selection. Ids of other projects are ignored.

    Raises: Problem 400 without a selection, or with more than OBJECTS_MOST monitors.
    """
    async with ask.context.pool.transaction("console_selected", read_only=True) as tx:
        watched = (await select_statuses(ask, tx)).monitors
    if value_of(ask, "all") == "on":
        found = [item for item in watched if chosen.matches(item)]
    else:
        wanted = set(_ids(ask))
        found = [item for item in watched if item.row.uid in wanted]
    if not found:
        raise Problem("id: select at least one monitor")
    if len(found) > OBJECTS_MOST:
        raise Problem(f"id: select at most {OBJECTS_MOST} monitors")
    return found


async def _confirm(ask: Request, chosen: MonitorFilter, *, is_wrong: bool = False) -> Response:
    found = await _selected(ask, chosen)
    async with ask.context.pool.transaction("console_monitors", read_only=True) as tx:
        frame = await frame_of(ask, tx)
    return page(
        "home/console/delete_monitors.html",
        status=400 if is_wrong else 200,
        frame=frame,
        path=_path(ask),
        query=chosen.query(),
        chosen=found,
        is_wrong=is_wrong,
        shown=FAILURES_SHOWN,
    )


async def _render(
    ask: Request,
    chosen: MonitorFilter,
    number_: int,
    result: BulkResult,
    wanted: frozenset[UUID] = frozenset(),
) -> Response:
    """`wanted` are shown by a live client; those of another page by now are answered too."""
    async with ask.context.pool.transaction("console_monitors", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        statuses = await select_statuses(ask, tx)
        watched = statuses.monitors
        matching = [item for item in watched if chosen.matches(item)]
        found, ordered_until = await _ordered(tx, statuses, matching, chosen.sort)
        pages = max(-(-len(found) // ROWS_OF_PAGE), 1)
        at = min(max(number_, 1), pages)
        shown = await refreshed(tx, found[(at - 1) * ROWS_OF_PAGE : at * ROWS_OF_PAGE])
        here = {item.row.uid for item in shown}
        moved = await refreshed(tx, [one for one in watched if one.row.uid in wanted - here])
        axis = hour_axis(tx.now)
        courses = await select_courses_of(tx, [*shown, *moved], axis)
        channels = await select_channels_of(tx, org_of(ask), project_of(ask))
        now, running = tx.now, await running_text(ask, tx)
        until = None if ordered_until is None else moment(ordered_until, now)
    drawn = rows([*shown, *moved], courses, axis, now)
    mark, sentence = _summary(watched)
    return page(
        "home/console/monitor_list.html",
        frame=frame,
        path=_path(ask),
        mark=mark,
        sentence=sentence,
        total=len(watched),
        found=len(found),
        lines=[_line(item, drawn[str(item.row.uid)]) for item in shown],
        elsewhere=[_line(item, drawn[str(item.row.uid)]) for item in moved],
        filter=chosen,
        facets=facets(watched, chosen),
        sorts=SORTS,
        ordered_until=until,
        page=at,
        pages=page_numbers(at, pages),
        last=pages,
        first_row=(at - 1) * ROWS_OF_PAGE + 1,
        rows_of_page=ROWS_OF_PAGE,
        channels=[(one.uid, one.name) for one in channels],
        durations=DURATIONS,
        result=result,
        running=running,
        failures_shown=FAILURES_SHOWN,
    )


Sums = tuple[Mapping[MonitorKey, MonitorTime], Instant | None]


async def _ordered(
    tx: Tx, statuses: ProjectStatuses, found: Sequence[MonitorData], sort: str
) -> tuple[list[MonitorData], Instant | None]:
    """Returns the monitors in order, and where the figures end that the order uses."""
    if sort != "uptime":
        return Ordering(sort).ordered(found), None
    sums, until = await _sums(tx, statuses, found)
    uptime = {
        key: float(share)
        for key, measured in sums.items()
        if (share := measured.split.availability()) is not None
    }
    return Ordering(sort, uptime).ordered(found), until


async def _sums(tx: Tx, statuses: ProjectStatuses, found: Sequence[MonitorData]) -> Sums:
    """Returns the stored sums of the monitors. Those of all monitors are kept for RENEWED_US.

    They change when an hour is rolled up, and are a quarter of the time of the list.
    """
    kept, until = statuses.dependent.get(_SUMS, (None, tx.now))
    if isinstance(kept, tuple) and tx.now < until:
        return kept
    sums = await select_stored_sums(tx, [item.key for item in found], tx.now, DAYS)
    if len(found) == len(statuses.monitors):
        statuses.dependent[_SUMS] = (sums, Instant(tx.now + RENEWED_US))
    return sums


def _line(item: MonitorData, drawn: MonitorItem) -> MonitorLine:
    standing = item.standing
    failed = item.state is MonitorStatusText.DOWN and standing is not None and not standing.last_up
    return MonitorLine(drawn, kind_name(item.row.type), item.row.region, failed)


def _summary(watched: Sequence[MonitorData]) -> tuple[MonitorStatusText, str]:
    """Returns the first line: the worst status, then the other problems."""
    tally = Counter(item.state for item in watched)
    down = tally[MonitorStatusText.DOWN]
    if not watched:
        return MonitorStatusText.PENDING, "No monitors yet"
    if down:
        more = _are(tally[MonitorStatusText.UNKNOWN], "unknown")
        said = f"{_monitors(down)} {'is' if down == 1 else 'are'} down"
        return MonitorStatusText.DOWN, f"{said}{f', {more}' if more else ''}"
    for state in (
        MonitorStatusText.UNKNOWN,
        MonitorStatusText.PENDING,
        MonitorStatusText.MAINTENANCE,
        MonitorStatusText.PAUSED,
    ):
        many = tally[state]
        if many:
            verb = "is" if many == 1 else "are"
            return state, f"{_monitors(many)} {verb} {WORDS[state]}"
    if len(watched) == 1:
        return MonitorStatusText.UP, "The monitor is up"
    return MonitorStatusText.UP, f"All {number(len(watched))} monitors are up"


def _monitors(many: int) -> str:
    return f"{number(many)} monitor{'' if many == 1 else 's'}"


def _are(many: int, word: str) -> str:
    return f"{number(many)} {'is' if many == 1 else 'are'} {word}" if many else ""


_PROJECT: Final = ("project", "projectID")
_LIST: Final = "/projects/{projectID}/monitors"

ROUTES: Final = (
    page_route(
        method="GET",
        path=_LIST,
        action=Permission(Need.VIEWER),
        scope=_PROJECT,
        handler=render_monitors,
        summary="The monitors of a project that match a filter.",
        query=MonitorListQuery,
    ),
    replace(
        page_route(
            method="POST",
            path=_LIST,
            action=CREATE,
            scope=_PROJECT,
            handler=submit_monitors,
            summary="An action on the selected monitors.",
        ),
        form_largest=_FORM_LARGEST,
        answer_seconds=MANY_WRITES_SECONDS,
    ),
)
