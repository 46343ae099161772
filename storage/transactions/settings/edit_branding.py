"""Global admins say what the installation looks like to the public."""

from typing import Final

import msgspec

from ...pools import Tx
from ...rules.access import Action, Need, Principal
from ...rules.branding import Branding, branding_fault
from ...rules.refusal import Refused
from ...tables.audits import INSTANCE
from ...tables.settings import put_setting
from ...views.branding import NAME
from ..authority import audit, demand

_EDIT: Final = Action(Need.GLOBAL_ADMIN)


async def put_branding(tx: Tx, principal: Principal, branding: Branding) -> None:
    """Refused forbidden, and invalid with the field that cannot be."""
    demand(principal, _EDIT, None)
    fault = branding_fault(branding)
    if fault is not None:
        raise Refused("invalid", *fault)
    await put_setting(tx, NAME, msgspec.json.encode(branding).decode())
    await audit(tx, principal, INSTANCE, "settings.branding", "settings:branding")
