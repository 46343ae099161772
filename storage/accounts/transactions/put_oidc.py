"""Single sign-on settings, set by global admins."""

from typing import Final

import msgspec

from ....probes.oidc.oidc_settings import OidcSettings, sign_on_faults, with_client_secret
from ...core.refusal import Refused
from ...engine.keyring import CannotOpen, Keyring
from ...engine.pools import Tx
from ..queries.oidc_settings import NAME, select_sign_on
from ..rows import INSTANCE
from ..rules.access import Need, Permission, Principal
from .authorize import audit, demand
from .write_setting import write_setting

EDIT: Final = Permission(Need.GLOBAL_ADMIN)


async def merged_sign_on(
    tx: Tx,
    principal: Principal,
    given: OidcSettings,
    secret: str | None,
    configured: OidcSettings,
    keyring: Keyring,
) -> OidcSettings:
    """Returns the settings to store. A blank secret keeps the current one.

    Raises:
        Refused forbidden, invalid with the field.
    """
    demand(principal, EDIT, None)
    try:
        before = await select_sign_on(tx, keyring, configured)
    except CannotOpen:
        # No key decrypts the stored secret, so it must be given again.
        if not secret:
            fault = "must be given again, as no configured key opens it"
            raise Refused("invalid", "client_secret", fault) from None
        before = OidcSettings()
    whole = with_client_secret(given, secret, before)
    if whole is None:
        fault = "must be given again, as issuer or client changed"
        raise Refused("invalid", "client_secret", fault)
    for field, rule in sign_on_faults(whole):
        raise Refused("invalid", field, rule)
    return whole


async def put_sign_on(tx: Tx, principal: Principal, whole: OidcSettings, keyring: Keyring) -> None:
    """Writes merged settings. Equal settings are not audited.

    Raises:
        Refused forbidden, encryption_key_missing.
    """
    demand(principal, EDIT, None)
    plain = msgspec.structs.replace(whole, client_secret="")
    value = msgspec.json.encode(plain).decode()
    if not await write_setting(tx, NAME, value, whole.client_secret, keyring):
        return
    target = f"settings:oidc enabled={whole.enabled} issuer={whole.issuer}"
    await audit(tx, principal, INSTANCE, "settings.oidc", target)
