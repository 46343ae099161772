"""How people sign in elsewhere: a form over the setting of the API."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import msgspec

from ....storage.core.refusal import Refused
from ...ui.form_routes import admin_route
from ...ui.render import page, redirect
from ...wire.errors import Problem, problem_of
from ...wire.route import Request, Response, Route
from ..routes import oidc_settings as api
from ..schemas.settings import OIDCSettingsView, SetOIDCSettings

PATH: Final = "/admin/single-sign-on"
_TEXTS: Final = {
    "issuer": "Issuer:",
    "client_id": "Client:",
    "client_secret": "Secret:",
    "redirect_url": "Comes back to:",
    "scopes": "Scopes:",
    "post_logout_url": "After a sign-out:",
    "button_label": "Button:",
    "bootstrap_admins": "Administrators:",
}
_SAID: Final = {"encryption_key_missing": "No encryption key is configured, so none can be kept."}


class OidcSettingsQuery(msgspec.Struct, frozen=True):
    """`saved` is there after it was."""

    saved: str = ""


async def render_oidc_settings(ask: Request) -> Response:
    found = await api.read(ask)
    return _page(found, _values(found), is_on=found.enabled, saved=bool(ask.query.saved))


async def submit_oidc_settings(ask: Request) -> Response:
    """What was typed into a form that is refused stands in it again, but for the secret."""
    typed = {name: _first(ask, name) for name in _TEXTS}
    is_on = bool(_first(ask, "enabled"))
    try:
        await api.put(replace(ask, body=_parse_form(typed, is_on=is_on)))
    except Refused as refused:
        problem = problem_of(refused)
    except Problem as caught:
        problem = caught
    else:
        return redirect(f"{PATH}?saved=yes")
    if problem.status in (401, 403):
        raise problem
    name, colon, rule = problem.code.partition(": ")
    field = name.partition("[")[0] if colon else "client_secret"
    said = f"{_TEXTS[field]} {rule}." if colon else _SAID.get(problem.code, problem.code)
    return _page(await api.read(ask), typed, is_on=is_on, wrong={field: said}, status=400)


def _parse_form(typed: Mapping[str, str], *, is_on: bool) -> SetOIDCSettings:
    return SetOIDCSettings(
        enabled=is_on,
        issuer=typed["issuer"],
        client_id=typed["client_id"],
        client_secret=typed["client_secret"],
        redirect_url=typed["redirect_url"],
        scopes=typed["scopes"].split(),
        post_logout_url=typed["post_logout_url"],
        button_label=typed["button_label"],
        bootstrap_admins=typed["bootstrap_admins"].replace(",", " ").split(),
    )


def _values(found: OIDCSettingsView) -> dict[str, str]:
    return {
        "issuer": found.issuer,
        "client_id": found.client_id,
        "redirect_url": found.redirect_url,
        "scopes": " ".join(found.scopes),
        "post_logout_url": found.post_logout_url,
        "button_label": found.button_label,
        "bootstrap_admins": "\n".join(found.bootstrap_admins),
    }


def _first(ask: Request, name: str) -> str:
    text = ask.form.get(name, [""])[0]
    return text if name == "client_secret" else text.strip()


def _page(
    found: OIDCSettingsView,
    values: Mapping[str, str],
    *,
    is_on: bool,
    wrong: Mapping[str, str] | None = None,
    saved: bool = False,
    status: int = 200,
) -> Response:
    return page(
        "accounts/console/oidc_settings.html",
        status=status,
        path=PATH,
        found=found,
        values=values,
        is_on=is_on,
        wrong={**dict.fromkeys(_TEXTS, ""), **(wrong or {})},
        saved=saved,
    )


ROUTES: Final[tuple[Route, ...]] = (
    admin_route(
        "GET", PATH, render_oidc_settings, "How people sign in elsewhere.", OidcSettingsQuery
    ),
    admin_route("POST", PATH, submit_oidc_settings, "Sets how people sign in elsewhere."),
)
