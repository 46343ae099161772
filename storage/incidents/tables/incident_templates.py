"""Incident templates of projects. Every writer locks the project, which keeps the names unique."""

from uuid import UUID

from ...engine.pools import Tx
from ..rows import IncidentTemplateRow
from ..rules.incident_template import TemplateDraft

_COLUMNS = """
t.org, t.id, t.uid, t.project, p.uid, t.name, t.title, t.impact, t.body, t.created_at, t.updated_at
"""
_FROM = "from incident_templates t join projects p on p.org = t.org and p.id = t.project"
_BY_UID = f"select {_COLUMNS} {_FROM} where t.uid = %(uid)s"
_COUNT = "select count(*) from incident_templates where org = %(org)s and project = %(project)s"
_IS_TAKEN = """
select exists (select from incident_templates
  where org = %(org)s and project = %(project)s and lower(name) = lower(%(name)s)
    and uid is distinct from %(apart_from)s::uuid)
"""
_INSERT = """
insert into incident_templates
  (org, uid, project, name, title, impact, body, created_at, updated_at)
values (%(org)s, %(uid)s, %(project)s, %(name)s, %(title)s, %(impact)s, %(body)s, at(%(now)s),
  at(%(now)s))
"""
_UPDATE = """
update incident_templates set name = %(name)s, title = %(title)s, impact = %(impact)s,
  body = %(body)s, updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_DELETE = "delete from incident_templates where org = %(org)s and id = %(id)s"


async def select_template(tx: Tx, uid: UUID) -> IncidentTemplateRow | None:
    return await tx.one(IncidentTemplateRow, _BY_UID, uid=uid)


async def count_templates(tx: Tx, org: int, project: int) -> int:
    count: int = await tx.value(_COUNT, org=org, project=project)
    return count


async def is_name_taken(
    tx: Tx, org: int, project: int, name: str, apart_from: UUID | None = None
) -> bool:
    """Returns whether another template of the project has the name, in any case of its letters."""
    return (
        await tx.value(_IS_TAKEN, org=org, project=project, name=name, apart_from=apart_from)
        is True
    )


async def insert_template(tx: Tx, org: int, project: int, uid: UUID, draft: TemplateDraft) -> None:
    await tx.execute(
        _INSERT,
        org=org,
        uid=uid,
        project=project,
        name=draft.name,
        title=draft.title,
        impact=draft.impact.value,
        body=draft.body,
        now=tx.now,
    )


async def update_template(tx: Tx, row: IncidentTemplateRow, draft: TemplateDraft) -> None:
    await tx.execute(
        _UPDATE,
        org=row.org,
        id=row.id,
        name=draft.name,
        title=draft.title,
        impact=draft.impact.value,
        body=draft.body,
        now=tx.now,
    )


async def delete_template(tx: Tx, row: IncidentTemplateRow) -> None:
    await tx.execute(_DELETE, org=row.org, id=row.id)
