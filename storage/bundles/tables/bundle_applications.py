"""Bundles that wait for their application in the background, and revisions of bundles."""

from typing import Final
from uuid import UUID

import msgspec

from ...engine.pools import Tx
from ..rows import ApplicationRow
from ..rules.bundle_diff import ChangeCounts

# Older revisions of a bundle are deleted.
REVISIONS_KEPT: Final = 100
# Older revisions have no stored changes.
CHANGES_KEPT: Final = 20

_COLUMNS: Final = """
a.uid, a.project, a.document, a.document_ciphertext, a.path, a.take_over, a.revision,
a.actor_label, a.actor_user
"""
_INSERT: Final = """
insert into bundle_applications (uid, project, document, document_ciphertext, path, take_over,
  revision, actor_label, actor_user)
values (%(operation)s, %(project)s, %(document)s, %(document_ciphertext)s, %(path)s,
  %(take_over)s, %(revision)s, %(actor_label)s, %(actor_user)s)
"""
_SELECT: Final = f"select {_COLUMNS} from bundle_applications a where a.uid = %(operation)s"
_LOCK: Final = """
select uid from bundle_applications where uid = %(operation)s for update skip locked
"""
_DELETE: Final = "delete from bundle_applications where uid = %(operation)s"
_INSERT_REVISION: Final = """
insert into bundle_revisions (org, project, path, revision, applied_at, actor_label, created,
  updated, orphaned, unchanged, taken_over, changes)
select %(org)s, %(project)s, %(path)s, coalesce(max(revision), 0) + 1, at(%(now)s),
  %(actor_label)s, %(created)s, %(updated)s, %(orphaned)s, %(unchanged)s, %(taken_over)s,
  %(changes)s
from bundle_revisions where org = %(org)s and project = %(project)s and path = %(path)s
returning revision
"""
_DELETE_CHANGES: Final = """
update bundle_revisions set changes = null
where org = %(org)s and project = %(project)s and path = %(path)s and revision <= %(through)s
  and changes is not null
"""
_DELETE_REVISIONS: Final = """
delete from bundle_revisions
where org = %(org)s and project = %(project)s and path = %(path)s and revision <= %(through)s
"""


async def insert_application_row(tx: Tx, row: ApplicationRow) -> None:
    await tx.execute(_INSERT, **msgspec.structs.asdict(row))


async def select_application(tx: Tx, operation: UUID) -> ApplicationRow | None:
    return await tx.one(ApplicationRow, _SELECT, operation=operation)


async def lock_application(tx: Tx, operation: UUID) -> bool:
    """Locks an application. Returns False if it has ended, or another process performs it.

    It has no lock rank: it is the first lock of its transaction, and no other takes it.
    """
    return await tx.value(_LOCK, operation=operation) is not None


async def delete_application(tx: Tx, operation: UUID) -> None:
    await tx.execute(_DELETE, operation=operation)


async def insert_revision(
    tx: Tx,
    org: int,
    project: int,
    path: str,
    actor_label: str,
    counts: ChangeCounts,
    changes: str,
) -> None:
    """Inserts the next revision of a bundle with its changes as JSON. The project is locked."""
    values = {"org": org, "project": project, "path": path}
    revision = await tx.value(
        _INSERT_REVISION,
        **values,
        now=tx.now,
        actor_label=actor_label,
        created=counts.created,
        updated=counts.updated,
        orphaned=counts.orphaned,
        unchanged=counts.unchanged,
        taken_over=counts.taken_over,
        changes=changes,
    )
    if revision > CHANGES_KEPT:
        await tx.execute(_DELETE_CHANGES, **values, through=revision - CHANGES_KEPT)
    if revision > REVISIONS_KEPT:
        await tx.execute(_DELETE_REVISIONS, **values, through=revision - REVISIONS_KEPT)
