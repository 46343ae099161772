"""Re-encryption of all values under the current key, in batches during operation.

A value that no key of the ring decrypts stays unchanged and is reported. It can be decrypted again
when its key is restored.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ...engine.keyring import CannotOpen, CipherContext, Keyring
from ...engine.pools import Tx
from ..tables.encrypted_columns import SEALED_COLUMNS, Column, lock_sealed, update_sealed

ROWS_AT_ONCE: Final = 100
_FIRST: Final = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Position:
    """Progress over the columns. The start is `Position()`."""

    column: int = 0
    after: UUID = _FIRST


@dataclass(frozen=True, slots=True)
class Pass:
    """Result of one pass. `goes_on` is None at the end; `unopened` names rows."""

    seen: int
    resealed: int
    unopened: tuple[CipherContext, ...]
    goes_on: Position | None


async def reencrypt_all(tx: Tx, keyring: Keyring, position: Position) -> Pass:
    """Re-encrypts up to ROWS_AT_ONCE rows of one column.

    Raises:
        Refused encryption_key_missing.
    """
    column = SEALED_COLUMNS[position.column]
    rows = await lock_sealed(tx, column, position.after, ROWS_AT_ONCE)
    resealed: dict[UUID, bytes] = {}
    unopened = []
    for place, value in _old(column, rows, keyring):
        try:
            resealed[place.row] = keyring.seal(keyring.open(value, place), place)
        except CannotOpen:
            unopened.append(place)
    if resealed:
        await update_sealed(tx, column, resealed)
    return Pass(len(rows), len(resealed), tuple(unopened), _next(position, rows))


def _old(
    column: Column, rows: list[tuple[UUID, bytes]], keyring: Keyring
) -> Iterator[tuple[CipherContext, bytes]]:
    for uid, value in rows:
        if not keyring.is_current(value):
            yield CipherContext(column.table, column.name, uid), value


def _next(position: Position, rows: list[tuple[UUID, bytes]]) -> Position | None:
    if len(rows) == ROWS_AT_ONCE:
        return Position(position.column, rows[-1][0])
    if position.column + 1 < len(SEALED_COLUMNS):
        return Position(position.column + 1)
    return None
