"""Secrets of the installation by which chat services prove that they present a button."""

from typing import Final

import msgspec

from ...accounts.tables.instance_settings import select_whole_setting
from ...engine.keyring import CannotOpen, Keyring
from ...engine.pools import Tx
from .mail_settings import place_of

NAME: Final = "answer_secrets"


class AnswerSecrets(msgspec.Struct, frozen=True, kw_only=True):
    """Signing secret of the Slack app, and secret of the Telegram webhook; or empty."""

    slack_signing_secret: str = ""
    telegram_secret: str = ""

    def __repr__(self) -> str:
        return "AnswerSecrets()"


async def select_answer_secrets(tx: Tx, keyring: Keyring) -> AnswerSecrets:
    """Returns the secrets, empty ones if none are stored or no key decrypts them."""
    row = await select_whole_setting(tx, NAME)
    if row is None or row.secret_ciphertext is None:
        return AnswerSecrets()
    try:
        text = keyring.open(row.secret_ciphertext, place_of(row))
    except CannotOpen:
        return AnswerSecrets()
    return msgspec.json.decode(text, type=AnswerSecrets)
