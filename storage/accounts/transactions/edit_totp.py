"""A person's second factor: enrolled, enabled by a first code, asked for at sign-in, given up.

It keeps true: what was given once passes once, whoever else gives it at the same moment; a wrong
code is remembered also though nothing else comes of it.
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
    """A new secret, pending; one that was pending is gone. Refused totp_enabled where one is
    enabled, encryption_key_missing."""
    user = await _own(tx, principal)
    row = await _held(tx, user)
    if row.totp_enabled_at is not None:
        raise Refused(TOTP_ENABLED)
    secret = os.urandom(SECRET_BYTES)
    await second_factors.enrol(tx, user.id, keyring.seal(secret, _place(user.uid)))
    return user, secret


async def enable(tx: Tx, principal: Principal, code: str, keyring: Keyring) -> list[str]:
    """The recovery codes, told once. Refused totp_enabled, and invalid where nothing is pending or
    the code is not of it."""
    user = await _own(tx, principal)
    row = await _held(tx, user)
    if row.totp_enabled_at is not None:
        raise Refused(TOTP_ENABLED)
    if row.totp_ciphertext is None:
        raise Refused("invalid", "code", "there is no enrolment that it could confirm")
    step = matching_step(_secret(row, user.uid, keyring), code, tx.now, row.totp_step)
    if step is None:
        raise Refused("invalid", "code", "is not what the generator shows now")
    codes = [recovery_code(os.urandom(RECOVERY_BYTES)) for _ in range(RECOVERY_CODES)]
    await second_factors.enable(tx, user.id, step, [recovery_hash(each) for each in codes])
    await audit(tx, principal, INSTANCE, "user.totp_enable", f"user:{user.uid}")
    return codes


async def disable(tx: Tx, principal: Principal, checked: UserRow) -> None:
    """`checked` is the account as its password was checked against. What is pending goes too.
    Refused revision_conflict where the password is another by now."""
    user = await _own(tx, principal)
    row = await _held(tx, user)
    if row.password != checked.password:
        raise Refused("revision_conflict")
    await second_factors.delete_factor(tx, user.id)
    if row.totp_enabled_at is not None:
        await audit(tx, principal, INSTANCE, "user.totp_disable", f"user:{user.uid}")


async def remove_factor(tx: Tx, principal: Principal, email: str) -> None:
    """By whoever runs the machine, for who lost generator and codes. Refused not_found."""
    user = await users_queries.select_user_by_email(tx, email)
    if user is None:
        raise Refused(NOT_FOUND, "email", "nobody here has this address")
    await second_factors.delete_factor(tx, user.id)
    await audit(tx, principal, INSTANCE, "user.totp_remove", f"user:{user.uid}")


async def pass_second_factor(
    tx: Tx, user: UserRow, code: str | None, keyring: Keyring
) -> TotpOutcome:
    """Whether who knows the password may come in; `user` is the account as that was checked
    against. It takes the code, or remembers that it was wrong: commit it either way."""
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
    """Refused encryption_key_missing where no key of the ring opens it: that is our trouble, and
    never a way past it."""
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
