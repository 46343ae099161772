"""Change of a password. Ends the other sessions and any reset token."""

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
    """Writes a new password hash.

    `user` is the account whose old password was verified. `keep` is the digest of the session that
    stays.

    Raises:
        Refused forbidden, revision_conflict if the password was changed concurrently.
    """
    demand(principal, CHANGE_PASSWORD, None)
    now = await users.select_user_by_id(tx, user.id)
    if now is None or now.password != user.password:
        raise Refused("revision_conflict")
    await users.set_password(tx, user.id, password)
    await delete_reset(tx, user.id)
    await sessions.delete_other_sessions(tx, user.id, keep)
    await audit(tx, principal, INSTANCE, "user.password", f"user:{user.uid}")
