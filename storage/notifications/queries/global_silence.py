"""Reads of the global silence."""

from typing import Final

import msgspec

from ...accounts.tables.instance_settings import select_setting
from ...engine.pools import Tx
from ..rules.global_silence import NO_SILENCE, GlobalSilence

NAME: Final = "alerting"


async def select_global_silence(tx: Tx) -> GlobalSilence | None:
    """Returns the stored setting, even if it has expired; None if it was never set."""
    found = await select_setting(tx, NAME)
    return None if found is None else msgspec.json.decode(found, type=GlobalSilence)


async def global_silence_in_force(tx: Tx) -> GlobalSilence | None:
    """Returns the silence that is in force; None otherwise."""
    found = await select_global_silence(tx) or NO_SILENCE
    return found if found.is_in_force(tx.now) else None
