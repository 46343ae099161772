"""First start on an empty database: an organization, a project and a first admin."""

from uuid import UUID

from uuid_utils.compat import uuid7

from ...core.refusal import Refused
from ...engine.pools import Tx
from ..rules.access import Role
from ..tables import projects, users

DEFAULT = "default"


async def is_founded(tx: Tx) -> bool:
    return await users.has_users(tx)


async def found_installation(tx: Tx, uid: UUID, email: str, password: str) -> bool:
    """Creates the first rows. `password` is a hash, `uid` is that of the first user.

    Returns whether the first user is this one: a repeated call after a commit with an unknown
    outcome writes nothing and returns the same. False if another process was first.

    Raises:
        Refused slug_taken if the default organization exists without a user.
    """
    await users.lock_bootstrap(tx)
    if await users.has_users(tx):
        known = await users.select_user(tx, uid)
        return known is not None and known.password == password
    org = await projects.insert_organization(tx, uuid7(), DEFAULT, "Default")
    if org is None:
        raise Refused("slug_taken")
    await projects.insert_project(tx, org, uuid7(), DEFAULT, "Default")
    user = await users.insert_user(tx, uid, email, "Administrator", password, admin=True)
    assert user is not None, "the installation has no users"
    await users.insert_membership(tx, org, uuid7(), user, None, Role.ORG_ADMIN)
    return True
