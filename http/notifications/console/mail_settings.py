"""Form of the mail server and of the base URL for links."""

from typing import Final

from ...ui.settings_form import Of, SettingField, SettingForm
from ...wire.route import Route
from ..routes import mail_settings as api
from ..schemas.mail import MailSettingsView, SetMailSettings

_ROWS: Final = (
    SettingField("enabled", "Send letters", Of.CHECK),
    SettingField("smtp_host", "Server", Of.TEXT, "Its name or address."),
    SettingField(
        "smtp_port",
        "Port",
        Of.NUMBER,
        "465: TLS before the first word; 587 or 25: TLS where it is offered, and always before a"
        " password.",
    ),
    SettingField(
        "smtp_username", "Account", Of.TEXT, "None where the server asks for no password."
    ),
    SettingField(
        "smtp_password",
        "Password",
        Of.SECRET,
        "blank keeps it, as long as server, port and account stay.",
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
        "Address of this installation",
        Of.TEXT,
        "As others reach it, such as https://up.example.com: links in letters and messages are made"
        " of it, and of nothing that a request says.",
    ),
)


def _says(found: MailSettingsView) -> str:
    if found.deliverable:
        return (
            f"Letters are sent by {found.smtp_host}, from {found.from_}, and lead to"
            f" {found.public_base_url}."
        )
    if not found.enabled:
        return "No letters are sent."
    if not found.public_base_url:
        return (
            "No letters with links are sent: this installation has no address that they could lead"
            " to."
        )
    return "No letters are sent: no key opens the password of the server."


ROUTES: Final[tuple[Route, ...]] = SettingForm(
    path="/admin/mail",
    title="Mail",
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
    after_save="The next letter goes that way.",
).routes()
