"""Single sign-on settings: the stored ones, otherwise the configured ones."""

from typing import Final

import msgspec

from ....probes.oidc.oidc_settings import OidcSettings
from ...engine.keyring import CipherContext, Keyring
from ...engine.pools import Tx
from ..tables.instance_settings import select_whole_setting

NAME: Final = "oidc"


class OidcSettingsView(msgspec.Struct, frozen=True):
    """Settings without the secret.

    `has_secret` states whether one exists, and `is_set_here` whether these are the stored settings.
    """

    settings: OidcSettings
    has_secret: bool
    is_set_here: bool


async def select_sign_on(tx: Tx, keyring: Keyring, configured: OidcSettings) -> OidcSettings:
    """Returns the settings with the secret.

    Raises:
        CannotOpen if no key decrypts the secret.
    """
    row = await select_whole_setting(tx, NAME)
    if row is None:
        return configured
    found = msgspec.json.decode(row.value, type=OidcSettings)
    if row.secret_ciphertext is None:
        return found
    place = CipherContext("settings", "secret_ciphertext", row.uid)
    secret = keyring.open(row.secret_ciphertext, place).decode()
    return msgspec.structs.replace(found, client_secret=secret)


async def select_sign_on_shown(tx: Tx, configured: OidcSettings) -> OidcSettingsView:
    row = await select_whole_setting(tx, NAME)
    if row is None:
        plain = msgspec.structs.replace(configured, client_secret="")
        return OidcSettingsView(plain, bool(configured.client_secret), is_set_here=False)
    found = msgspec.json.decode(row.value, type=OidcSettings)
    return OidcSettingsView(found, row.secret_ciphertext is not None, is_set_here=True)
