"""Screen of a project's mutes. All members see them; editors add and end them."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import msgspec
from msgspec import UNSET

from ...storage.accounts.rules.access import Need, Permission
from ...storage.alerting.queries.console_outages import select_muted_monitors
from ...storage.alerting.queries.paging_owners import select_owning
from ...storage.core.instant import DAY, SECOND, Instant, to_text
from ...storage.core.refusal import Refused
from ...storage.engine.pools import Tx
from ...storage.monitors.queries.console_monitors import select_names_of
from ...storage.mutes.queries import mutes_of_monitors, select_mutes_of, select_shown_mute
from ...storage.mutes.rows import MuteRow
from ...storage.mutes.rules.label_matcher import TEXT_LONGEST
from ...storage.mutes.rules.mute import (
    LONGEST_US,
    MUTES_MOST,
    REASON_LONGEST,
    MuteState,
    mute_state,
)
from ...storage.mutes.transactions import EDIT
from ...storage.services.queries.pickable_objects import PickableKind
from ...storage.services.queries.services import select_service
from ..ui.form_routes import page_route
from ..ui.form_values import stripped, uuid_given, uuid_or_none, value_of
from ..ui.formatting import count, dated
from ..ui.pickers.objects import named, options_of
from ..ui.render import page, redirect
from ..ui.shell.mute_fact import scope_words
from ..ui.shell.page_layout import frame_of
from ..ui.shown_time import zone_shown
from ..ui.time_inputs import instant_typed
from ..wire.errors import Problem
from ..wire.route import Request, Response
from ..wire.scope_keys import org_of, project_of
from . import routes as api
from .schemas import CreateMute

# Durations in seconds, with their words.
PRESETS: Final = {"3600": "1 hour", "28800": "8 hours", "86400": "1 day"}
_AT_A_TIME: Final = "time"
_LABELS: Final = {
    "monitor_id": ("monitor", "Monitor"),
    "service_id": ("service", "Service"),
    "matchers": ("matchers", "Matchers"),
    "reason": ("reason", "Reason"),
    "starts_at": ("until", "End"),
    "ends_at": ("until", "End"),
    "for": ("until", "End"),
}
_SAID: Final = {"mute_quota": f"Limit: {MUTES_MOST} mutes per project."}
_DONE: Final = {"add": "The alerts are muted.", "end": "The mute ended."}
_MARKS: Final = {
    MuteState.ACTIVE: ("degraded", "In force"),
    MuteState.PENDING: ("pending", "Not started"),
    MuteState.ENDED: ("unknown", "Ended"),
}


class MutesQuery(msgspec.Struct, frozen=True):
    """`show` is `add` for the form, which `monitor` or `service` fills in.

    `done` names the last action.
    """

    show: str = ""
    monitor: str = ""
    service: str = ""
    done: str = ""


@dataclass(frozen=True, slots=True)
class MuteInput:
    """Values of the form. `fault` belongs to the field `faulty`, or to no field."""

    monitor: str = ""
    service: str = ""
    matchers: str = ""
    choice: str = next(iter(PRESETS))
    until: str = ""
    reason: str = ""
    faulty: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class MuteItem:
    """Line of the list. `path` is the screen of the object, empty for matchers.

    `held` are the outages that wait for the end of the mute, as text.
    """

    uid: UUID
    about: str
    path: str
    reason: str
    by: str
    span: str
    mark: str
    word: str
    may_end: bool
    held: str


async def render_mutes(ask: Request) -> Response:
    query: MutesQuery = ask.query
    if query.show == "add":
        return await _form(ask, await _prefilled(ask, query))
    return await _list(ask, done=_DONE.get(query.done, ""))


async def submit_mutes(ask: Request) -> Response:
    """Calls the API handler of the button. A refused form keeps its values."""
    what = value_of(ask, "act")
    if what == "end":
        await _end(ask)
    elif what == "add":
        names = ("monitor", "service", "matchers", "for", "until", "reason")
        typed = MuteInput(*(stripped(ask, name) for name in names))
        try:
            await _add(ask, typed)
        except Refused as refused:
            if refused.code in ("forbidden", "not_found"):
                raise
            anchor, label = _LABELS.get(refused.field, ("", ""))
            said = _SAID.get(refused.code) or f"{label}: {refused.message}."
            return await _form(ask, replace(typed, faulty=anchor, fault=said))
    else:
        raise Problem("Unknown action")
    return redirect(f"/projects/{ask.ids['projectID']}/mutes?done={what}")


async def _add(ask: Request, typed: MuteInput) -> None:
    org, project = org_of(ask), project_of(ask)
    async with ask.context.pool.transaction("console_pick", read_only=True) as tx:
        monitor = await named(tx, org, project, PickableKind.MONITOR, typed.monitor, "monitor_id")
        service = await named(tx, org, project, PickableKind.SERVICE, typed.service, "service_id")
    body = CreateMute(
        monitor_id=UNSET if monitor is None else monitor.uid,
        service_id=UNSET if service is None else service.uid,
        matchers=typed.matchers or UNSET,
        reason=typed.reason,
        ends_at=_end_of(ask, typed),
    )
    await api.create(replace(ask, body=body))


def _end_of(ask: Request, typed: MuteInput) -> str:
    if typed.choice == _AT_A_TIME:
        return instant_typed("ends_at", typed.until, zone_shown())
    if typed.choice not in PRESETS:
        raise Refused("invalid", "for", "choose one of the durations")
    return to_text(Instant(ask.context.clock() + int(typed.choice) * SECOND))


async def _end(ask: Request) -> None:
    """Ends the mute of the form, which must belong to the project."""
    uid = uuid_given(value_of(ask, "mute"))
    async with ask.context.pool.transaction("console_mute_named", read_only=True) as tx:
        row = await select_shown_mute(tx, uid)
    if row is None or (row.org, row.project) != (org_of(ask), project_of(ask)):
        raise Problem("not_found")
    await api.delete(replace(ask, ids={**ask.ids, "muteID": uid}))


async def _prefilled(ask: Request, query: MutesQuery) -> MuteInput:
    """Returns the form for the monitor or service that a link names."""
    monitor, service = uuid_or_none(query.monitor), uuid_or_none(query.service)
    org = org_of(ask)
    async with ask.context.pool.transaction("console_mute_subject", read_only=True) as tx:
        names = await select_names_of(tx, org, [monitor] if monitor else [])
        other = await _service_name(tx, ask, service)
    return MuteInput(monitor=names.get(monitor, "") if monitor else "", service=other)


async def _service_name(tx: Tx, ask: Request, uid: UUID | None) -> str:
    if uid is None:
        return ""
    row = await select_service(tx, uid)
    is_here = row is not None and (row.org, row.project) == (org_of(ask), project_of(ask))
    return row.name if row is not None and is_here else ""


async def _form(ask: Request, typed: MuteInput) -> Response:
    org, project, now = org_of(ask), project_of(ask), ask.context.clock()
    async with ask.context.pool.transaction("console_mute_form", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        monitors = await options_of(tx, org, project, PickableKind.MONITOR, typed.monitor)
        services = await options_of(tx, org, project, PickableKind.SERVICE, typed.service)
    if not frame.may_write:
        raise Problem("forbidden")
    return page(
        "mutes/console.html",
        status=400 if typed.fault else 200,
        frame=frame,
        what="add",
        done="",
        path=f"/projects/{ask.ids['projectID']}/mutes",
        typed=typed,
        monitors=monitors,
        services=services,
        presets=[
            (value, words, dated(Instant(now + int(value) * SECOND), now))
            for value, words in PRESETS.items()
        ],
        reason_longest=REASON_LONGEST,
        matchers_longest=TEXT_LONGEST,
        longest_days=LONGEST_US // DAY,
    )


async def _list(ask: Request, *, done: str) -> Response:
    async with ask.context.pool.transaction("console_mutes", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        rows = await select_mutes_of(tx, org_of(ask), project_of(ask))
        now, held = tx.now, await _held(ask, tx)
    return page(
        "mutes/console.html",
        frame=frame,
        what="",
        done=done,
        path=f"/projects/{ask.ids['projectID']}/mutes",
        lines=[_item(row, now, held[row.id]) for row in rows],
    )


async def _held(ask: Request, tx: Tx) -> Counter[int]:
    """Returns how many outages wait for each mute in force. One can wait for several mutes."""
    keys = await select_muted_monitors(tx, org_of(ask), project_of(ask))
    if not keys:
        return Counter()
    found = await mutes_of_monitors(tx, keys, await select_owning(tx, keys, tx.now))
    return Counter(mute.id for mutes in found.values() for mute in mutes)


def _item(row: MuteRow, now: Instant, held: int) -> MuteItem:
    state = mute_state(row.starts_at, row.ends_at, now)
    mark, word = _MARKS[state]
    path = f"/monitors/{row.monitor_uid}" if row.monitor_uid else ""
    path = f"/services/{row.service_uid}" if row.service_uid else path
    return MuteItem(
        uid=row.uid,
        about=scope_words(row),
        path=path,
        reason=row.reason,
        by=row.author_label,
        span=f"{dated(row.starts_at, now)} to {dated(row.ends_at, now)}",
        mark=mark,
        word=word,
        may_end=state is not MuteState.ENDED,
        held=f"{count(held, 'outage')} {'waits' if held == 1 else 'wait'}" if held else "",
    )


_PROJECT: Final = ("project", "projectID")
_PATH: Final = "/projects/{projectID}/mutes"

ROUTES: Final = (
    page_route(
        method="GET",
        path=_PATH,
        action=Permission(Need.VIEWER),
        scope=_PROJECT,
        handler=render_mutes,
        summary="Mutes of a project.",
        query=MutesQuery,
    ),
    page_route(
        method="POST",
        path=_PATH,
        action=EDIT,
        scope=_PROJECT,
        handler=submit_mutes,
        summary="Mute alerts, or end a mute.",
    ),
)
