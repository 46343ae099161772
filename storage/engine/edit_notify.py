"""Notifications of all processes. Correctness does not depend on them, only latency."""

from typing import Final

from .pools import Tx

EDITED: Final = "leadline_edited"
# Triggers of the tables announce work on it, with its kind as the payload.
WORK: Final = "leadline_work"
# Payload for work that is due later: the receiver reads its instant.
AGAIN: Final = ""
_TELL: Final = "select pg_notify(%(channel)s, %(payload)s)"


async def notify_edited(tx: Tx) -> None:
    await tx.execute(_TELL, channel=EDITED, payload="")


async def notify_work(tx: Tx, work: str) -> None:
    """Announces work that no trigger announces."""
    await tx.execute(_TELL, channel=WORK, payload=work)
