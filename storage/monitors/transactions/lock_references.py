"""What a monitor's settings refer to is there when it is written, and opened only to be used."""

from collections.abc import Mapping

from ...core.refusal import Refused
from ...engine.keyring import CannotOpen, Keyring
from ...engine.pools import Tx
from ..rules.secret import references, referred_key
from ..tables import secrets
from .edit_secrets import place_of


async def lock_references(tx: Tx, org: int, project: int, config: Mapping[str, object]) -> None:
    """Refused where a setting names no secret of the project; the others keep their names until
    the monitor is written."""
    named = references(config)
    if not named:
        return
    held = await secrets.lock_shared_secrets(tx, org, project, set(named.values()))
    for setting, name in sorted(named.items()):
        if name not in held:
            raise Refused("invalid", f"config.{setting}", "names no secret of this project")


async def open_references(
    tx: Tx, org: int, project: int, config: Mapping[str, object], keyring: Keyring
) -> dict[str, str]:
    """The values that the settings refer to, by the keys a probe finds them under. Refused where
    one is not there, or no key of the ring opens it."""
    named = references(config)
    found = await secrets.select_secrets_named(tx, org, project, set(named.values()))
    values: dict[str, str] = {}
    for setting, name in sorted(named.items()):
        row = found.get(name)
        if row is None:
            raise Refused("invalid", f"config.{setting}", "names no secret of this project")
        try:
            opened = keyring.open(row.value_ciphertext, place_of(row.uid))
        except CannotOpen:
            fault = "names a secret that no configured key opens"
            raise Refused("invalid", f"config.{setting}", fault) from None
        values[referred_key(setting)] = opened.decode()
    return values
