"""Buttons of the monitor screen. They call the handlers of the API."""

from dataclasses import replace

from ....storage.core.refusal import Refused
from ....storage.monitors.queries.console_monitors import select_shown_monitor
from ....storage.monitors.queries.monitor_deletion import select_uses
from ...ui.form_values import stripped
from ...ui.formatting import day, duration
from ...ui.render import page, redirect
from ...ui.shell.page_layout import frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ..routes import monitors as api
from ..schemas.monitors import UpdateMonitor

_IN_USE = "In use as a dependency or service member. Remove it there first."


async def submit_monitor(ask: Request) -> Response:
    """Executes the action of the button. Raises Problem if the form has no known action."""
    here = f"/monitors/{ask.ids['monitorID']}"
    match ask.form.get("act"):
        case ["pause"]:
            await api.update(replace(ask, body=UpdateMonitor(enabled=False)))
        case ["resume"]:
            await api.update(replace(ask, body=UpdateMonitor(enabled=True)))
        case ["check"]:
            return await _check(ask, here)
        case ["token"]:
            await api.new_push_token(ask)
        case _:
            raise Problem("Unknown action")
    return redirect(here)


async def _check(ask: Request, here: str) -> Response:
    try:
        await api.check_now(ask)
    except Refused as refused:
        if refused.code != "in_use":
            raise
        return redirect(f"{here}?said=waiting")
    return redirect(f"{here}?said=asked")


async def ask_to_delete(ask: Request) -> Response:
    return await _asked(ask)


async def delete(ask: Request) -> Response:
    async with ask.context.pool.transaction("console_delete", read_only=True) as tx:
        row = await select_shown_monitor(tx, ask.ids["monitorID"])
    if row is None:
        raise Refused("not_found")
    if ask.form.get("act") == ["pause"]:
        await api.update(replace(ask, body=UpdateMonitor(enabled=False)))
        return redirect(f"/monitors/{row.uid}")
    if stripped(ask, "name") != row.name.strip():
        return await _asked(ask, wrong_name=True)
    try:
        await api.delete(ask)
    except Refused as refused:
        if refused.code != "in_use":
            raise
        return await _asked(ask, error=_IN_USE)
    return redirect(f"/projects/{row.project_uid}/monitors")


async def _asked(ask: Request, error: str = "", *, wrong_name: bool = False) -> Response:
    async with ask.context.pool.transaction("console_delete", read_only=True) as tx:
        row = await select_shown_monitor(tx, ask.ids["monitorID"])
        if row is None:
            raise Refused("not_found")
        frame = await frame_of(ask, tx)
        uses = await select_uses(tx, row.key)
    return page(
        "monitors/console/delete_monitor.html",
        status=409 if error else 400 if wrong_name else 200,
        frame=frame,
        row=row,
        error=error,
        uses=uses,
        created=day(row.created_at),
        history=duration(tx.now - row.created_at),
        wrong_name=wrong_name,
    )
