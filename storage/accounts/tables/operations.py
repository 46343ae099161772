"""Operations: work that a request starts and that can continue after its answer."""

from typing import Final
from uuid import UUID

from uuid_utils.compat import uuid7

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rows import OperationRow

PROJECT_DELETE: Final = "project_delete"
ORGANIZATION_DELETE: Final = "organization_delete"

_COLUMNS = """
uid, kind, state, org, project, started_by, done, total, created_at, finished_at, error
"""
_INSERT = """
insert into operations (uid, kind, org, project, started_by, total, created_at)
values (%(uid)s, %(kind)s, %(org)s, %(project)s, %(started_by)s, %(total)s, at(%(now)s))
"""
_LOCK = f"""
select {_COLUMNS} from operations where uid = %(uid)s and state = 'running'
for update skip locked
"""
_ADVANCE = "update operations set done = least(total, done + %(done)s) where uid = %(uid)s"
_SUCCEED = """
update operations set state = 'succeeded', done = total, finished_at = at(%(now)s)
where uid = %(uid)s
"""
_PURGE = "delete from operations where finished_at < at(%(before)s)"


async def insert_operation(
    tx: Tx, kind: str, org: int, project: int | None, *, started_by: UUID | None, total: int
) -> UUID:
    uid = uuid7()
    await tx.execute(
        _INSERT,
        uid=uid,
        kind=kind,
        org=org,
        project=project,
        started_by=started_by,
        total=total,
        now=tx.now,
    )
    return uid


async def lock_running(tx: Tx, uid: UUID) -> OperationRow | None:
    """Locks a running operation. Returns None if it has ended, or another process works on it.

    It has no lock rank: it is the first lock of its transaction, and no other takes it.
    """
    return await tx.one(OperationRow, _LOCK, uid=uid)


async def advance(tx: Tx, uid: UUID, done: int) -> None:
    await tx.execute(_ADVANCE, uid=uid, done=done)


async def succeed(tx: Tx, uid: UUID) -> None:
    await tx.execute(_SUCCEED, uid=uid, now=tx.now)


async def purge_finished(tx: Tx, before: Instant) -> None:
    await tx.execute(_PURGE, before=before)
