"""Start and end of the global silence by global admins."""

from typing import Final

import msgspec

from ...accounts.rows import INSTANCE
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.tables.instance_settings import put_setting
from ...accounts.transactions.authorize import audit, demand
from ...core.instant import to_text
from ...core.refusal import Refused
from ...engine.pools import Tx
from ..queries.global_silence import NAME
from ..rules.global_silence import GlobalSilence, silence_fault

EDIT: Final = Permission(Need.GLOBAL_ADMIN)


async def put_global_silence(tx: Tx, principal: Principal, silence: GlobalSilence) -> None:
    """Writes the silence. An equal one is not audited.

    Raises: Refused forbidden, or invalid with the field.
    """
    demand(principal, EDIT, None)
    fault = silence_fault(silence, tx.now)
    if fault is not None:
        raise Refused("invalid", *fault)
    if not await put_setting(tx, NAME, msgspec.json.encode(silence).decode()):
        return
    until = f" until={to_text(silence.until)}" if silence.enabled and silence.until else ""
    target = f"settings:alerting silenced={silence.enabled}{until}"
    await audit(tx, principal, INSTANCE, "settings.alerting", target)
