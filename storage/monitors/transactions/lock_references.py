"""References of a monitor's settings to secrets: checked on write, decrypted only for use."""

from collections.abc import Mapping
from typing import Final

from ....probes.check.client_certificate import CLIENT_KEY_REF, key_fault
from ...core.refusal import Refused
from ...engine.keyring import CannotOpen, Keyring
from ...engine.pools import Tx
from ..rules.secret import references, referred_key
from ..tables import secrets
from .edit_secrets import place_of

_KEY_REF: Final = CLIENT_KEY_REF.name


async def lock_references(tx: Tx, org: int, project: int, config: Mapping[str, object]) -> None:
    """Locks the names of the referenced secrets until the transaction ends.

    Raises:
        Refused invalid if a setting names no secret of the project.
    """
    named = references(config)
    if not named:
        return
    held = await secrets.lock_shared_secrets(tx, org, project, set(named.values()))
    for setting, name in sorted(named.items()):
        if name not in held:
            raise Refused("invalid", f"config.{setting}", "names no secret of this project")


async def expect_referred_key(
    tx: Tx, org: int, project: int, config: Mapping[str, object], keyring: Keyring
) -> None:
    """Checks that the private key in a project secret belongs to the client certificate.

    Raises:
        Refused invalid if it is another, or no key of the ring decrypts the secret.
    """
    named = {name: config[name] for name in (_KEY_REF,) if config.get(name)}
    if named:
        expect_key(config, await open_references(tx, org, project, named, keyring))


def expect_key(config: Mapping[str, object], values: Mapping[str, str]) -> None:
    """Checks that an opened key belongs to the client certificate.

    Raises:
        Refused invalid.
    """
    key = values.get(referred_key(_KEY_REF))
    wrong = key_fault(str(config.get("client_cert", "")), key) if key else ""
    if wrong:
        raise Refused("invalid", f"config.{_KEY_REF}", wrong)


async def open_references(
    tx: Tx, org: int, project: int, config: Mapping[str, object], keyring: Keyring
) -> dict[str, str]:
    """Returns the values that the settings refer to, by the keys that a probe uses.

    Raises:
        Refused invalid if a secret does not exist or no key of the ring decrypts it.
    """
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
