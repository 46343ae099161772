"""Actions on many monitors and their objects."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from ..engine.pools import Tx
from .rows import BulkObject, BulkRow
from .rules import ObjectState

_COLUMNS: Final = """
b.uid, b.org, b.project, p.uid, b.act, b.arguments, b.stopped_by, o.started_by
"""
FROM: Final = """
from bulk_actions b join projects p on p.org = b.org and p.id = b.project
  join operations o on o.uid = b.uid
"""
SELECT: Final = f"select {_COLUMNS} {FROM}"
_INSERT: Final = """
insert into bulk_actions (uid, org, project, act, arguments, undoes)
values (%(uid)s, %(org)s, %(project)s, %(act)s, %(arguments)s, %(undoes)s)
on conflict (undoes) do nothing
"""
_INSERT_OBJECTS: Final = """
insert into bulk_action_objects (action, place, uid, name, expected)
select %(uid)s, n, t.uid, t.name, t.expected
from unnest(%(uids)s::uuid[], %(names)s::text[], %(expected)s::int[])
  with ordinality as t(uid, name, expected, n)
"""
_LOCK: Final = f"""
{SELECT} where b.uid = %(uid)s and o.state = 'editing' for update of b skip locked
"""
_NEXT: Final = """
select place, uid, name, expected from bulk_action_objects
where action = %(uid)s and state = 'waiting' order by place limit 1
"""
# The monitor is locked, and has the revision that the change gave it.
_SETTLE: Final = """
update bulk_action_objects o set state = %(state)s, undo = %(undo)s, code = %(code)s,
  rule = %(rule)s, revision = case when %(state)s = 'changed' then
    (select m.revision from monitors m where m.uid = o.uid) end
where action = %(uid)s and place = %(place)s and state = 'waiting'
"""
_STOP: Final = """
update bulk_actions b set stopped_by = %(by)s from operations o
where b.uid = %(uid)s and o.uid = b.uid and o.state = 'editing' and b.stopped_by is null
returning b.uid
"""


async def insert_bulk_action(
    tx: Tx,
    uid: UUID,
    place: tuple[int, int],
    act: str,
    arguments: str,
    objects: Sequence[BulkObject],
    undoes: UUID | None,
) -> bool:
    """Inserts an action with its objects in order. `place` is (organization, project).

    Returns False if another action undoes `undoes`.
    """
    org, project = place
    values = {"org": org, "project": project, "act": act, "arguments": arguments, "undoes": undoes}
    if await tx.execute(_INSERT, uid=uid, **values) == 0:
        return False
    uids, names = [each.uid for each in objects], [each.name for each in objects]
    expected = [each.expected for each in objects]
    await tx.execute(_INSERT_OBJECTS, uid=uid, uids=uids, names=names, expected=expected)
    return True


async def lock_bulk_action(tx: Tx, uid: UUID) -> BulkRow | None:
    """Locks a running action. Returns None if it has ended, or another process performs it.

    It has no lock rank: it is the first lock of its transaction. The deletion of the project takes
    it before the operation too, when no monitor of the project is left.
    """
    return await tx.one(BulkRow, _LOCK, uid=uid)


async def select_next(tx: Tx, uid: UUID) -> BulkObject | None:
    return await tx.one(BulkObject, _NEXT, uid=uid)


async def settle_object(
    tx: Tx,
    uid: UUID,
    place: int,
    state: ObjectState,
    *,
    undo: UUID | None = None,
    code: str | None = None,
    rule: str | None = None,
) -> bool:
    """Writes the result for an object. Returns False if it has one."""
    values = {"uid": uid, "place": place, "state": state, "undo": undo, "code": code, "rule": rule}
    return await tx.execute(_SETTLE, **values) == 1


async def request_stop(tx: Tx, uid: UUID, by: str) -> bool:
    """Requests the end of a running action. Returns False if it has ended or is to stop."""
    return await tx.value(_STOP, uid=uid, by=by) is not None
