"""Creation, edit and deletion of incident templates by editors of the project.

Every write locks the project: names stay unique, and a deletion of the project waits.
"""

from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from ...accounts.rules.access import Principal
from ...accounts.transactions.authorize import NOT_FOUND, audit, demand_project, demand_row
from ...accounts.transactions.authorize_tenant_write import lock_project
from ...core.refusal import Refused
from ...engine.pools import Tx
from ..rows import IncidentTemplateRow
from ..rules.incident import IncidentImpact
from ..rules.incident_template import TEMPLATES_OF_PROJECT_MOST, TemplateDraft, checked
from ..tables import incident_templates as templates
from .edit_incidents import EDIT

_FIELDS = ("name", "title", "impact", "body")


class TemplateEdit(msgspec.Struct, frozen=True, kw_only=True):
    """Fields to change. None leaves a field as it is."""

    name: str | None = None
    title: str | None = None
    impact: IncidentImpact | None = None
    body: str | None = None


async def create_template(
    tx: Tx, principal: Principal, project: UUID, draft: TemplateDraft
) -> IncidentTemplateRow:
    """Creates a template.

    Raises: Refused not_found, forbidden, invalid, template_exists, template_quota.
    """
    home = await demand_project(tx, principal, EDIT, project)
    draft = checked(draft)
    await lock_project(tx, home)
    if await templates.is_name_taken(tx, home.org, home.id, draft.name):
        raise Refused("template_exists")
    if await templates.count_templates(tx, home.org, home.id) >= TEMPLATES_OF_PROJECT_MOST:
        raise Refused("template_quota")
    uid = uuid7()
    await templates.insert_template(tx, home.org, home.id, uid, draft)
    row = await _written(tx, uid)
    await audit(tx, principal, row.org, "incident_template.create", _target(row))
    return row


async def edit_template(
    tx: Tx, principal: Principal, template: UUID, edit: TemplateEdit
) -> IncidentTemplateRow:
    """Changes the fields that are not None. An edit without an effect is not written.

    Raises: Refused not_found, forbidden, invalid, template_exists.
    """
    before = await _lock(tx, principal, template)
    draft = checked(
        TemplateDraft(
            before.name if edit.name is None else edit.name,
            before.title if edit.title is None else edit.title,
            IncidentImpact(before.impact) if edit.impact is None else edit.impact,
            before.body if edit.body is None else edit.body,
        )
    )
    changed = [field for field in _FIELDS if getattr(draft, field) != getattr(before, field)]
    if not changed:
        return before
    if await templates.is_name_taken(tx, before.org, before.project, draft.name, before.uid):
        raise Refused("template_exists")
    await templates.update_template(tx, before, draft)
    row = await _written(tx, template)
    target = f"{_target(row)} {' '.join(changed)} changed"
    await audit(tx, principal, row.org, "incident_template.update", target)
    return row


async def delete_template(tx: Tx, principal: Principal, template: UUID) -> None:
    """Deletes a template. Incidents keep their copies.

    Raises: Refused not_found, forbidden.
    """
    row = await _lock(tx, principal, template)
    await templates.delete_template(tx, row)
    await audit(tx, principal, row.org, "incident_template.delete", _target(row))


async def _lock(tx: Tx, principal: Principal, template: UUID) -> IncidentTemplateRow:
    """Returns the template as it is after the lock of its project."""
    found = demand_row(principal, EDIT, await templates.select_template(tx, template))
    await lock_project(tx, await demand_project(tx, principal, EDIT, found.project_uid))
    row = await templates.select_template(tx, template)
    if row is None:
        raise Refused(NOT_FOUND)
    return row


async def _written(tx: Tx, template: UUID) -> IncidentTemplateRow:
    row = await templates.select_template(tx, template)
    assert row is not None, "it was just written"
    return row


def _target(row: IncidentTemplateRow) -> str:
    return f"incident_template:{row.uid} project:{row.project_uid}"
