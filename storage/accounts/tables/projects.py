"""Organizations and projects, the scopes of all tenant data."""

from uuid import UUID

from ...engine.pools import LockRank, Tx
from ..rows import ProjectRow

_PROJECT = """
select p.org, p.id, p.uid, o.uid, p.slug, p.name, p.created_at, p.updated_at
from projects p join organizations o on o.id = p.org
"""

_PROJECT_BY_NAMES = f"""
{_PROJECT} where (o.slug = %(organization)s or o.uid::text = %(organization)s)
  and (p.slug = %(project)s or p.uid::text = %(project)s) and p.deleting_since is null
"""

_HOLD_BY_UID = f"""
{_PROJECT} where p.uid = %(uid)s and p.deleting_since is null for key share of p
"""
_NAME_OF_PROJECT = "select name from projects where org = %(org)s and id = %(project)s"

_INSERT_ORGANIZATION = """
insert into organizations (uid, slug, name, created_at, updated_at)
values (%(uid)s, %(slug)s, %(name)s, at(%(now)s), at(%(now)s))
on conflict (slug) do nothing returning id
"""
_INSERT_PROJECT = """
insert into projects (org, uid, slug, name, created_at, updated_at)
values (%(org)s, %(uid)s, %(slug)s, %(name)s, at(%(now)s), at(%(now)s))
on conflict (org, slug) do nothing returning id
"""
_RENAME_ORGANIZATION = """
update organizations set name = %(name)s, updated_at = at(%(now)s) where id = %(org)s
"""
_RENAME_PROJECT = """
update projects set name = %(name)s, updated_at = at(%(now)s)
where org = %(org)s and id = %(project)s
"""
_DELETE_PROJECT = "delete from projects where org = %(org)s and id = %(project)s"
_DELETE_ORGANIZATION = "delete from organizations where id = %(org)s"


async def select_project_named(tx: Tx, organization: str, project: str) -> ProjectRow | None:
    """Returns a project by slugs or ids."""
    return await tx.one(ProjectRow, _PROJECT_BY_NAMES, organization=organization, project=project)


async def lock_shared_project_of(tx: Tx, uid: UUID) -> ProjectRow | None:
    """Locks a project against deletion and returns it. None if it does not exist."""
    tx.lock_rank(LockRank.PROJECT, "a project that is added to")
    return await tx.one(ProjectRow, _HOLD_BY_UID, uid=uid)


async def insert_organization(tx: Tx, uid: UUID, slug: str, name: str) -> int | None:
    """Returns the key of the new organization, None if the slug is taken."""
    key: int | None = await tx.value(
        _INSERT_ORGANIZATION, uid=uid, slug=slug, name=name, now=tx.now
    )
    return key


async def insert_project(tx: Tx, org: int, uid: UUID, slug: str, name: str) -> int | None:
    """Returns the key of the new project, None if the slug is taken."""
    key: int | None = await tx.value(
        _INSERT_PROJECT, org=org, uid=uid, slug=slug, name=name, now=tx.now
    )
    return key


async def select_project_name(tx: Tx, org: int, project: int) -> str:
    """Returns the name of a project, empty if it is deleted."""
    return await tx.value(_NAME_OF_PROJECT, org=org, project=project) or ""


async def rename_organization(tx: Tx, org: int, name: str) -> None:
    await tx.execute(_RENAME_ORGANIZATION, org=org, name=name, now=tx.now)


async def rename_project(tx: Tx, org: int, project: int, name: str) -> None:
    await tx.execute(_RENAME_PROJECT, org=org, project=project, name=name, now=tx.now)


async def delete_project(tx: Tx, org: int, project: int) -> None:
    await tx.execute(_DELETE_PROJECT, org=org, project=project)


async def delete_organization(tx: Tx, org: int) -> None:
    await tx.execute(_DELETE_ORGANIZATION, org=org)
