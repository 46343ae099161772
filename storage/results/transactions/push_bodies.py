"""Encryption of the bodies of pushes."""

from uuid import UUID

from uuid_utils.compat import uuid7

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...engine.keyring import CannotOpen, CipherContext, Keyring
from ...engine.pools import Tx
from ..queries.push_targets import PushTarget
from ..rows import PushBodyRow
from ..rules.push_body import kept_part
from ..rules.push_request import Push
from ..tables.push_bodies import insert_push_body


async def keep_body(
    tx: Tx, target: PushTarget, said: Push, body: bytes, at: Instant, keyring: Keyring
) -> None:
    """Stores the beginning of a body. The keyring must have a key."""
    uid, kept = uuid7(), kept_part(body)
    sealed = keyring.seal(kept, _place(uid))
    up = said.up if said.covers else None
    row = PushBodyRow(uid, at, said.mark, up, said.run, len(kept) < len(body), sealed)
    await insert_push_body(tx, MonitorKey((target.org, target.monitor)), row)


def open_body(row: PushBodyRow, keyring: Keyring) -> str | None:
    """Returns the text of a stored body, None if no key of the ring opens it."""
    try:
        return keyring.open(row.body_ciphertext, _place(row.uid)).decode(errors="replace")
    except CannotOpen:
        return None


def _place(uid: UUID) -> CipherContext:
    return CipherContext("push_bodies", "body_ciphertext", uid)
