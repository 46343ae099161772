"""Stored public branding of the installation, and what a status page shows."""

from typing import Final

import msgspec

from ...accounts.tables.instance_settings import select_setting
from ...engine.pools import Tx
from ..rules.branding import NO_BRANDING, Branding, PageBranding, branding_of_page

NAME: Final = "branding"


async def select_branding(tx: Tx) -> Branding | None:
    """Returns None if no branding was set."""
    found = await select_setting(tx, NAME)
    return None if found is None else msgspec.json.decode(found, type=Branding)


async def shown_branding(tx: Tx) -> Branding:
    return await select_branding(tx) or NO_BRANDING


async def page_branding(tx: Tx, own: PageBranding) -> Branding:
    """Returns the branding of a status page with its own fields."""
    return branding_of_page(await shown_branding(tx), own)
