"""Reads of totp factors."""

from typing import Final

from ...engine.pools import Tx

_IS_ENABLED: Final = "select totp_enabled_at is not null from users where id = %(user)s"


async def is_enabled(tx: Tx, user: int) -> bool:
    return bool(await tx.value(_IS_ENABLED, user=user))
