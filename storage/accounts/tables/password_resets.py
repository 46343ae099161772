"""Requests of password resets, and the tokens that were sent."""

from typing import Final
from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rows import ResetRequestRow
from ..rules.password_reset import LEASE_US, TTL_US

# The same work for all addresses, so that timing reveals no account.
_ASK: Final = """
insert into reset_requests (address, due_at) values (lower(%(address)s), at(%(now)s))
on conflict (address) do nothing
"""
_LEASE: Final = """
update reset_requests set attempts = attempts + 1, due_at = at(%(until)s)
where address in (
  select address from reset_requests where due_at <= at(%(now)s)
  order by due_at limit %(most)s for update skip locked)
returning address, attempts
"""
_PUT_OFF: Final = "update reset_requests set due_at = at(%(at)s) where address = %(address)s"
_DROP_REQUEST: Final = "delete from reset_requests where address = %(address)s"
# Account with the instant of its last mail. An account that uses only single sign-on has no
# password to replace. One that never signed in gets its first password.
_RECIPIENT: Final = """
select u.id, u.uid, u.email, r.created_at from users u
  left join password_resets r on r.user_id = u.id
where lower(u.email) = %(address)s and u.email_verified and u.email <> ''
  and (u.password is not null or not exists (select from user_identities where user_id = u.id))
"""
_PUT: Final = """
insert into password_resets (user_id, token_hash, created_at, expires_at)
values (%(user)s, %(hash)s, at(%(now)s), at(%(expires)s))
on conflict (user_id) do update set token_hash = excluded.token_hash,
  created_at = excluded.created_at, expires_at = excluded.expires_at
"""
_IS_GOOD: Final = """
select exists (select from password_resets
  where token_hash = %(hash)s and expires_at > at(%(now)s))
"""
_SPEND: Final = """
delete from password_resets where token_hash = %(hash)s and expires_at > at(%(now)s)
returning user_id
"""
_FORGET: Final = "delete from password_resets where user_id = %(user)s"
_DROP_EXPIRED: Final = "delete from password_resets where expires_at <= at(%(now)s)"


class Recipient(msgspec.Struct, frozen=True):
    """Recipient of a reset mail. `written_at` is the instant of its unused token."""

    id: int
    uid: UUID
    email: str
    written_at: Instant | None


async def ask_for_reset(tx: Tx, address: str) -> None:
    await tx.execute(_ASK, address=address, now=tx.now)


async def lease_requests(tx: Tx, most: int) -> list[ResetRequestRow]:
    return await tx.structs(ResetRequestRow, _LEASE, now=tx.now, until=tx.now + LEASE_US, most=most)


async def postpone_request(tx: Tx, address: str, at: Instant) -> None:
    await tx.execute(_PUT_OFF, address=address, at=at)


async def delete_request(tx: Tx, address: str) -> None:
    await tx.execute(_DROP_REQUEST, address=address)


async def select_recipient(tx: Tx, address: str) -> Recipient | None:
    return await tx.one(Recipient, _RECIPIENT, address=address)


async def put_reset(tx: Tx, user: int, token_hash: bytes) -> None:
    """Writes the token of an account and replaces an earlier one."""
    await tx.execute(_PUT, user=user, hash=token_hash, now=tx.now, expires=tx.now + TTL_US)


async def is_good(tx: Tx, token_hash: bytes) -> bool:
    return bool(await tx.value(_IS_GOOD, hash=token_hash, now=tx.now))


async def spend_reset(tx: Tx, token_hash: bytes) -> int | None:
    """Deletes a valid token and returns its account, None if it is expired or already used."""
    user: int | None = await tx.value(_SPEND, hash=token_hash, now=tx.now)
    return user


async def delete_reset(tx: Tx, user: int) -> None:
    await tx.execute(_FORGET, user=user)


async def purge_expired_resets(tx: Tx) -> int:
    return await tx.execute(_DROP_EXPIRED, now=tx.now)
