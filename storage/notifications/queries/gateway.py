"""Gateway for SMS and voice calls: a setting of the installation, read at each use."""

from typing import Final

import msgspec

from ....probes.senders.gateway_settings import GatewaySecrets, GatewaySettings, PhoneGateway
from ...accounts.tables.instance_settings import select_whole_setting
from ...engine.keyring import CannotOpen, Keyring
from ...engine.pools import Tx
from .mail_settings import place_of

NAME: Final = "gateway"


async def select_gateway_shown(tx: Tx) -> tuple[GatewaySettings, bool]:
    """Returns the settings without secrets, and whether secrets are stored."""
    row = await select_whole_setting(tx, NAME)
    if row is None:
        return GatewaySettings(), False
    found = msgspec.json.decode(row.value, type=GatewaySettings)
    return found, row.secret_ciphertext is not None


async def select_gateway(tx: Tx, keyring: Keyring) -> PhoneGateway | None:
    """Returns the stored gateway, None without one.

    Raises: CannotOpen if no key decrypts the secrets.
    """
    row = await select_whole_setting(tx, NAME)
    if row is None:
        return None
    secrets = GatewaySecrets()
    if row.secret_ciphertext is not None:
        text = keyring.open(row.secret_ciphertext, place_of(row))
        secrets = msgspec.json.decode(text, type=GatewaySecrets)
    return PhoneGateway(msgspec.json.decode(row.value, type=GatewaySettings), secrets)


async def gateway_in_force(tx: Tx, keyring: Keyring) -> PhoneGateway | None:
    """Returns the gateway for a sender, None without one or if no key decrypts the secrets."""
    try:
        return await select_gateway(tx, keyring)
    except CannotOpen:
        return None
