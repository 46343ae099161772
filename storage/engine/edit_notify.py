"""Notification of all processes about edits. Correctness does not depend on it, only latency."""

from typing import Final

from .pools import Tx

EDITED: Final = "leadline_edited"
_TELL: Final = "select pg_notify(%(channel)s, '')"


async def notify_edited(tx: Tx) -> None:
    await tx.execute(_TELL, channel=EDITED)
