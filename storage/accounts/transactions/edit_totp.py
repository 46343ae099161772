"""Second factor of a user: enrolment, activation, check at sign-in, and removal.

Invariant: a code is accepted once, also for concurrent requests. A wrong code is recorded although
the sign-in fails.
"""

import os
from typing import Final
from uuid import UUID

from ...core.refusal import Refused
from ...engine.keyring import CannotOpen, CipherContext, Keyring
from ...engine.pools import Tx
from ..queries import users as users_queries
from ..rows import INSTANCE, UserRow
from ..rules.access import Need, Permission, Principal
from ..rules.totp import (
    RECOVERY_BYTES,
    RECOVERY_CODES,
    SECRET_BYTES,
    TotpOutcome,
    matching_step,
    recovery_code,
    recovery_hash,
    tries_of,
)
from ..tables import totp_factors as second_factors
from ..tables import users
from ..tables.totp_factors import TotpRow
from .authorize import NOT_FOUND, audit, demand

TOTP_ENABLED: Final = "totp_enabled"
OWN: Final = Permission(Need.SESSION, enrolling=True)


async def enrol(tx: Tx, principal: Principal, keyring: Keyring) -> tuple[UserRow, bytes]:
    """Returns a new pending secret, which replaces an earlier pending one.

    Raises:
        Refused totp_enabled if a factor is enabled, encryption_key_missing.
    """
    user = await _own(tx, principal)
    row = await _held(tx, user)
    if row.totp_enabled_at is not None:
        raise Refused(TOTP_ENABLED)
    secret = os.urandom(SECRET_BYTES)
    await second_factors.enrol(tx, user.id, keyring.seal(secret, _place(user.uid)))
    return user, secret


async def enable(tx: Tx, principal: Principal, code: str, keyring: Keyring) -> list[str]:
    """Enables the pending factor and returns the recovery codes, which are shown once.

    Raises:
        Refused totp_enabled, invalid if no factor is pending or the code is wrong,
        encryption_key_missing.
    """
    user = await _own(tx, principal)
    row = await _held(tx, user)
    if row.totp_enabled_at is not None:
        raise Refused(TOTP_ENABLED)
    if row.totp_ciphertext is None:
        raise Refused("invalid", "code", "no enrolment is pending")
    step = matching_step(_secret(row, user.uid, keyring), code, tx.now, row.totp_step)
    if step is None:
        raise Refused("invalid", "code", "wrong code")
    codes = [recovery_code(os.urandom(RECOVERY_BYTES)) for _ in range(RECOVERY_CODES)]
    await second_factors.enable(tx, user.id, step, [recovery_hash(each) for each in codes])
    await audit(tx, principal, INSTANCE, "user.totp_enable", f"user:{user.uid}")
    return codes


async def disable(tx: Tx, principal: Principal, checked: UserRow) -> None:
    """Removes an enabled or pending factor.

    `checked` is the account whose password was verified.

    Raises:
        Refused revision_conflict if the password was changed concurrently.
    """
    user = await _own(tx, principal)
    row = await _held(tx, user)
    if row.password != checked.password:
        raise Refused("revision_conflict")
    await second_factors.delete_factor(tx, user.id)
    if row.totp_enabled_at is not None:
        await audit(tx, principal, INSTANCE, "user.totp_disable", f"user:{user.uid}")


async def remove_factor(tx: Tx, principal: Principal, email: str) -> None:
    """Removes a factor by order of the server's operator, after a loss of app and codes.

    Raises:
        Refused not_found.
    """
    user = await users_queries.select_user_by_email(tx, email)
    if user is None:
        raise Refused(NOT_FOUND, "email", "no account has this e-mail address")
    await second_factors.delete_factor(tx, user.id)
    await audit(tx, principal, INSTANCE, "user.totp_remove", f"user:{user.uid}")


async def pass_second_factor(
    tx: Tx, user: UserRow, code: str | None, keyring: Keyring
) -> TotpOutcome:
    """Returns the result of the second factor check.

    `user` is the account whose password was verified. An accepted code is used up and a wrong one
    is recorded, so the caller must commit in both cases.

    Raises:
        Refused encryption_key_missing.
    """
    row = await second_factors.lock_factor(tx, user.id)
    if row is None or row.password != user.password:
        return TotpOutcome.REFUSED
    if row.totp_enabled_at is None:
        return TotpOutcome.PASSED
    if not code:
        return TotpOutcome.REQUIRED
    tries = tries_of(row.totp_wrong_at)
    if tries.is_closed(tx.now):
        return TotpOutcome.REFUSED
    step = matching_step(_secret(row, user.uid, keyring), code, tx.now, row.totp_step)
    if step is not None:
        await second_factors.use_step(tx, user.id, step)
        return TotpOutcome.PASSED
    if await second_factors.spend_recovery_code(tx, user.id, recovery_hash(code)):
        await second_factors.record_wrong_code(tx, user.id, ())
        return TotpOutcome.PASSED
    await second_factors.record_wrong_code(tx, user.id, tries.after_wrong(tx.now).wrong_at)
    return TotpOutcome.REFUSED


def _place(user: UUID) -> CipherContext:
    return CipherContext("users", "totp_ciphertext", user)


def _secret(row: TotpRow, user: UUID, keyring: Keyring) -> bytes:
    """Returns the decrypted secret.

    An undecryptable secret is a failure of the server and never skips the check.

    Raises:
        Refused encryption_key_missing.
    """
    assert row.totp_ciphertext is not None, "one is enrolled"
    try:
        return keyring.open(row.totp_ciphertext, _place(user))
    except CannotOpen:
        raise Refused("encryption_key_missing") from None


async def _own(tx: Tx, principal: Principal) -> UserRow:
    demand(principal, OWN, None)
    assert isinstance(principal.user, UUID), "a session has a person"
    user = await users.select_user(tx, principal.user)
    if user is None:
        raise Refused(NOT_FOUND)
    return user


async def _held(tx: Tx, user: UserRow) -> TotpRow:
    row = await second_factors.lock_factor(tx, user.id)
    if row is None:
        raise Refused(NOT_FOUND)
    return row
