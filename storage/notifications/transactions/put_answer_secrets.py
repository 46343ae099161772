"""Secrets of the buttons of chat services, set by global admins and write-only."""

import re
from typing import Final

import msgspec

from ...accounts.rows import INSTANCE
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import audit, demand
from ...accounts.transactions.write_setting import write_setting
from ...core.refusal import Refused
from ...engine.keyring import Keyring
from ...engine.pools import Tx
from ..queries.answer_secrets import NAME, AnswerSecrets, select_answer_secrets

EDIT: Final = Permission(Need.GLOBAL_ADMIN)
# Telegram allows these characters and at most 256 of them.
_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{16,256}")


async def put_answer_secrets(
    tx: Tx, principal: Principal, slack: str | None, telegram: str | None, keyring: Keyring
) -> AnswerSecrets:
    """Stores the secrets. None keeps the stored one, and an empty text removes it.

    Raises: Refused forbidden, encryption_key_missing, invalid with its field.
    """
    demand(principal, EDIT, None)
    before = await select_answer_secrets(tx, keyring)
    for field, text in (("slack_signing_secret", slack), ("telegram_secret", telegram)):
        if text and not _SECRET.fullmatch(text):
            raise Refused(
                "invalid", field, "must be 16 to 256 letters, digits, dashes and underscores"
            )
    after = AnswerSecrets(
        slack_signing_secret=before.slack_signing_secret if slack is None else slack,
        telegram_secret=before.telegram_secret if telegram is None else telegram,
    )
    secret = "" if after == AnswerSecrets() else msgspec.json.encode(after).decode()
    if await write_setting(tx, NAME, "{}", secret, keyring):
        named = [name for name, set_ in _set_of(after) if set_]
        target = f"settings:answer_buttons services={','.join(named) or 'none'}"
        await audit(tx, principal, INSTANCE, "settings.answer_buttons", target)
    return after


def _set_of(secrets: AnswerSecrets) -> tuple[tuple[str, bool], ...]:
    return (
        ("slack", bool(secrets.slack_signing_secret)),
        ("telegram", bool(secrets.telegram_secret)),
    )
