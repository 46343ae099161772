"""Sign-in policy, set by global admins.

Existing sessions keep their expiry. A newly required second factor applies from the next request.
"""

from typing import Final

import msgspec

from ...core.refusal import Refused
from ...engine.pools import Tx
from ..queries.auth_policy import NAME
from ..rows import INSTANCE
from ..rules.access import Need, Permission, Principal
from ..rules.auth_policy import AuthPolicy, RequireTotp, policy_fault
from ..tables.instance_settings import put_setting
from .authorize import audit, demand

EDIT: Final = Permission(Need.GLOBAL_ADMIN)


async def put_auth_policy(
    tx: Tx, principal: Principal, policy: AuthPolicy, *, can_seal: bool
) -> None:
    """Writes the policy. An equal policy is not audited.

    Raises:
        Refused forbidden, invalid with the field; encryption_key_missing if second factors are
        required but could not be encrypted.
    """
    demand(principal, EDIT, None)
    fault = policy_fault(policy)
    if fault is not None:
        raise Refused("invalid", *fault)
    if policy.require_totp is not RequireTotp.NONE and not can_seal:
        raise Refused("encryption_key_missing")
    if not await put_setting(tx, NAME, msgspec.json.encode(policy).decode()):
        return
    target = f"settings:auth_policy require_totp={policy.require_totp}"
    await audit(tx, principal, INSTANCE, "settings.auth_policy", target)
