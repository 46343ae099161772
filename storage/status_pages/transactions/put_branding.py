"""Public branding of the installation, set by global admins."""

from typing import Final

import msgspec

from ...accounts.rows import INSTANCE
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.tables.instance_settings import put_setting
from ...accounts.transactions.authorize import audit, demand
from ...core.refusal import Refused
from ...engine.pools import Tx
from ..queries.branding import NAME
from ..rules.branding import Branding, branding_fault

EDIT: Final = Permission(Need.GLOBAL_ADMIN)


async def put_branding(tx: Tx, principal: Principal, branding: Branding) -> None:
    """Writes the branding. An equal one is not audited.

    Raises:
        Refused forbidden, invalid with the field.
    """
    demand(principal, EDIT, None)
    fault = branding_fault(branding)
    if fault is not None:
        raise Refused("invalid", *fault)
    if await put_setting(tx, NAME, msgspec.json.encode(branding).decode()):
        await audit(tx, principal, INSTANCE, "settings.branding", "settings:branding")
