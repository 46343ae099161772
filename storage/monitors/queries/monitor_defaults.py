"""Stored defaults of new monitors."""

from typing import Final

import msgspec

from ...accounts.tables.instance_settings import select_setting
from ...engine.pools import Tx
from ..rules.monitor_defaults import BUILT_IN, MonitorDefaults

NAME: Final = "monitor_defaults"


async def select_monitor_defaults(tx: Tx) -> MonitorDefaults | None:
    """Returns None if no defaults were set."""
    found = await select_setting(tx, NAME)
    return None if found is None else msgspec.json.decode(found, type=MonitorDefaults)


async def monitor_defaults_in_force(tx: Tx) -> MonitorDefaults:
    return await select_monitor_defaults(tx) or BUILT_IN
