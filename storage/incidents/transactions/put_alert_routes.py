"""Replacement of the routes of external alerts by editors of the project.

The write locks the project, so that two edits follow each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ...accounts.rows import ProjectRow
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import audit, demand_project, is_managed
from ...accounts.transactions.authorize_tenant_write import lock_project
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...mutes.rules.label_matcher import BadMatcher, matchers_text
from ...oncall.tables.escalation_policies import lock_shared_policy
from ...services.tables.services import lock_shared_service
from ..queries.alert_routes import select_route_marks, select_routes_of
from ..rules.alert_route import ROUTES_MOST, route_matchers
from ..tables import alert_routes

EDIT: Final = Permission(Need.EDITOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteDraft:
    """Route to one of `service` and `policy`. The default has no matchers."""

    matchers: str = ""
    service: UUID | None = None
    policy: UUID | None = None


async def put_alert_routes(
    tx: Tx,
    principal: Principal,
    project: UUID,
    routes: Sequence[RouteDraft],
    default: RouteDraft | None,
) -> None:
    """Replaces the routes and the default. Equal ones are not written.

    Raises: Refused not_found, forbidden, invalid with its field, managed_by_file.
    """
    home = await demand_project(tx, principal, EDIT, project)
    read_routes(routes)
    await lock_project(tx, home)
    marks = await select_route_marks(tx, home.org, home.id)
    if marks is not None and is_managed(principal, marks.managed_by, marks.orphaned_at):
        raise Refused("managed_by_file")
    await put_held_routes(tx, principal, home, routes, default)


async def put_held_routes(
    tx: Tx,
    principal: Principal,
    home: ProjectRow,
    routes: Sequence[RouteDraft],
    default: RouteDraft | None,
) -> None:
    """Replaces the routes and the default of a locked project. Equal ones are not written.

    Raises: Refused invalid with its field.
    """
    texts = read_routes(routes)
    drafts = [*routes, *([] if default is None else [default])]
    names = [f"routes[{index}]." for index in range(len(routes))] + ["default."]
    services = await _services(tx, home, drafts, names)
    policies = await _policies(tx, home, drafts, names)
    whole = [
        (text, services.get(draft.service), policies.get(draft.policy))
        for text, draft in zip([*texts, ""], drafts, strict=False)
    ]
    stored = await select_routes_of(tx, home.org, home.id)
    if whole == [(row.matchers, row.service, row.policy) for row in stored]:
        return
    await alert_routes.replace_routes(tx, home.org, home.id, whole)
    target = f"project:{home.uid} routes={len(routes)} default={default is not None}".lower()
    await audit(tx, principal, home.org, "project.alert_routes", target)


def read_routes(routes: Sequence[RouteDraft]) -> list[str]:
    """Returns the normal forms of the matchers.

    Raises: Refused invalid with the field of the first fault.
    """
    if len(routes) > ROUTES_MOST:
        raise Refused("invalid", "routes", f"must have at most {ROUTES_MOST} entries")
    found = []
    for index, route in enumerate(routes):
        try:
            found.append(matchers_text(route_matchers(route.matchers)))
        except BadMatcher as fault:
            raise Refused("invalid", f"routes[{index}].matchers", str(fault)) from None
    return found


async def _services(
    tx: Tx, home: ProjectRow, drafts: Sequence[RouteDraft], names: Sequence[str]
) -> dict[UUID | None, int]:
    """Locks the services against deletion. Returns their keys."""
    found: dict[UUID | None, int] = {}
    for name, draft in zip(names, drafts, strict=False):
        if (draft.service is None) == (draft.policy is None):
            rule = "give one of service_id and escalation_policy_id"
            raise Refused("invalid", f"{name}service_id", rule)
        if draft.service is None or draft.service in found:
            continue
        row = await lock_shared_service(tx, draft.service)
        if row is None or (row.org, row.project) != (home.org, home.id):
            raise Refused("invalid", f"{name}service_id", "names no service of this project")
        if row.escalation_policy is None:
            rule = "names a service without an escalation policy, which pages nobody"
            raise Refused("invalid", f"{name}service_id", rule)
        found[draft.service] = row.id
    return found


async def _policies(
    tx: Tx, home: ProjectRow, drafts: Sequence[RouteDraft], names: Sequence[str]
) -> dict[UUID | None, int]:
    """Locks the escalation policies against deletion. Returns their keys."""
    found: dict[UUID | None, int] = {}
    for name, draft in zip(names, drafts, strict=False):
        if draft.policy is None or draft.policy in found:
            continue
        key = await lock_shared_policy(tx, home.org, home.id, draft.policy)
        if key is None:
            rule = "names no escalation policy of this project"
            raise Refused("invalid", f"{name}escalation_policy_id", rule)
        found[draft.policy] = key
    return found
