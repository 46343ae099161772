"""Start and end of the global silence by global admins."""

from typing import Final

import msgspec
from msgspec.structs import replace

from ...accounts.rows import INSTANCE
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.tables.instance_settings import put_setting
from ...accounts.transactions.authorize import audit, demand
from ...core.instant import to_text
from ...core.refusal import Refused
from ...engine.pools import Tx
from ..queries.global_silence import NAME, select_global_silence
from ..rules.global_silence import GlobalSilence, is_same, silence_fault

EDIT: Final = Permission(Need.GLOBAL_ADMIN)


async def put_global_silence(tx: Tx, principal: Principal, silence: GlobalSilence) -> GlobalSilence:
    """Writes the silence with its author and returns it. An equal one keeps its author.

    The end of a silence removes author and reason.

    Raises: Refused forbidden, or invalid with the field.
    """
    demand(principal, EDIT, None)
    fault = silence_fault(silence, tx.now)
    if fault is not None:
        raise Refused("invalid", *fault)
    stored = await select_global_silence(tx)
    if stored is not None and is_same(stored, silence):
        return stored
    if silence.enabled:
        silence = replace(silence, by=principal.label, set_at=tx.now)
    else:
        silence = replace(silence, reason="", by="", set_at=None)
    if not await put_setting(tx, NAME, msgspec.json.encode(silence).decode()):
        return silence
    until = f" until={to_text(silence.until)}" if silence.enabled and silence.until else ""
    reason = f" reason={silence.reason}" if silence.reason else ""
    target = f"settings:alerting silenced={silence.enabled}{until}{reason}"
    await audit(tx, principal, INSTANCE, "settings.alerting", target)
    return silence
