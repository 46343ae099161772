"""Progress of an operation that continues in the background."""

from dataclasses import replace
from typing import Final

from ....storage.accounts.rules.access import Need, Permission
from ...ui.form_routes import page_route
from ...ui.formatting import count, number
from ...ui.render import page
from ...ui.shell.page_layout import outer_frame_of
from ...wire.route import Request, Response, Route
from ..routes import operations as api

_REFRESH_S: Final = 2
_RUNNING: Final = {
    "project_delete": "The project is being deleted",
    "organization_delete": "The organization is being deleted",
    "bundle_apply": "The bundle is being applied",
    "monitors_edit": "Monitors are being changed",
}
_DONE: Final = {
    "project_delete": "The project was deleted",
    "organization_delete": "The organization was deleted",
    "bundle_apply": "The bundle was applied",
    # Some or all monitors can have refused it.
    "monitors_edit": "The action on monitors has ended",
}
_FAILED: Final = {
    "project_delete": "The project was not deleted completely",
    "organization_delete": "The organization was not deleted completely",
    "bundle_apply": "The bundle was not applied",
    "monitors_edit": "Not all monitors were changed",
}


async def render_operation(ask: Request) -> Response:
    """The handler of the API decides who may see it: the author, and admins of its scope."""
    found = await api.read(ask)
    runs = found.state == "running"
    words = {"running": _RUNNING, "succeeded": _DONE}.get(found.state, _FAILED)[found.kind]
    answer = page(
        "accounts/console/operation_screen.html",
        frame=await outer_frame_of(ask),
        operation=found,
        sentence=words,
        runs=runs,
        failures=found.failures or (),
        failed=count(found.failed or 0, "monitor"),
        progress=f"{number(found.done)} of {number(found.total)} objects",
    )
    refresh = {"Refresh": str(_REFRESH_S)} if runs else {}
    return replace(answer, headers={**answer.headers, **refresh})


ROUTES: Final[tuple[Route, ...]] = (
    page_route(
        method="GET",
        path="/operations/{operationID}",
        action=Permission(Need.VIEWER),
        scope=("operation", "operationID"),
        handler=render_operation,
        summary="Progress of an operation.",
    ),
)
