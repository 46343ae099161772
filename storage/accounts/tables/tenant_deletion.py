"""Deletion of organizations and projects, with its locks.

Transactions that add to one lock it FOR KEY SHARE, and a deletion locks it FOR UPDATE. Therefore
additions and the deletion exclude each other.
"""

from uuid import UUID

from ...engine.pools import LockRank, Tx

_HOLD_ORGANIZATION = "select id from organizations where uid = %(uid)s for key share"
_LOCK_ORGANIZATION = "select id from organizations where uid = %(uid)s for update"
_HOLD_PROJECT = """
select id from projects where org = %(org)s and id = %(project)s for key share
"""
_LOCK_PROJECT = """
select id from projects where org = %(org)s and id = %(project)s for update
"""
_HAS_PROJECTS = "select exists (select from projects where org = %(org)s)"
_HAS_MONITORS = """
select exists (select from monitors where org = %(org)s and project = %(project)s)
"""
_DELETE_MEMBERSHIPS = "delete from memberships where org = %(org)s"
_DELETE_TOKENS = "delete from api_tokens where org = %(org)s"
_DELETE_PAGES = "delete from status_pages where org = %(org)s"


async def lock_shared_organization(tx: Tx, uid: UUID) -> bool:
    """Locks an organization against deletion. Returns False if it does not exist."""
    tx.lock_rank(LockRank.ORGANIZATION, "an organization that is added to")
    return await tx.value(_HOLD_ORGANIZATION, uid=uid) is not None


async def lock_organization(tx: Tx, uid: UUID) -> bool:
    """Locks an organization against additions. Returns False if it does not exist."""
    tx.lock_rank(LockRank.ORGANIZATION, "an organization that goes")
    return await tx.value(_LOCK_ORGANIZATION, uid=uid) is not None


async def lock_shared_project(tx: Tx, org: int, project: int) -> bool:
    """Locks a project against deletion. Returns False if it does not exist."""
    tx.lock_rank(LockRank.PROJECT, "a project that is added to")
    return await tx.value(_HOLD_PROJECT, org=org, project=project) is not None


async def lock_project(tx: Tx, org: int, project: int) -> bool:
    tx.lock_rank(LockRank.PROJECT, "a project that goes")
    return await tx.value(_LOCK_PROJECT, org=org, project=project) is not None


async def has_projects(tx: Tx, org: int) -> bool:
    found: bool = await tx.value(_HAS_PROJECTS, org=org)
    return found


async def has_monitors(tx: Tx, org: int, project: int) -> bool:
    found: bool = await tx.value(_HAS_MONITORS, org=org, project=project)
    return found


async def delete_what_stays_within(tx: Tx, org: int) -> None:
    """Deletes the remaining rows of an organization without projects."""
    await tx.execute(_DELETE_MEMBERSHIPS, org=org)
    await tx.execute(_DELETE_TOKENS, org=org)
    tx.lock_rank(LockRank.PAGE, "an organization's pages that go with it")
    await tx.execute(_DELETE_PAGES, org=org)
