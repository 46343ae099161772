"""How people sign in: a form over the setting of the API. It stands in no project."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import msgspec

from ....storage.rules.access import Action, Need
from ....storage.rules.auth_policy import (
    PASSWORD_LEAST,
    PASSWORD_MOST,
    TTL_LEAST,
    TTL_MOST,
    RequireTotp,
)
from ....storage.rules.refusal import Refused
from ...route import Ask, Reply, Route
from ...routes import auth_policy as api
from ...shapes.settings import AuthPolicy, PutAuthPolicy
from ..render import page, redirect
from ..words import setting

PATH: Final = "/admin/sign-in-policy"
_WHO: Final = {
    RequireTotp.NONE: "nobody has to have one",
    RequireTotp.ADMINS: "global admins and organization admins",
    RequireTotp.ALL: "everybody who signs in with a password",
}


class PolicyQuery(msgspec.Struct, frozen=True):
    """`saved` is there after it was."""

    saved: str = ""


async def show(ask: Ask) -> Reply:
    found = await api.read(ask)
    return _page(found, _values(found), saved=bool(ask.query.saved))


async def act(ask: Ask) -> Reply:
    """What was typed into a form that is refused stands in it again."""
    typed = {name: _first(ask, name) for name in _FIELDS}
    try:
        await api.put(replace(ask, body=_given(typed)))
    except Refused as refused:
        if refused.code == "forbidden":
            raise
        field = refused.field.partition("[")[0] or "require_totp"
        said = _SAID.get(refused.code) or f"{_FIELDS[field]} {refused.message}."
        return _page(await api.read(ask), typed, wrong={field: said}, status=400)
    return redirect(f"{PATH}?saved=yes")


_FIELDS: Final = {
    "min_password_len": "Shortest password:",
    "session_ttl_seconds": "Length of a session:",
    "require_totp": "Second factor:",
    "allowed_email_domains": "Domains:",
}
_SAID: Final = {
    "encryption_key_missing": "No encryption key is configured, so nobody could set one up.",
}


def _given(typed: Mapping[str, str]) -> PutAuthPolicy:
    try:
        require = RequireTotp(typed["require_totp"])
    except ValueError:
        raise Refused("invalid", "require_totp", "must be one of those named") from None
    return PutAuthPolicy(
        min_password_len=_whole(typed, "min_password_len"),
        session_ttl_seconds=_whole(typed, "session_ttl_seconds"),
        require_totp=require,
        allowed_email_domains=typed["allowed_email_domains"].replace(",", " ").split(),
    )


def _whole(typed: Mapping[str, str], name: str) -> int:
    text = typed[name]
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise Refused("invalid", name, "must be a whole number")
    return int(text)


def _values(found: AuthPolicy) -> dict[str, str]:
    return {
        "min_password_len": str(found.min_password_len),
        "session_ttl_seconds": str(found.session_ttl_seconds),
        "require_totp": found.require_totp,
        "allowed_email_domains": "\n".join(found.allowed_email_domains),
    }


def _first(ask: Ask, name: str) -> str:
    return ask.form.get(name, [""])[0].strip()


def _page(
    found: AuthPolicy,
    values: Mapping[str, str],
    *,
    wrong: Mapping[str, str] | None = None,
    saved: bool = False,
    status: int = 200,
) -> Reply:
    return page(
        "sign_in_policy.html",
        status=status,
        path=PATH,
        found=found,
        values=values,
        wrong={**dict.fromkeys(_FIELDS, ""), **(wrong or {})},
        saved=saved,
        who=_WHO,
        now=_WHO[found.require_totp],
        length=setting(found.session_ttl_seconds),
        password_least=PASSWORD_LEAST,
        password_most=PASSWORD_MOST,
        ttl_least=TTL_LEAST,
        ttl_most=TTL_MOST,
    )


_ADMIN: Final = Action(Need.GLOBAL_ADMIN)

ROUTES: Final[tuple[Route, ...]] = (
    Route(
        method="GET",
        path=PATH,
        action=_ADMIN,
        handler=show,
        summary="How people sign in.",
        query=PolicyQuery,
        page=True,
        in_document=False,
    ),
    Route(
        method="POST",
        path=PATH,
        action=_ADMIN,
        handler=act,
        summary="Sets how people sign in.",
        form=True,
        page=True,
        in_document=False,
    ),
)
