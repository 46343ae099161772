"""Operations: work that a request starts and that can continue after its answer."""

from typing import Final
from uuid import UUID

from uuid_utils.compat import uuid7

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rows import OperationRow

PROJECT_DELETE: Final = "project_delete"
ORGANIZATION_DELETE: Final = "organization_delete"
BUNDLE_APPLY: Final = "bundle_apply"
MONITORS_EDIT: Final = "monitors_edit"

# The states `applying` and `editing` keep bundles and actions apart from deletions for processes of
# the version before.
_COLUMNS = """
uid, kind, case when state in ('applying', 'editing') then 'running' else state end, org, project,
  started_by, done, total, created_at, finished_at, case when state <> 'applying' then error end,
  result, case when state = 'applying' then error end, progress
"""
_INSERT = """
insert into operations (uid, kind, org, project, started_by, total, created_at)
values (%(uid)s, %(kind)s, %(org)s, %(project)s, %(started_by)s, %(total)s, at(%(now)s))
"""
_INSERT_APPLICATION = """
insert into operations (uid, kind, state, org, project, started_by, total, created_at)
values (%(uid)s, 'bundle_apply', 'applying', %(org)s, %(project)s, %(started_by)s, %(total)s,
  at(%(now)s))
on conflict (org, project) where state = 'applying' do nothing
returning uid
"""
_INSERT_EDIT = """
insert into operations (uid, kind, state, org, project, started_by, total, created_at)
values (%(uid)s, 'monitors_edit', 'editing', %(org)s, %(project)s, %(started_by)s, %(total)s,
  at(%(now)s))
on conflict (org, project) where state = 'editing' do nothing
returning uid
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
# The transaction that ends the operation locks the row, and its figures are final.
_REPORT = """
update operations set done = %(done)s, total = %(total)s, progress = %(progress)s
where uid = (select uid from operations where uid = %(uid)s and state = 'applying'
  for update skip locked)
"""
_SUCCEED_WITH = """
update operations set state = 'succeeded', done = %(total)s, total = %(total)s,
  result = %(result)s, finished_at = at(%(now)s)
where uid = %(uid)s and error is null returning uid
"""
# The reason waits in the running operation, and its process ends the operation with it.
_STOP = """
update operations set error = %(reason)s
where uid = %(uid)s and org = %(org)s and project = %(project)s and state = 'applying'
  and error is null
returning uid
"""
_STOP_REASON = "select error from operations where uid = %(uid)s and state = 'applying'"
_FAIL = """
update operations set state = 'failed', error = %(error)s, finished_at = at(%(now)s)
where uid = %(uid)s and finished_at is null
"""
# As in `lock_bulk_action`, before the operation. It waits for the process that changes an object.
_LOCK_OF = """
select b.uid from bulk_actions b join operations o on o.uid = b.uid
where b.org = %(org)s and b.project = %(project)s and o.state = 'editing'
order by b.uid for update of b
"""
_END_EDIT = """
update operations set state = 'failed', error = %(error)s, finished_at = at(%(now)s)
where state = 'editing'
"""
_END_EDITS = f"{_END_EDIT} and uid = any(%(uids)s::uuid[])"
_END_ORPHAN = f"""
{_END_EDIT} and uid = %(uid)s
  and not exists (select from bulk_actions b where b.uid = operations.uid)
"""
_PROJECT_DELETED: Final = "the project was deleted"
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


async def insert_application(
    tx: Tx, org: int, project: int, *, started_by: UUID | None, total: int
) -> UUID | None:
    """Inserts the operation of a bundle. Returns None if one is running in the project."""
    uid: UUID | None = await tx.value(
        _INSERT_APPLICATION,
        uid=uuid7(),
        org=org,
        project=project,
        started_by=started_by,
        total=total,
        now=tx.now,
    )
    return uid


async def insert_edit(
    tx: Tx, org: int, project: int, *, started_by: UUID | None, total: int
) -> UUID | None:
    """Inserts the operation of an action on many monitors. Returns None if one is running."""
    values = {"org": org, "project": project, "started_by": started_by, "total": total}
    uid: UUID | None = await tx.value(_INSERT_EDIT, uid=uuid7(), now=tx.now, **values)
    return uid


async def lock_running(tx: Tx, uid: UUID) -> OperationRow | None:
    """Locks a running deletion. Returns None if it has ended, or another process works on it.

    It has no lock rank: it is the first lock of its transaction, and no other takes it.
    """
    return await tx.one(OperationRow, _LOCK, uid=uid)


async def advance(tx: Tx, uid: UUID, done: int) -> None:
    await tx.execute(_ADVANCE, uid=uid, done=done)


async def succeed(tx: Tx, uid: UUID) -> None:
    await tx.execute(_SUCCEED, uid=uid, now=tx.now)


async def report_progress(tx: Tx, uid: UUID, done: int, total: int, progress: str) -> None:
    """Writes the figures of a running operation, and its progress as JSON."""
    await tx.execute(_REPORT, uid=uid, done=done, total=total, progress=progress)


async def succeed_with(tx: Tx, uid: UUID, total: int, result: str) -> bool:
    """Ends the operation of a bundle. Returns False if it is to stop."""
    values = {"uid": uid, "total": total, "result": result, "now": tx.now}
    return await tx.value(_SUCCEED_WITH, **values) is not None


async def request_stop(tx: Tx, org: int, project: int, uid: UUID, reason: str) -> bool:
    """Requests that a running application stops. Returns False if it has ended or is to stop."""
    values = {"org": org, "project": project, "uid": uid, "reason": reason}
    return await tx.value(_STOP, **values) is not None


async def stop_reason(tx: Tx, uid: UUID) -> str | None:
    """Returns why a running application is to stop; None if it is not."""
    found: str | None = await tx.value(_STOP_REASON, uid=uid)
    return found


async def fail(tx: Tx, uid: UUID, error: str) -> None:
    """Ends a running operation with the reason for which it changed nothing, or not everything."""
    await tx.execute(_FAIL, uid=uid, error=error, now=tx.now)


async def end_actions_of_project(tx: Tx, org: int, project: int) -> None:
    """Ends the running actions on monitors of a project, before its transaction deletes it."""
    uids = [uid for (uid,) in await tx.rows(_LOCK_OF, org=org, project=project)]
    if uids:
        await tx.execute(_END_EDITS, uids=uids, error=_PROJECT_DELETED, now=tx.now)


async def end_orphan(tx: Tx, uid: UUID) -> None:
    """Ends a running operation whose action was deleted with its project.

    A process of the version before deletes projects so.
    """
    await tx.execute(_END_ORPHAN, uid=uid, error=_PROJECT_DELETED, now=tx.now)


async def purge_finished(tx: Tx, before: Instant) -> None:
    await tx.execute(_PURGE, before=before)
