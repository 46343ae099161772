"""Buttons of the monitor screen. They call the handlers of the API."""

from dataclasses import replace

from ....storage.core.refusal import Refused
from ....storage.monitors.queries.console_monitors import select_shown_monitor
from ...ui.page_layout import frame_of
from ...ui.render import page, redirect
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
    try:
        await api.delete(ask)
    except Refused as refused:
        if refused.code != "in_use":
            raise
        return await _asked(ask, error=_IN_USE)
    assert row is not None, "the deleted monitor existed"
    return redirect(f"/projects/{row.project_uid}")


async def _asked(ask: Request, error: str = "") -> Response:
    async with ask.context.pool.transaction("console_delete", read_only=True) as tx:
        row = await select_shown_monitor(tx, ask.ids["monitorID"])
        if row is None:
            raise Refused("not_found")
        frame = await frame_of(ask, tx)
    return page(
        "monitors/console/delete_monitor.html",
        status=409 if error else 200,
        frame=frame,
        row=row,
        error=error,
    )
