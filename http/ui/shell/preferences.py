"""Preferences that the browser stores: the theme, and the project that was opened last."""

from collections.abc import Mapping
from typing import Final, Literal
from uuid import UUID

from ....storage.accounts.rules.access import Need, Permission
from ...wire.local_credentials import cookie_of
from ...wire.options import HttpOptions
from ...wire.own_paths import local_path
from ...wire.route import Request, Response, Route
from ..form_routes import page_route
from ..form_values import value_of
from ..render import redirect

Theme = Literal["", "light", "dark"]
THEME_COOKIE: Final = "leadline_theme"
PLACE_COOKIE: Final = "leadline_project"
_YEAR_S: Final = 366 * 86_400


def theme_of(headers: Mapping[str, str]) -> Theme:
    """Returns the chosen theme; empty if the system's theme applies."""
    return _theme(cookie_of(headers.get("cookie", ""), THEME_COOKIE))


def _theme(text: str) -> Theme:
    match text:
        case "light":
            return "light"
        case "dark":
            return "dark"
        case _:
            return ""


def place_cookie(project: UUID, options: HttpOptions) -> str:
    return _cookie(PLACE_COOKIE, str(project), options)


async def submit_preferences(ask: Request) -> Response:
    """Stores the theme and returns to the screen that showed the form."""
    theme = _theme(value_of(ask, "theme"))
    cookie = _cookie(THEME_COOKIE, theme, ask.context.options, seconds=_YEAR_S if theme else 0)
    return redirect(local_path(value_of(ask, "next")), Set_Cookie=cookie)


def _cookie(name: str, value: str, options: HttpOptions, *, seconds: int = _YEAR_S) -> str:
    secure = "; Secure" if options.cookie_secure else ""
    return f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"


ROUTES: Final[tuple[Route, ...]] = (
    page_route(
        method="POST",
        path="/preferences",
        action=Permission(Need.NOBODY),
        handler=submit_preferences,
        summary="Store the theme of the console in a cookie.",
    ),
)
