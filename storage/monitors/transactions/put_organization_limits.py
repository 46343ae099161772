"""Limits of all organizations and of single ones, set by global admins.

Invariant: a limit below the present use deletes and stops nothing.
"""

from typing import Final
from uuid import UUID

import msgspec

from ...accounts.rows import INSTANCE, OrganizationRow
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.tables.instance_settings import put_setting
from ...accounts.transactions.authorize import audit, demand
from ...accounts.transactions.authorize_tenant_write import demand_organization
from ...core.refusal import Refused
from ...engine.pools import Tx
from ..queries.organization_limits import NAME, select_own_limits
from ..rules.organization_limits import OrganizationLimits, OwnLimits, limits_fault
from ..tables.organization_limits import put_own_limits

EDIT: Final = Permission(Need.GLOBAL_ADMIN)


async def put_organization_limits(tx: Tx, principal: Principal, limits: OrganizationLimits) -> None:
    """Writes the limits of all organizations without own ones. Equal limits are not audited.

    Raises:
        Refused forbidden, invalid with the field.
    """
    demand(principal, EDIT, None)
    _expect_valid(limits)
    if await put_setting(tx, NAME, msgspec.json.encode(limits).decode()):
        target = "settings:organization_limits"
        await audit(tx, principal, INSTANCE, "settings.organization_limits", target)


async def put_limits_of_organization(
    tx: Tx, principal: Principal, organization: UUID, limits: OwnLimits
) -> OrganizationRow:
    """Writes the own limits of an organization. Equal limits are not written.

    Raises:
        Refused not_found, forbidden, invalid with the field.
    """
    row = await demand_organization(tx, principal, EDIT, organization)
    _expect_valid(limits)
    if limits != await select_own_limits(tx, row.id):
        await put_own_limits(tx, row.id, limits)
        own = " ".join(
            f"{name}={'default' if value is None else value}"
            for name, value in msgspec.structs.asdict(limits).items()
        )
        await audit(tx, principal, row.id, "organization.limits", f"organization:{row.uid} {own}")
    return row


def _expect_valid(limits: OrganizationLimits | OwnLimits) -> None:
    fault = limits_fault(limits)
    if fault is not None:
        raise Refused("invalid", *fault)
