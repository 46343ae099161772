"""Password reset by mail for the owner of an account's address.

The response to a request is the same for all addresses. The account is looked up later by the
process that sends the mail.
"""

import os

from ...core.refusal import Refused
from ...core.token import RANDOM_BYTES, TokenKind, digest, kind_of, token_from
from ...engine.pools import Tx
from ..rows import INSTANCE, ResetRequestRow
from ..rules.access import CredentialKind, Principal
from ..rules.password_reset import is_passed_over
from ..tables import password_resets, sessions, users
from ..tables import password_resets as password_resets_table
from ..tables.password_resets import Recipient
from .authorize import audit

NOT_GOOD = "is not good any more, or never was"


async def begin_reset(tx: Tx, request: ResetRequestRow) -> tuple[Recipient, str] | None:
    """Returns the recipient and token of the mail, None if no mail is due.

    In the latter case the request is deleted.
    """
    found = await password_resets.select_recipient(tx, request.address)
    if found is None or is_passed_over(request.attempts, found.written_at, tx.now):
        await password_resets.delete_request(tx, request.address)
        return None
    token = token_from(TokenKind.RESET, os.urandom(RANDOM_BYTES))
    await password_resets.put_reset(tx, found.id, digest(token))
    return found, token


async def expect_good(tx: Tx, token: str) -> None:
    """Checks a token before a password is hashed.

    Raises:
        Refused invalid.
    """
    if kind_of(token) is not TokenKind.RESET or not await password_resets.is_good(
        tx, digest(token)
    ):
        raise Refused("invalid", "token", NOT_GOOD)


async def finish_reset(tx: Tx, token: str, password: str) -> None:
    """Replaces the password and ends all sessions. The second factor remains.

    `password` is a hash.

    Raises:
        Refused invalid.
    """
    key = await password_resets.spend_reset(tx, digest(token))
    user = None if key is None else await users.select_user_by_id(tx, key)
    if user is None:
        raise Refused("invalid", "token", NOT_GOOD)
    await users.set_password(tx, user.id, password)
    await sessions.delete_other_sessions(tx, user.id, b"")
    label = user.display_name or user.email
    by = Principal(CredentialKind.SESSION, user=user.uid, label=label, uid=user.uid)
    await audit(tx, by, INSTANCE, "user.reset_by_mail", f"user:{user.uid}")


async def ask_for_reset(tx: Tx, address: str) -> None:
    await password_resets_table.ask_for_reset(tx, address)
