"""Decryption of a definition: its secret settings and the values that it refers to."""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from ...engine.keyring import Keyring
from ..queries.check_definitions import Definition
from ..rules.secret import references, referred_key
from .config_secrets import decrypt
from .edit_secrets import place_of


@dataclass(frozen=True, slots=True)
class OpenedConfig:
    """Decrypted config.

    `plain` and `secret` are the two parts of the config. `values` are those of its `_ref` settings,
    under the key without `_ref`. `missing` are settings whose secret does not exist.
    """

    plain: dict[str, Any] = field(repr=False)
    secret: dict[str, Any] = field(repr=False)
    values: dict[str, str] = field(repr=False)
    missing: tuple[str, ...] = ()


def open_material(keyring: Keyring, definition: Definition) -> OpenedConfig:
    """Decrypts a definition.

    Raises:
        CannotOpen if no key of the ring decrypts one of the values.
    """
    plain: dict[str, Any] = msgspec.json.decode(definition.config)
    secret = decrypt(keyring, definition.config_ciphertext, definition.uid)
    sealed = dict(
        zip(
            definition.secret_names,
            zip(definition.secret_uids, definition.secret_values, strict=True),
            strict=True,
        )
    )
    values: dict[str, str] = {}
    missing: list[str] = []
    for setting, name in references(plain).items():
        if name not in sealed:
            missing.append(setting)
            continue
        uid, value = sealed[name]
        values[referred_key(setting)] = keyring.open(value, place_of(uid)).decode()
    return OpenedConfig(plain, dict(secret), values, tuple(missing))
