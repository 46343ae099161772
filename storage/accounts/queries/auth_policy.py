"""Sign-in policy: the stored one, otherwise the configured one."""

from typing import Final

import msgspec

from ...engine.pools import Tx
from ..rules.auth_policy import AuthPolicy
from ..tables.instance_settings import select_setting

NAME: Final = "auth_policy"


async def select_auth_policy(tx: Tx) -> AuthPolicy | None:
    """Returns None if no policy was stored."""
    found = await select_setting(tx, NAME)
    return None if found is None else msgspec.json.decode(found, type=AuthPolicy)


async def auth_policy_in_force(tx: Tx, configured: AuthPolicy) -> AuthPolicy:
    return await select_auth_policy(tx) or configured
