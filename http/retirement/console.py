"""Forms that replace a monitor by a service and retire it, over the API's routes."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final
from uuid import UUID

import msgspec

from ...storage.core.refusal import Refused
from ...storage.engine.pools import Tx
from ...storage.monitors.queries.console_monitors import select_shown_monitor
from ...storage.monitors.rows import MonitorRow
from ...storage.monitors.rules.monitor import MonitorType
from ...storage.retirement.transactions.set_successor import EDIT
from ...storage.services.queries.pickable_objects import PickableKind, select_chosen
from ..ui.bundle_notice import MANAGED_SAID, Managed, managed
from ..ui.form_routes import form_route
from ..ui.form_values import value_of
from ..ui.formatting import Moment, moment
from ..ui.pickers.fields import PickerOption
from ..ui.pickers.objects import named, options_of
from ..ui.render import page, redirect
from ..ui.shell.page_layout import PageLayout, frame_of
from ..wire.errors import Problem, problem_of
from ..wire.route import Request, Response
from . import routes as api
from .schemas import ConvertComposite, SetSuccessor

_SAID: Final = {
    "not_superseded": "No replacement service is set. Set one first.",
    "retired": "Reactivate the monitor before removing its replacement.",
    "not_retired": "The monitor is no longer retired.",
    "in_use": "In use by a composite, a monitor or a service. Remove it there first.",
    "managed_by_file": MANAGED_SAID,
    "service_quota": "The project has the maximum number of services.",
}


@dataclass(frozen=True, slots=True)
class _Ground:
    frame: PageLayout
    row: MonitorRow
    # The first services of the list, and the one that replaces the monitor.
    services: Sequence[PickerOption]
    successor: tuple[UUID, str] | None
    children: Sequence[tuple[UUID, str]]
    managed: Managed | None
    retired: Moment | None


async def render_successor(ask: Request) -> Response:
    return _render(await _ground(ask), ask)


async def submit_successor(ask: Request) -> Response:
    """Handles one of the buttons. A form without a known button changes no data."""
    done = _ACTS.get(value_of(ask, "act"))
    if done is None:
        raise Problem("Unknown action")
    try:
        await done(ask)
    except Refused as refused:
        if refused.code not in _SAID and not refused.message:
            raise
        said = _SAID.get(refused.code) or f"{refused.field}: {refused.message}."
        status = problem_of(refused).status
        return _render(await _ground(ask), ask, wrong=said, status=status)
    return redirect(f"/monitors/{ask.ids['monitorID']}/successor")


async def _succeed(ask: Request) -> None:
    text = value_of(ask, "service").strip()
    async with ask.context.pool.transaction("console_pick", read_only=True) as tx:
        row = await _monitor(ask, tx)
        found = await named(tx, row.org, row.project, PickableKind.SERVICE, text, "service")
    service = found.uid if found else None
    await api.write_successor(replace(ask, body=SetSuccessor(service_id=service)))


async def _convert(ask: Request) -> None:
    sli = _uuids("sli", ask.form.get("sli", []))
    await api.convert(replace(ask, body=ConvertComposite(sli=sli)))


_ACTS: Final[Mapping[str, Callable[[Request], Awaitable[object]]]] = {
    "succeed": _succeed,
    "convert": _convert,
    "retire": api.retire_monitor,
    "reactivate": api.reactivate_monitor,
}


def _uuids(field: str, texts: Sequence[str]) -> list[UUID]:
    try:
        return [UUID(text) for text in texts]
    except ValueError:
        raise Refused("invalid", field, "choose a value from the list") from None


async def _monitor(ask: Request, tx: Tx) -> MonitorRow:
    row = await select_shown_monitor(tx, ask.ids["monitorID"])
    if row is None:
        raise Refused("not_found")
    return row


async def _ground(ask: Request) -> _Ground:
    async with ask.context.pool.transaction("console_supersession", read_only=True) as tx:
        row = await _monitor(ask, tx)
        frame = await frame_of(ask, tx)
        project = (row.org, row.project)
        services = await options_of(tx, *project, PickableKind.SERVICE)
        successor = await _names(tx, row, PickableKind.SERVICE, [row.superseded_by_uid])
        children = await _names(tx, row, PickableKind.MONITOR, _children(row))
        now = tx.now
    return _Ground(
        frame,
        row,
        services,
        successor[0] if successor else None,
        children,
        managed(row),
        None if row.retired_at is None else moment(row.retired_at, now),
    )


async def _names(
    tx: Tx, row: MonitorRow, kind: PickableKind, uids: Sequence[UUID | None]
) -> list[tuple[UUID, str]]:
    """Returns the ids with the names of the objects, in their order."""
    wanted = [uid for uid in uids if uid is not None]
    if not wanted:
        return []
    found = await select_chosen(tx, row.org, row.project, kind, wanted)
    return [(uid, found[uid].name if uid in found else str(uid)) for uid in wanted]


def _children(row: MonitorRow) -> list[UUID]:
    if row.type != MonitorType.COMPOSITE:
        return []
    return [UUID(text) for text in msgspec.json.decode(row.config)["children"]]


def _render(ground: _Ground, ask: Request, *, wrong: str = "", status: int = 200) -> Response:
    ticked = set(ask.form.get("sli", ())) or {str(uid) for uid, _ in ground.children}
    typed = value_of(ask, "service")
    return page(
        "retirement/console.html",
        status=status,
        frame=ground.frame,
        row=ground.row,
        services=ground.services,
        successor=ground.successor,
        typed=typed if wrong else (ground.successor[1] if ground.successor else ""),
        children=ground.children,
        ticked=ticked,
        managed=ground.managed,
        retired=ground.retired,
        wrong=wrong,
    )


_PATH: Final = "/monitors/{monitorID}/successor"
_MONITOR: Final = ("monitor", "monitorID")

_route: Final = partial(form_route, action=EDIT)

ROUTES: Final = (
    _route("GET", _PATH, _MONITOR, render_successor, "The replacement of a monitor."),
    _route(
        "POST",
        _PATH,
        _MONITOR,
        submit_successor,
        "Set the replacement, retire, reactivate or convert a monitor.",
    ),
)
