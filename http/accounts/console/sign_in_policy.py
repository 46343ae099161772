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
    RequireTotp.NONE: "not required",
    RequireTotp.ADMINS: "global admins and organization admins",
    RequireTotp.ALL: "all users who sign in with a password",
}
_ROWS: Final = (
    SettingField(
        "require_totp",
        "Two-factor",
        Of.CHOICE,
        "Users without two-factor must set it up first.",
        choices=tuple((word.value, f"{word.value}: {who}") for word, who in _WHO.items()),
    ),
    SettingField(
        "min_password_len",
        "Minimum password length",
        Of.NUMBER,
        f"{PASSWORD_LEAST} to {PASSWORD_MOST} characters, for new passwords.",
    ),
    SettingField(
        "session_ttl_seconds",
        "Session lifetime",
        Of.NUMBER,
        f"{TTL_LEAST} to {TTL_MOST} s. Existing sessions keep their end.",
    ),
    SettingField(
        "allowed_email_domains",
        "Domains",
        Of.WORDS,
        "E-mail domains for new users, one per line. Empty allows all domains.",
    ),
)


def _summary(found: AuthPolicy) -> str:
    lasts = setting(found.session_ttl_seconds)
    return f"Two-factor: {_WHO[found.require_totp]}. Session lifetime: {lasts}."


ROUTES: Final[tuple[Route, ...]] = SettingForm(
    path="/admin/sign-in-policy",
    title="Sign-in policy",
    rows=_ROWS,
    read=api.read,
    put=api.put,
    body=PutAuthPolicy,
    says=_summary,
    otherwise={
        "encryption_key_missing": (
            "require_totp",
            "Two-factor needs security.encryption_key.",
        )
    },
).routes()
