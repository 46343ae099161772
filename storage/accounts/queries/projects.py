"""Reads of projects."""

from uuid import UUID

from ...engine.pools import Tx
from ..rows import OrganizationRow, ProjectRow
from ..tables.projects import _PROJECT

_PROJECT_BY_UID = f"{_PROJECT} where p.uid = %(uid)s and p.deleting_since is null"

_ORGANIZATION = "select id, uid, slug, name, created_at, updated_at from organizations"

_ORGANIZATION_BY_UID = f"{_ORGANIZATION} where uid = %(uid)s and deleting_since is null"


async def select_project(tx: Tx, uid: UUID) -> ProjectRow | None:
    return await tx.one(ProjectRow, _PROJECT_BY_UID, uid=uid)


async def select_organization(tx: Tx, uid: UUID) -> OrganizationRow | None:
    return await tx.one(OrganizationRow, _ORGANIZATION_BY_UID, uid=uid)
