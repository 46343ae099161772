"""What is aimed at for a whole project over a window, in percent × 10⁴; and whether its weekly
report is sent."""

from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from ...core.instant import Instant
from ...engine.pools import Tx

_SELECT = """
select "window", uid, objective, created_at, updated_at from project_targets
where org = %(org)s and project = %(project)s
"""
_PUT = """
insert into project_targets (org, project, "window", uid, objective, created_at, updated_at)
values (%(org)s, %(project)s, %(window)s, %(uid)s, %(objective)s, at(%(now)s), at(%(now)s))
on conflict (org, project, "window") do update set objective = excluded.objective,
  updated_at = excluded.updated_at
"""
_DELETE = """
delete from project_targets
where org = %(org)s and project = %(project)s and "window" = %(window)s
"""
_IS_REPORTED = """
select sla_report_weekly from projects where org = %(org)s and id = %(project)s
"""
_SET_REPORTED = """
update projects set sla_report_weekly = %(enabled)s where org = %(org)s and id = %(project)s
"""


class ProjectTarget(msgspec.Struct, frozen=True):
    window: str
    uid: UUID
    objective: int
    created_at: Instant
    updated_at: Instant


async def select_project_targets(tx: Tx, org: int, project: int) -> dict[str, ProjectTarget]:
    """By window."""
    rows = await tx.structs(ProjectTarget, _SELECT, org=org, project=project)
    return {row.window: row for row in rows}


async def put_project_target(tx: Tx, org: int, project: int, window: str, objective: int) -> None:
    await tx.execute(
        _PUT,
        org=org,
        project=project,
        window=window,
        uid=uuid7(),
        objective=objective,
        now=tx.now,
    )


async def delete_project_target(tx: Tx, org: int, project: int, window: str) -> bool:
    """False where nothing was aimed at."""
    return bool(await tx.execute(_DELETE, org=org, project=project, window=window))


async def is_reported_weekly(tx: Tx, org: int, project: int) -> bool:
    found: bool = await tx.value(_IS_REPORTED, org=org, project=project)
    return found


async def set_reported_weekly(tx: Tx, org: int, project: int, *, enabled: bool) -> None:
    await tx.execute(_SET_REPORTED, org=org, project=project, enabled=enabled)
