"""Tells every process that somebody edited something. It only hastens: nothing depends on it."""

from typing import Final

from .pools import Tx

EDITED: Final = "leadline_edited"
_TELL: Final = "select pg_notify(%(channel)s, '')"


async def notify_edited(tx: Tx) -> None:
    await tx.execute(_TELL, channel=EDITED)
