"""By which server letters go, and where links lead: a form over the setting of the API."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import msgspec

from ....storage.core.refusal import Refused
from ...ui.form_routes import admin_route
from ...ui.render import page, redirect
from ...wire.route import Request, Response, Route
from ..routes import mail_settings as api
from ..schemas.mail import MailSettingsView, SetMailSettings

PATH: Final = "/admin/mail"
_TEXTS: Final = {
    "smtp_host": "Server:",
    "smtp_port": "Port:",
    "smtp_username": "Account:",
    "smtp_password": "Password:",
    "from": "From:",
    "public_base_url": "Address of this installation:",
}
_SAID: Final = {"encryption_key_missing": "No encryption key is configured, so none can be kept."}


class MailQuery(msgspec.Struct, frozen=True):
    """`saved` is there after it was."""

    saved: str = ""


async def render_mail_settings(ask: Request) -> Response:
    found = await api.read(ask)
    return _page(found, _values(found), is_on=found.enabled, saved=bool(ask.query.saved))


async def submit_mail_settings(ask: Request) -> Response:
    """What was typed into a form that is refused stands in it again, but for the password."""
    typed = {name: _first(ask, name) for name in _TEXTS}
    is_on = bool(_first(ask, "enabled"))
    try:
        await api.put(replace(ask, body=_parse_form(typed, is_on=is_on)))
    except Refused as refused:
        if refused.code == "forbidden":
            raise
        field = refused.field or "smtp_password"
        said = _SAID.get(refused.code) or f"{_TEXTS[field]} {refused.message}."
        wrong = {field: said}
        return _page(await api.read(ask), typed, is_on=is_on, wrong=wrong, status=400)
    return redirect(f"{PATH}?saved=yes")


def _parse_form(typed: Mapping[str, str], *, is_on: bool) -> SetMailSettings:
    port = typed["smtp_port"]
    if not (port.isascii() and port.isdigit() and len(port) <= 5):
        raise Refused("invalid", "smtp_port", "must be a whole number")
    return SetMailSettings(
        enabled=is_on,
        smtp_host=typed["smtp_host"],
        smtp_port=int(port),
        smtp_username=typed["smtp_username"],
        smtp_password=typed["smtp_password"],
        from_=typed["from"],
        public_base_url=typed["public_base_url"],
    )


def _values(found: MailSettingsView) -> dict[str, str]:
    return {
        "smtp_host": found.smtp_host,
        "smtp_port": str(found.smtp_port),
        "smtp_username": found.smtp_username,
        "from": found.from_,
        "public_base_url": found.public_base_url,
    }


def _first(ask: Request, name: str) -> str:
    text = ask.form.get(name, [""])[0]
    return text if name == "smtp_password" else text.strip()


def _page(
    found: MailSettingsView,
    values: Mapping[str, str],
    *,
    is_on: bool,
    wrong: Mapping[str, str] | None = None,
    saved: bool = False,
    status: int = 200,
) -> Response:
    return page(
        "notifications/console/mail_settings.html",
        status=status,
        path=PATH,
        found=found,
        values=values,
        is_on=is_on,
        wrong={**dict.fromkeys(_TEXTS, ""), **(wrong or {})},
        saved=saved,
    )


ROUTES: Final[tuple[Route, ...]] = (
    admin_route("GET", PATH, render_mail_settings, "By which server letters go.", MailQuery),
    admin_route("POST", PATH, submit_mail_settings, "Sets by which server letters go."),
)
