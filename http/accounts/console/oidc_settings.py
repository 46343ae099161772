"""Form of the OIDC settings."""

from typing import Final

from ....storage.accounts.transactions.put_oidc import EDIT
from ...ui.shell.settings_form import Of, SettingField, SettingForm
from ...wire.route import Route
from ..routes import oidc_settings as api
from ..schemas.settings import OIDCSettingsView, SetOIDCSettings

_ROWS: Final = (
    SettingField("enabled", "Enabled", Of.CHECK),
    SettingField(
        "issuer",
        "Issuer",
        Of.TEXT,
        "The https issuer URL of the provider. Checked before saving.",
    ),
    SettingField("client_id", "Client ID", Of.TEXT, "As registered at the provider."),
    SettingField(
        "client_secret",
        "Secret",
        Of.SECRET,
        "Leave blank to keep it while issuer and client ID are unchanged.",
        is_stored=lambda found: bool(found.client_secret_set),
    ),
    SettingField(
        "redirect_url",
        "Redirect URL",
        Of.TEXT,
        "Register this URL at the provider. Default: derived from the address of this"
        " installation.",
    ),
    SettingField(
        "scopes",
        "Scopes",
        Of.WORD_LINE,
        "Separated by spaces. Must contain openid; add email and profile for e-mail and name.",
    ),
    SettingField(
        "post_logout_url",
        "Post-logout URL",
        Of.TEXT,
        "The provider redirects to this URL after sign-out. Optional.",
    ),
    SettingField("button_label", "Button", Of.TEXT, "Text of the button on the sign-in screen."),
    SettingField(
        "bootstrap_admins",
        "Administrators",
        Of.WORDS,
        "E-mails granted global admin at next sign-in, one per line. The provider must report"
        " them as verified.",
    ),
)


def _says(found: OIDCSettingsView) -> str:
    if found.redirect_url_fault:
        return (
            f"The stored redirect URL is ignored: it {found.redirect_url_fault}. Sign-in uses that"
            " of the configuration file."
        )
    if found.active:
        return f"Users can sign in at {found.issuer}."
    if found.enabled:
        return (
            f"Single sign-on is unavailable: {found.issuer} does not respond"
            f" ({found.reload_error})."
        )
    return "Single sign-on is disabled."


ROUTES: Final[tuple[Route, ...]] = SettingForm(
    path="/admin/single-sign-on",
    title="Single sign-on",
    section="sso",
    rows=_ROWS,
    read=api.read,
    put=api.put,
    body=SetOIDCSettings,
    action=EDIT,
    says=_says,
    otherwise={
        "encryption_key_missing": (
            "client_secret",
            "Secrets need security.encryption_key.",
        )
    },
    unset="From the configuration file",
).routes()
