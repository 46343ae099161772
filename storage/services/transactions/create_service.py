"""Creation of a service with its name, paging route and dependencies.

A new service has no declaration, and no time before the first one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from uuid_utils.compat import uuid7

from ...accounts.rules.access import Principal
from ...accounts.transactions.authorize import audit
from ...core.key import ServiceKey
from ...core.naming import name_fault, slug_fault
from ...core.refusal import Refused, expect
from ...core.runbook import runbook_fault
from ...core.slug import free_slug, slug_of
from ...engine.pools import Tx
from ..rows import ServiceRow
from ..rules.service_declaration import description_fault
from ..tables import service_dependencies as service_edges
from ..tables.services import insert_alerting, insert_service, select_service_slugs
from .edit_dependencies import check_upstreams
from .lock_service import lock_home, target_of, written
from .set_paging_target import lock_owning_policy, lock_owning_schedule

SERVICES_OF_PROJECT_MOST: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceDraft:
    """Requested service. `slug` None derives it from the name; empty ids name no route."""

    name: str
    slug: str | None = None
    description: str = ""
    runbook_url: str = ""
    escalation_policy: str = ""
    oncall_schedule: str = ""
    depends_on: Sequence[UUID] = ()


async def create_service(
    tx: Tx, principal: Principal, project: UUID, draft: ServiceDraft, uid: UUID | None = None
) -> ServiceRow:
    """Creates a service, with a new id if `uid` is None.

    Raises:
        Refused not_found, forbidden, invalid with its field, owner_not_in_project, slug_taken,
        service_quota, or an error of `put_dependencies`.
    """
    home, _ = await lock_home(tx, principal, project)
    _check(draft)
    upstreams = await check_upstreams(tx, home, None, draft.depends_on)
    taken = await select_service_slugs(tx, home.org, home.id)
    uid = uid or uuid7()
    values = {
        "org": home.org,
        "uid": uid,
        "project": home.id,
        "slug": draft.slug or free_slug(slug_of(draft.name, "service"), taken),
        "name": draft.name,
        "description": draft.description,
        "runbook_url": draft.runbook_url,
        "escalation_policy": await lock_owning_policy(
            tx, home.org, home.id, draft.escalation_policy
        ),
        "oncall_schedule": await lock_owning_schedule(tx, home.org, home.id, draft.oncall_schedule),
    }
    if len(taken) >= SERVICES_OF_PROJECT_MOST:
        raise Refused("service_quota")
    key = await insert_service(tx, values)
    if key is None:
        raise Refused("slug_taken")
    await insert_alerting(tx, ServiceKey((home.org, key)))
    if upstreams:
        await service_edges.put_edges(tx, ServiceKey((home.org, key)), upstreams)
        await service_edges.raise_generation(tx, home.org, home.id)
    row = await written(tx, uid)
    await audit(tx, principal, row.org, "service.create", target_of(row))
    return row


def _check(draft: ServiceDraft) -> None:
    faults = {
        "name": name_fault(draft.name),
        "slug": None if draft.slug is None else slug_fault(draft.slug),
        "description": description_fault(draft.description),
        "runbook_url": runbook_fault(draft.runbook_url),
    }
    for field, fault in faults.items():
        expect(field, fault)
