"""Index of the settings: the list that a phone has in place of the side list."""

from typing import Final

from ....storage.accounts.rules.access import Need, Permission
from ...wire.route import Request, Response, Route
from ..form_routes import page_route
from ..render import page
from .page_layout import frame_of


async def render_settings(ask: Request) -> Response:
    async with ask.context.pool.transaction("console_settings", read_only=True) as tx:
        frame = await frame_of(ask, tx)
    return page("ui/shell/settings_index.html", frame=frame)


ROUTES: Final[tuple[Route, ...]] = (
    page_route(
        method="GET",
        path="/projects/{projectID}/settings",
        action=Permission(Need.VIEWER),
        scope=("project", "projectID"),
        handler=render_settings,
        summary="The settings that the user's role permits.",
    ),
)
