"""Reads of actions on many monitors."""

from typing import Final
from uuid import UUID

from ..engine.pools import Tx
from .rows import BulkFailure, BulkObject, BulkObjectResult, BulkReport, BulkRow
from .rules import ObjectState
from .tables import FROM, SELECT

_REPORT: Final = f"{SELECT} where b.uid = %(uid)s and b.org = %(org)s and b.project = %(project)s"
_END: Final = """
select created_at, finished_at, error, (select uid from bulk_actions where undoes = %(uid)s)
from operations where uid = %(uid)s
"""
_HAS_ENDED: Final = "select finished_at is not null from operations where uid = %(uid)s"
_COUNTS: Final = """
select state, count(*)::int from bulk_action_objects where action = %(uid)s group by state
"""
_FAILURES: Final = """
select name, code, rule from bulk_action_objects
where action = %(uid)s and state = 'failed' order by place limit %(most)s
"""
_OBJECTS: Final = """
select place, uid, name, state, code, rule from bulk_action_objects
where action = %(uid)s and place > %(after)s order by place limit %(most)s
"""
# A maintenance window has no revision, nor has a change of an earlier version.
_UNDO: Final = """
select place, undo, name, case when undo = uid then revision end from bulk_action_objects
where action = %(uid)s and state = 'changed' and undo is not null order by place
"""
_REVISION: Final = "select revision from monitors where uid = %(uid)s"
_RUNNING: Final = f"""
select b.uid, b.act, o.done, o.total {FROM}
where o.org = %(org)s and o.project = %(project)s and o.state = 'editing'
order by o.created_at desc limit 1
"""


async def select_report(
    tx: Tx, org: int, project: int, uid: UUID, failures: int
) -> BulkReport | None:
    """Returns the state of an action of a project with at most `failures` failures."""
    row = await tx.one(BulkRow, _REPORT, uid=uid, org=org, project=project)
    ended = await tx.row(_END, uid=uid)
    if row is None or ended is None:
        return None
    counts = {state.value: 0 for state in ObjectState} | dict(await tx.rows(_COUNTS, uid=uid))
    failed = await tx.structs(BulkFailure, _FAILURES, uid=uid, most=failures)
    return BulkReport(row, counts, failed, *ended)


async def select_objects(tx: Tx, uid: UUID, after: int, most: int) -> list[BulkObjectResult]:
    """Returns the objects of an action behind the place `after`, each with its result so far."""
    return await tx.structs(BulkObjectResult, _OBJECTS, uid=uid, after=after, most=most)


async def has_ended(tx: Tx, uid: UUID) -> bool:
    return bool(await tx.value(_HAS_ENDED, uid=uid))


async def select_undo(tx: Tx, uid: UUID) -> list[BulkObject]:
    """Returns the objects that the undo of an action needs, with the names of its monitors."""
    return await tx.structs(BulkObject, _UNDO, uid=uid)


async def select_monitor_revision(tx: Tx, uid: UUID) -> int | None:
    """Returns None for an id that is no monitor, such as that of a maintenance window."""
    revision: int | None = await tx.value(_REVISION, uid=uid)
    return revision


async def select_running_action(
    tx: Tx, org: int, project: int
) -> tuple[UUID, str, int, int] | None:
    """Returns (uid, act, done, total) of the newest running action of a project."""
    row = await tx.row(_RUNNING, org=org, project=project)
    return None if row is None else (row[0], row[1], row[2], row[3])
