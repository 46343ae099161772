"""Bundle marks of objects without such columns in their own table.

They are the settings of a project, its maintenance series, status pages and webhooks.
"""

from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...engine.pools import Tx

_OF_KIND = """
select id, uid, managed_by, bundle_uid, bundle_path, orphaned_at from bundle_objects
where org = %(org)s and project = %(project)s and kind = %(kind)s and managed_by <> ''
"""
_OF_ONE = f"{_OF_KIND} and uid = %(uid)s"


class ObjectMark(msgspec.Struct, frozen=True):
    """Bundle of an object. People own an object without a mark."""

    id: int
    uid: UUID
    managed_by: str
    bundle_uid: str | None
    bundle_path: str
    orphaned_at: Instant | None


async def select_marks(tx: Tx, org: int, project: int, kind: str) -> dict[UUID, ObjectMark]:
    """Returns the marks of one kind in a project by the id of the object."""
    rows = await tx.structs(ObjectMark, _OF_KIND, org=org, project=project, kind=kind)
    return {row.uid: row for row in rows}


async def select_mark(tx: Tx, org: int, project: int, kind: str, uid: UUID) -> ObjectMark | None:
    return await tx.one(ObjectMark, _OF_ONE, org=org, project=project, kind=kind, uid=uid)
