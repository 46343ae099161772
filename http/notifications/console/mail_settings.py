"""Form of the mail server and of the base URL for links."""

from typing import Final

from ...ui.settings_form import Of, SettingField, SettingForm
from ...wire.route import Route
from ..routes import mail_settings as api
from ..schemas.mail import MailSettingsView, SetMailSettings

_ROWS: Final = (
    SettingField("enabled", "Enable e-mail", Of.CHECK),
    SettingField("smtp_host", "Server", Of.TEXT, "Host name or IP address."),
    SettingField(
        "smtp_port",
        "Port",
        Of.NUMBER,
        "465: implicit TLS; 587, 25: STARTTLS, required with a password.",
    ),
    SettingField(
        "smtp_username", "User name", Of.TEXT, "Empty if the server needs no authentication."
    ),
    SettingField(
        "smtp_password",
        "Password",
        Of.SECRET,
        "Leave blank to keep it while server, port and user name are unchanged.",
        is_stored=lambda found: bool(found.smtp_password_set),
    ),
    SettingField(
        "from",
        "From",
        Of.TEXT,
        "An address, or a name and the address: Leadline <up@example.com>",
    ),
    SettingField(
        "public_base_url",
        "Base URL of this installation",
        Of.TEXT,
        "Public URL, such as https://up.example.com. Used for links in e-mails and messages.",
    ),
)


def _says(found: MailSettingsView) -> str:
    if found.deliverable:
        return (
            f"E-mails are sent by {found.smtp_host}, from {found.from_}, with links to"
            f" {found.public_base_url}."
        )
    if not found.enabled:
        return "E-mail is off."
    if not found.public_base_url:
        return "E-mails with links are off: set the base URL of this installation."
    return "E-mail is off: the stored password cannot be decrypted."


ROUTES: Final[tuple[Route, ...]] = SettingForm(
    path="/admin/mail",
    title="E-mail server",
    rows=_ROWS,
    read=api.read,
    put=api.put,
    body=SetMailSettings,
    says=_says,
    otherwise={
        "encryption_key_missing": (
            "smtp_password",
            "Secrets need security.encryption_key.",
        )
    },
    unset="From the configuration file",
    after_save="Applies to the next e-mail.",
).routes()
