"""Form of the sign-in policy."""

from typing import Final

from ....storage.accounts.rules.auth_policy import (
    PASSWORD_LEAST,
    PASSWORD_MOST,
    TTL_LEAST,
    TTL_MOST,
    RequireTotp,
)
from ...ui.formatting import setting
from ...ui.settings_form import Of, SettingField, SettingForm
from ...wire.route import Route
from ..routes import auth_policy as api
from ..schemas.settings import AuthPolicy, PutAuthPolicy

_WHO: Final = {
    RequireTotp.NONE: "nobody has to have one",
    RequireTotp.ADMINS: "global admins and organization admins",
    RequireTotp.ALL: "everybody who signs in with a password",
}
_ROWS: Final = (
    SettingField(
        "require_totp",
        "Second factor",
        Of.CHOICE,
        "Who has to have one and has none reaches nothing but the page where it is set up, from the"
        " next click on.",
        choices=tuple((word.value, f"{word.value}: {who}") for word, who in _WHO.items()),
    ),
    SettingField(
        "min_password_len",
        "Shortest password",
        Of.NUMBER,
        f"{PASSWORD_LEAST} to {PASSWORD_MOST} characters, of passwords that are set from now on.",
    ),
    SettingField(
        "session_ttl_seconds",
        "A session lasts",
        Of.NUMBER,
        f"{TTL_LEAST} to {TTL_MOST} seconds; those that are there keep their end.",
    ),
    SettingField(
        "allowed_email_domains",
        "Domains",
        Of.WORDS,
        "Of the addresses that new accounts may have, one a line; none: any.",
    ),
)


def _summary(found: AuthPolicy) -> str:
    lasts = setting(found.session_ttl_seconds)
    return f"A second factor: {_WHO[found.require_totp]}. A session lasts {lasts}."


ROUTES: Final[tuple[Route, ...]] = SettingForm(
    path="/admin/sign-in-policy",
    title="How people sign in",
    rows=_ROWS,
    read=api.read,
    put=api.put,
    body=PutAuthPolicy,
    says=_summary,
    otherwise={
        "encryption_key_missing": (
            "require_totp",
            "No encryption key is configured, so nobody could set one up.",
        )
    },
).routes()
