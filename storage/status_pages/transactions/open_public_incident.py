"""Opens an incident that names components of status pages, and sets manual components."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from ...accounts.rules.access import Principal
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...incidents.rows import IncidentRow
from ...incidents.transactions.edit_incidents import (
    IncidentDraft,
    open_prepared,
    prepare_incident,
)
from ..queries.status_page_components import select_component
from ..queries.status_pages import select_page
from ..rules.status_page import ComponentStatus
from ..rules.status_page_edit import ComponentEdit
from .edit_components import update_component

COMPONENTS_NAMED_MOST = 200


@dataclass(frozen=True, slots=True)
class AffectedComponent:
    """Component that an incident names. `status` is set if the component is manual."""

    component: UUID
    status: ComponentStatus | None = None


async def open_public_incident(
    tx: Tx,
    principal: Principal,
    project: UUID,
    draft: IncidentDraft,
    affected: Sequence[AffectedComponent],
) -> IncidentRow:
    """Opens an incident. Its components and their states are written in the same transaction.

    Components of pages of the project and of its organization can be named. A state requires the
    permission to edit the page.

    Raises:
        Refused not_found, forbidden, invalid: also if a component is of another organization, or
        has a state that its monitor or service determines.
    """
    if len(affected) > COMPONENTS_NAMED_MOST:
        raise Refused("invalid", "components", f"must be at most {COMPONENTS_NAMED_MOST}")
    opening = await prepare_incident(tx, principal, project, draft)
    found = []
    for one in affected:
        row = await select_component(tx, one.component)
        if row is None or row.org != opening.org:
            raise Refused("invalid", "components", "names no component of this organization")
        page = await select_page(tx, row.page_uid)
        if page is None or page.project not in (None, opening.project):
            raise Refused("invalid", "components", "names a component of another project")
        found.append((row.page, row.id, one))
    for _, _, one in sorted(found, key=lambda item: item[:2]):
        if one.status is not None:
            await update_component(
                tx, principal, one.component, ComponentEdit(manual_status=one.status)
            )
    named = tuple(dict.fromkeys(one.component for one in affected))
    return await open_prepared(tx, principal, replace(opening, components=named))
