"""Form of the sign-in policy."""

from typing import Final

from ....storage.accounts.queries.own_account import select_own_user
from ....storage.accounts.queries.totp_factors import is_enabled
from ....storage.accounts.rules.auth_policy import (
    PASSWORD_LEAST,
    PASSWORD_MOST,
    TTL_LEAST,
    TTL_MOST,
    RequireTotp,
    owes_second_factor,
)
from ....storage.accounts.transactions.put_auth_policy import EDIT
from ...ui.formatting import setting
from ...ui.shell.settings_form import Of, SettingField, SettingForm
from ...wire.route import Request, Route
from ..routes import auth_policy as api
from ..schemas.settings import AuthPolicy, PutAuthPolicy

_WHO: Final = {
    RequireTotp.NONE: "not required",
    RequireTotp.ADMINS: "global admins and organization admins",
    RequireTotp.ALL: "all users who sign in with a password",
}
NO_FACTOR: Final = (
    "Your account has no two-factor authentication. After the save you can open only your profile, "
    "until you set it up."
)
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


async def _consequence(ask: Request) -> str:
    """Returns what happens to the user if the policy requires a second factor that is missing."""
    if not ask.context.keyring.can_seal:
        # The policy is refused.
        return ""
    async with ask.context.pool.transaction("console_own_factor", read_only=True) as tx:
        user = await select_own_user(tx, ask.who)
        if user is None:
            return ""
        has_factor = await is_enabled(tx, user.id)
    owes = owes_second_factor(
        ask.body.require_totp,
        is_admin=True,
        has_password=user.password is not None,
        has_factor=has_factor,
    )
    return NO_FACTOR if owes else ""


ROUTES: Final[tuple[Route, ...]] = SettingForm(
    path="/admin/sign-in-policy",
    title="Sign-in policy",
    section="policy",
    rows=_ROWS,
    read=api.read,
    put=api.put,
    body=PutAuthPolicy,
    action=EDIT,
    says=_summary,
    consequence=_consequence,
    otherwise={
        "encryption_key_missing": (
            "require_totp",
            "Two-factor needs security.encryption_key.",
        )
    },
).routes()
