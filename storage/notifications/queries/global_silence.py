"""Whether people are to be told of anything new just now."""

from typing import Final

import msgspec

from ...accounts.tables.instance_settings import select_setting
from ...engine.pools import Tx
from ..rules.global_silence import NO_SILENCE, GlobalSilence

NAME: Final = "alerting"


async def select_global_silence(tx: Tx) -> GlobalSilence | None:
    """As it was set, whether or not it is over; None where nobody ever set one."""
    found = await select_setting(tx, NAME)
    return None if found is None else msgspec.json.decode(found, type=GlobalSilence)


async def global_silence_in_force(tx: Tx) -> GlobalSilence | None:
    """None where people are told."""
    found = await select_global_silence(tx) or NO_SILENCE
    return found if found.is_in_force(tx.now) else None
