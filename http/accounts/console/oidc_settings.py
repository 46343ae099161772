"""Form of the OIDC settings."""

from typing import Final

from ...ui.settings_form import Of, SettingField, SettingForm
from ...wire.route import Route
from ..routes import oidc_settings as api
from ..schemas.settings import OIDCSettingsView, SetOIDCSettings

_ROWS: Final = (
    SettingField("enabled", "People sign in there", Of.CHECK),
    SettingField(
        "issuer",
        "Issuer",
        Of.TEXT,
        "An https URL, as the provider names itself. It is asked before anything is kept.",
    ),
    SettingField("client_id", "Client", Of.TEXT, "As it is registered there."),
    SettingField(
        "client_secret",
        "Secret",
        Of.SECRET,
        "blank keeps it, as long as issuer and client stay.",
        is_stored=lambda found: bool(found.client_secret_set),
    ),
    SettingField(
        "redirect_url",
        "Comes back to",
        Of.TEXT,
        "Register this there. Blank: made of the address of this installation.",
    ),
    SettingField("scopes", "Scopes", Of.WORD_LINE, "openid, and what tells address and name."),
    SettingField(
        "post_logout_url",
        "After a sign-out",
        Of.TEXT,
        "Where the provider leads back to; blank where it stays there.",
    ),
    SettingField("button_label", "Button", Of.TEXT, "What the button of the sign-in page says."),
    SettingField(
        "bootstrap_admins",
        "Administrators",
        Of.WORDS,
        "Addresses of who is a global admin from the next sign-in on, one a line; the provider must"
        " say that they are verified.",
    ),
)


def _says(found: OIDCSettingsView) -> str:
    if found.active:
        return f"People can sign in at {found.issuer}."
    if found.enabled:
        return (
            f"Nobody can sign in this way now: {found.issuer} does not answer"
            f" ({found.reload_error})."
        )
    return "It is off."


ROUTES: Final[tuple[Route, ...]] = SettingForm(
    path="/admin/single-sign-on",
    title="Single sign-on",
    rows=_ROWS,
    read=api.read,
    put=api.put,
    body=SetOIDCSettings,
    says=_says,
    otherwise={
        "encryption_key_missing": (
            "client_secret",
            "No encryption key is configured, so none can be kept.",
        )
    },
    unset="As it is configured",
).routes()
