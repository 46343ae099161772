"""Reads of incident templates."""

from uuid import UUID

from ...engine.pools import Tx
from ..rows import IncidentTemplateRow
from ..tables.incident_templates import _COLUMNS, _FROM

_OF_PROJECT = f"""
select {_COLUMNS} {_FROM} where t.org = %(org)s and t.project = %(project)s
order by lower(t.name), t.id
"""
_ONE = f"""
select {_COLUMNS} {_FROM}
where t.org = %(org)s and t.project = %(project)s and t.uid = %(uid)s
"""


async def select_templates_of(tx: Tx, org: int, project: int) -> list[IncidentTemplateRow]:
    """Returns the templates of a project, by name."""
    return await tx.structs(IncidentTemplateRow, _OF_PROJECT, org=org, project=project)


async def select_template_of(
    tx: Tx, org: int, project: int, uid: UUID
) -> IncidentTemplateRow | None:
    """Returns a template of the project; None also if it belongs to another one."""
    return await tx.one(IncidentTemplateRow, _ONE, org=org, project=project, uid=uid)
