"""Index of the settings: the list that a phone has in place of the side list."""

from typing import Final

import msgspec

from ....storage.accounts.rules.access import Need, Permission
from ...wire.route import Request, Response, Route
from ..form_routes import page_route
from ..render import page
from .page_layout import frame_of
from .settings_list import found_in


class SettingsQuery(msgspec.Struct, frozen=True):
    """`q` is a part of the name or the description of a setting."""

    q: str = ""


async def render_settings(ask: Request) -> Response:
    wanted = ask.query.q.strip()
    async with ask.context.pool.transaction("console_settings", read_only=True) as tx:
        frame = await frame_of(ask, tx)
    groups = found_in(frame.settings, wanted)
    return page("ui/shell/settings_index.html", frame=frame, groups=groups, q=wanted)


ROUTES: Final[tuple[Route, ...]] = (
    page_route(
        method="GET",
        path="/projects/{projectID}/settings",
        action=Permission(Need.VIEWER),
        scope=("project", "projectID"),
        handler=render_settings,
        summary="The settings that the user's role permits.",
        query=SettingsQuery,
    ),
)
