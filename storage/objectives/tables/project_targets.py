"""Objectives of projects per window, in percent × 10⁴; and the weekly report setting."""

from uuid_utils.compat import uuid7

from ...engine.pools import Tx

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
_SET_REPORTED = """
update projects set sla_report_weekly = %(enabled)s where org = %(org)s and id = %(project)s
"""


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
    """Deletes an objective. Returns False if the window has no objective."""
    return bool(await tx.execute(_DELETE, org=org, project=project, window=window))


async def set_reported_weekly(tx: Tx, org: int, project: int, *, enabled: bool) -> None:
    await tx.execute(_SET_REPORTED, org=org, project=project, enabled=enabled)
