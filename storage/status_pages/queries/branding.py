"""Stored public branding of the installation."""

from typing import Final

import msgspec

from ...accounts.tables.instance_settings import select_setting
from ...engine.pools import Tx
from ..rules.branding import NO_BRANDING, Branding

NAME: Final = "branding"


async def select_branding(tx: Tx) -> Branding | None:
    """Returns None if no branding was set."""
    found = await select_setting(tx, NAME)
    return None if found is None else msgspec.json.decode(found, type=Branding)


async def shown_branding(tx: Tx) -> Branding:
    return await select_branding(tx) or NO_BRANDING
