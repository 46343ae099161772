"""Form of the secrets with which chat services answer by buttons."""

from typing import Final

from markupsafe import Markup

from ....storage.notifications.transactions.put_answer_secrets import EDIT
from ...ui.shell.settings_form import Of, SettingField, SettingForm
from ...wire.route import Route
from ..routes import answer_secrets as api
from ..schemas.gateway import AnswerButtonsView, SetAnswerButtons

_ROWS: Final = (
    SettingField(
        "slack_signing_secret",
        "Signing secret of the Slack app",
        Of.SECRET,
        "Of the app whose bot or webhook sends the messages. Leave blank to keep it.",
        is_stored=lambda found: bool(found.slack_set),
    ),
    SettingField(
        "telegram_secret",
        "Secret token of the Telegram webhook",
        Of.SECRET,
        "16 to 256 letters, digits, dashes and underscores. Leave blank to keep it.",
        is_stored=lambda found: bool(found.telegram_set),
    ),
)


def _says(found: AnswerButtonsView) -> str:
    slack = "on" if found.slack_set else "off"
    telegram = "on" if found.telegram_set else "off"
    return Markup(
        "Buttons of Slack are {}; the interactivity URL of the app is <code>{}</code>."
        " Buttons of Telegram are {}; the URL of the webhook is <code>{}</code>."
        " ntfy, Mattermost and calls of Twilio need no secret here."
    ).format(slack, found.slack_url, telegram, found.telegram_url)


ROUTES: Final[tuple[Route, ...]] = SettingForm(
    path="/admin/answer-buttons",
    title="Answers by buttons",
    section="buttons",
    rows=_ROWS,
    read=api.read,
    put=api.put,
    body=SetAnswerButtons,
    action=EDIT,
    says=_says,
    otherwise={
        "encryption_key_missing": (
            "slack_signing_secret",
            "Secrets need security.encryption_key.",
        )
    },
    unset="No secret is stored",
    after_save="Applies to the next message.",
).routes()
