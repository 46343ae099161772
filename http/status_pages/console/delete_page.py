"""Deletion of a status page, after a confirmation that lists what is deleted with it."""

from typing import Final

from ....storage.status_pages.transactions.edit_pages import delete_page
from ...ui.render import page, redirect
from ...ui.shell.page_layout import frame_of
from ...wire.route import Request, Response, Route
from .page_access import ONE, reached, route


async def render_delete_page(ask: Request) -> Response:
    async with ask.context.pool.transaction("console_confirm_page_delete", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        found = await reached(ask, tx)
    return page("status_pages/console/delete_page.html", frame=frame, row=found.row)


async def submit_delete_page(ask: Request) -> Response:
    async with ask.context.pool.transaction("console_delete_page") as tx:
        found = await reached(ask, tx)
        await delete_page(tx, ask.who, found.row.uid)
    return redirect(f"/projects/{ask.ids['projectID']}/status-pages")


ROUTES: Final[tuple[Route, ...]] = (
    route(
        "GET",
        f"{ONE}/delete",
        render_delete_page,
        "The confirmation of the deletion of a status page.",
    ),
    route("POST", f"{ONE}/delete", submit_delete_page, "Deletes a status page."),
)
