"""Identities of accounts at single sign-on providers, and sign-ons in progress."""

from typing import Final

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rows import FLOW_US, FlowRow

_FIND: Final = """
select user_id from user_identities where issuer = %(issuer)s and subject = %(subject)s
"""
_INSERT: Final = """
insert into user_identities (issuer, subject, user_id, created_at)
values (%(issuer)s, %(subject)s, %(user)s, at(%(now)s))
on conflict do nothing returning user_id
"""
_BEGIN: Final = """
insert into sign_on_flows (state_hash, browser_hash, issuer, nonce, verifier, redirect, link_user,
  expires_at)
values (%(state)s, %(browser)s, %(issuer)s, %(nonce)s, %(verifier)s, %(redirect)s, %(link_user)s,
  at(%(expires)s))
"""
# Another browser cannot use up the flow with the state alone.
_TAKE: Final = """
delete from sign_on_flows
where state_hash = %(state)s and browser_hash = %(browser)s and expires_at > at(%(now)s)
returning issuer, nonce, verifier, redirect, link_user
"""
_DROP: Final = "delete from sign_on_flows where expires_at <= at(%(now)s)"


async def select_identity(tx: Tx, issuer: str, subject: str) -> int | None:
    """Returns the account of an identity."""
    user: int | None = await tx.value(_FIND, issuer=issuer, subject=subject)
    return user


async def insert_identity(tx: Tx, issuer: str, subject: str, user: int) -> bool:
    """Returns False if the identity belongs to an account."""
    row = await tx.value(_INSERT, issuer=issuer, subject=subject, user=user, now=tx.now)
    return row is not None


async def begin_flow(
    tx: Tx,
    state_hash: bytes,
    browser_hash: bytes,
    flow: FlowRow,
) -> None:
    expires: Instant = Instant(tx.now + FLOW_US)
    await tx.execute(
        _BEGIN,
        state=state_hash,
        browser=browser_hash,
        issuer=flow.issuer,
        nonce=flow.nonce,
        verifier=flow.verifier,
        redirect=flow.redirect,
        link_user=flow.link_user,
        expires=expires,
    )


async def pop_flow(tx: Tx, state_hash: bytes, browser_hash: bytes) -> FlowRow | None:
    """Deletes a flow and returns it, None if unknown, expired or of another browser."""
    return await tx.one(FlowRow, _TAKE, state=state_hash, browser=browser_hash, now=tx.now)


async def purge_expired_flows(tx: Tx) -> int:
    return await tx.execute(_DROP, now=tx.now)
