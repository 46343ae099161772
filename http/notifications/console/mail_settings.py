"""Form of the mail server and of the base URL for links, with a test message."""

from typing import Final

from uuid_utils.compat import uuid7

from ....probes.senders.send_result import NotDelivered
from ....probes.senders.subscriber_mail import SubscriberMail, send_letter
from ....storage.accounts.queries.own_account import select_own_user
from ....storage.notifications.transactions.put_mail import EDIT
from ...ui.shell.settings_form import Of, SettingField, SettingForm, TestResult
from ...wire.mail_config import mailing_in
from ...wire.route import Request, Route
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
    if found.public_base_url_fault:
        return (
            f"The stored base URL is ignored: it {found.public_base_url_fault}. Links have that of"
            " the configuration file."
        )
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


async def _test(ask: Request) -> TestResult:
    """Sends one message to the address of the signed-in user. It makes one attempt."""
    context = ask.context
    async with context.pool.transaction("console_test_mail", read_only=True) as tx:
        user = await select_own_user(tx, ask.who)
        mailing = await mailing_in(tx, context)
    if user is None or not user.email:
        return TestResult(ok=False, text="The test was not sent: your account has no address.")
    if not mailing.can_mail:
        return TestResult(ok=False, text=f"The test was not sent. {_says(await api.read(ask))}")
    letter = SubscriberMail(
        uid=str(uuid7()),
        to=user.email,
        subject="Test of the Leadline mail server",
        paragraphs=("This installation can send e-mail.",),
        link=mailing.base_url,
        link_text="Open Leadline",
    )
    async with context.test_permits:
        try:
            await send_letter(letter, mailing.means)
        except NotDelivered as why:
            return TestResult(ok=False, text=f"The test to {user.email} failed: {why.reason}.")
    return TestResult(ok=True, text=f"The mail server accepted the test to {user.email}.")


ROUTES: Final[tuple[Route, ...]] = SettingForm(
    path="/admin/mail",
    title="Mail server",
    section="mail",
    rows=_ROWS,
    read=api.read,
    put=api.put,
    body=SetMailSettings,
    action=EDIT,
    says=_says,
    otherwise={
        "encryption_key_missing": (
            "smtp_password",
            "Secrets need security.encryption_key.",
        )
    },
    unset="From the configuration file",
    after_save="Applies to the next e-mail.",
    test=_test,
    test_label="Send test message",
    test_about="Sends one message to your own address with the saved settings.",
).routes()
