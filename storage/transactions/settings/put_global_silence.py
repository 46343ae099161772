"""Global admins say that people are told of nothing new for a while, or that they are again."""

from typing import Final

import msgspec

from ...pools import Tx
from ...rules.access import Action, Need, Principal
from ...rules.global_silence import GlobalSilence, silence_fault
from ...rules.instant import to_text
from ...rules.refusal import Refused
from ...tables.audits import INSTANCE
from ...tables.settings import put_setting
from ...views.global_silence import NAME
from ..authority import audit, demand

_EDIT: Final = Action(Need.GLOBAL_ADMIN)


async def put_global_silence(tx: Tx, principal: Principal, silence: GlobalSilence) -> None:
    """Refused forbidden, and invalid with the field that cannot be."""
    demand(principal, _EDIT, None)
    fault = silence_fault(silence, tx.now)
    if fault is not None:
        raise Refused("invalid", *fault)
    await put_setting(tx, NAME, msgspec.json.encode(silence).decode())
    until = f" until={to_text(silence.until)}" if silence.enabled and silence.until else ""
    target = f"settings:alerting silenced={silence.enabled}{until}"
    await audit(tx, principal, INSTANCE, "settings.alerting", target)
