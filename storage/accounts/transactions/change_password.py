"""A new password ends every other session, and the letter for another: whoever knew the old one is
shown out."""

from ...core.refusal import Refused
from ...engine.pools import Tx
from ..rows import INSTANCE, UserRow
from ..rules.access import Need, Permission, Principal
from ..tables import sessions, users
from ..tables.password_resets import delete_reset
from .authorize import audit, demand

CHANGE_PASSWORD = Permission(Need.SESSION)


async def change_password(
    tx: Tx, principal: Principal, user: UserRow, password: str, keep: bytes
) -> None:
    """`password` is hashed already, `user` the account as the old one was checked against, `keep`
    the digest of the session that stays. Refused revision_conflict where another was faster."""
    demand(principal, CHANGE_PASSWORD, None)
    now = await users.select_user_by_id(tx, user.id)
    if now is None or now.password != user.password:
        raise Refused("revision_conflict")
    await users.set_password(tx, user.id, password)
    await delete_reset(tx, user.id)
    await sessions.delete_other_sessions(tx, user.id, keep)
    await audit(tx, principal, INSTANCE, "user.password", f"user:{user.uid}")
