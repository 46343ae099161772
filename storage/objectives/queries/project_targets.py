"""Read-only SQL of project targets."""

from ...engine.pools import Tx
from ..rows import ProjectTarget

_SELECT = """
select "window", uid, objective, created_at, updated_at from project_targets
where org = %(org)s and project = %(project)s
"""

_IS_REPORTED = """
select sla_report_weekly from projects where org = %(org)s and id = %(project)s
"""


async def select_project_targets(tx: Tx, org: int, project: int) -> dict[str, ProjectTarget]:
    """Returns targets by window."""
    rows = await tx.structs(ProjectTarget, _SELECT, org=org, project=project)
    return {row.window: row for row in rows}


async def is_reported_weekly(tx: Tx, org: int, project: int) -> bool:
    found: bool = await tx.value(_IS_REPORTED, org=org, project=project)
    return found
