"""Installation-wide defaults of new monitors, set by global admins.

Existing ones keep theirs.
"""

from typing import Final

import msgspec

from ...accounts.rows import INSTANCE
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.tables.instance_settings import put_setting
from ...accounts.transactions.authorize import audit, demand
from ...core.refusal import Refused
from ...engine.pools import Tx
from ..queries.monitor_defaults import NAME
from ..rules.monitor_defaults import MonitorDefaults, defaults_fault

EDIT: Final = Permission(Need.GLOBAL_ADMIN)


async def put_monitor_defaults(tx: Tx, principal: Principal, defaults: MonitorDefaults) -> None:
    """Writes the defaults. Equal ones are not audited.

    Raises:
        Refused forbidden, invalid with the field.
    """
    demand(principal, EDIT, None)
    fault = defaults_fault(defaults)
    if fault is not None:
        raise Refused("invalid", *fault)
    if await put_setting(tx, NAME, msgspec.json.encode(defaults).decode()):
        target = "settings:monitor_defaults"
        await audit(tx, principal, INSTANCE, "settings.monitor_defaults", target)
