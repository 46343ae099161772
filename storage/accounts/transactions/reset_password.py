"""Password reset by the operator of the server."""

from ...core.refusal import Refused
from ...engine.pools import Tx
from ..queries import users as users_queries
from ..rows import INSTANCE
from ..rules.access import Principal
from ..tables import sessions, users
from ..tables.password_resets import delete_reset
from .authorize import NOT_FOUND, audit


async def reset_password(tx: Tx, principal: Principal, email: str, password: str) -> None:
    """Replaces a password and ends all sessions. `password` is a hash.

    Raises:
        Refused not_found.
    """
    user = await users_queries.select_user_by_email(tx, email)
    if user is None:
        raise Refused(NOT_FOUND, "email", "no account has this e-mail address")
    await users.set_password(tx, user.id, password)
    await delete_reset(tx, user.id)
    await sessions.delete_other_sessions(tx, user.id, b"")
    await audit(tx, principal, INSTANCE, "user.reset_password", f"user:{user.uid}")
