"""Second factors: columns of the user's row, and recovery codes."""

from collections.abc import Sequence
from typing import Final

import msgspec

from ...core.instant import Instant
from ...engine.pools import Tx

# Locked, so that a code that is sent twice concurrently is accepted once.
_HOLD: Final = """
select password, totp_ciphertext, totp_enabled_at, totp_step, totp_wrong_at
from users where id = %(user)s for no key update
"""
_ENROL: Final = """
update users set totp_ciphertext = %(sealed)s, totp_enabled_at = null, totp_step = 0,
  totp_wrong_at = '{}' where id = %(user)s
"""
_ENABLE: Final = """
update users set totp_enabled_at = at(%(now)s), totp_step = %(step)s where id = %(user)s
"""
_TAKE: Final = "update users set totp_step = %(step)s, totp_wrong_at = '{}' where id = %(user)s"
_NOTE_WRONG: Final = """
update users set totp_wrong_at = array(select at(us) from unnest(%(wrong_at)s::bigint[]) us)
where id = %(user)s
"""
_FORGET: Final = """
update users set totp_ciphertext = null, totp_enabled_at = null, totp_step = 0, totp_wrong_at = '{}'
where id = %(user)s
"""
_INSERT_CODES: Final = """
insert into recovery_codes (user_id, code_hash)
select %(user)s, hash from unnest(%(hashes)s::bytea[]) hash
"""
_SPEND_CODE: Final = """
delete from recovery_codes where user_id = %(user)s and code_hash = %(hash)s
"""
_DELETE_CODES: Final = "delete from recovery_codes where user_id = %(user)s"


class TotpRow(msgspec.Struct, frozen=True):
    """Second factor of an account. `password` is its current hash, read under the lock."""

    password: str | None
    totp_ciphertext: bytes | None
    totp_enabled_at: Instant | None
    totp_step: int
    totp_wrong_at: list[Instant]


async def lock_factor(tx: Tx, user: int) -> TotpRow | None:
    return await tx.one(TotpRow, _HOLD, user=user)


async def enrol(tx: Tx, user: int, sealed: bytes) -> None:
    await tx.execute(_ENROL, user=user, sealed=sealed)


async def enable(tx: Tx, user: int, step: int, recovery_hashes: Sequence[bytes]) -> None:
    await tx.execute(_ENABLE, user=user, step=step, now=tx.now)
    await tx.execute(_DELETE_CODES, user=user)
    await tx.execute(_INSERT_CODES, user=user, hashes=list(recovery_hashes))


async def use_step(tx: Tx, user: int, step: int) -> None:
    """Records an accepted code and clears the wrong ones."""
    await tx.execute(_TAKE, user=user, step=step)


async def spend_recovery_code(tx: Tx, user: int, code_hash: bytes) -> bool:
    """Deletes a recovery code. Returns whether it existed."""
    return bool(await tx.execute(_SPEND_CODE, user=user, hash=code_hash))


async def record_wrong_code(tx: Tx, user: int, wrong_at: Sequence[Instant]) -> None:
    await tx.execute(_NOTE_WRONG, user=user, wrong_at=list(wrong_at))


async def delete_factor(tx: Tx, user: int) -> None:
    await tx.execute(_FORGET, user=user)
    await tx.execute(_DELETE_CODES, user=user)
