"""Secrets of channel settings: stored separately, encrypted, and shown only as a mask.

A blank or the mask keeps the stored value. If the edit changes the host, the secret must be entered
again, so that an editor cannot redirect it to another server.
"""

from base64 import b64decode
from collections.abc import Mapping
from uuid import UUID

import msgspec

from ....probes.senders.channel_spec import MASK, ChannelSpec
from ....probes.senders.deliver import SPECS
from ...core.refusal import Refused
from ...engine.keyring import CannotOpen, CipherContext, Keyring
from ..rows import ChannelRow, ContactMethodRow


def place_of(channel: UUID) -> CipherContext:
    return CipherContext("notification_channels", "config_ciphertext", channel)


def place_of_secret(secret: UUID) -> CipherContext:
    """Returns the place of the value of a project secret."""
    return CipherContext("project_secrets", "value_ciphertext", secret)


def place_of_method(method: UUID) -> CipherContext:
    return CipherContext("contact_methods", "config_ciphertext", method)


def spec_of(kind: str) -> ChannelSpec:
    """Returns the channel type. Raises: Refused if the type is unknown."""
    spec = SPECS.get(kind)
    if spec is None:
        raise Refused("invalid", "type", "is not a channel type")
    return spec


def checked(spec: ChannelSpec, config: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings without blanks. Raises: Refused with the first fault."""
    whole = {key: value for key, value in config.items() if value}
    for fault in spec.faults(whole):
        raise Refused("invalid", fault.field, fault.message)
    return whole


def merged(
    spec: ChannelSpec, before: Mapping[str, str], given: Mapping[str, str]
) -> dict[str, str]:
    """Returns the complete settings after a partial edit."""
    kept = {k for k, v in given.items() if k in spec.secrets and v in ("", MASK)}
    whole = {**before, **{k: v for k, v in given.items() if k not in kept}}
    for reference, name in spec.references.items():
        # A new value replaces the reference, and a new reference the value.
        if given.get(reference) and given.get(name, "") in ("", MASK):
            whole.pop(name, None)
        elif name in given and name not in kept and not given.get(reference):
            whole.pop(reference, None)
    whole = checked(spec, whole)
    if spec.has_moved(before, whole):
        for name in sorted(spec.secrets & set(before) & set(whole)):
            if not given.get(name) or name in kept:
                fault = "must be given again, as host or port changed"
                raise Refused("invalid", f"config.{name}", fault)
    return whole


def split(
    spec: ChannelSpec, config: Mapping[str, str], keyring: Keyring, place: CipherContext
) -> tuple[str, bytes | None]:
    """Returns the plain settings as JSON text, and the encrypted secrets or None.

    Raises: Refused encryption_key_missing.
    """
    plain = {k: "" if k in spec.secrets else v for k, v in config.items()}
    secret = {k: v for k, v in config.items() if k in spec.secrets}
    sealed = keyring.seal(msgspec.json.encode(secret), place) if secret else None
    return msgspec.json.encode(plain).decode(), sealed


def shown(row: ChannelRow) -> dict[str, str]:
    """Returns the settings with masked secrets."""
    secrets = SPECS[row.type].secrets
    plain = msgspec.json.decode(row.config, type=dict[str, str])
    return {name: MASK if name in secrets else value for name, value in plain.items()}


def opened(row: ChannelRow, keyring: Keyring) -> dict[str, str]:
    """Returns the settings with secrets, for a sender.

    Raises: CannotOpen if no key decrypts them.
    """
    plain = _with_referred(msgspec.json.decode(row.config, type=dict[str, str]), row, keyring)
    if row.config_ciphertext is None:
        return plain
    place = place_of(row.uid) if row.contact_method is None else place_of_method(row.uid)
    text = keyring.open(row.config_ciphertext, place)
    return {**plain, **msgspec.json.decode(text, type=dict[str, str])}


def _with_referred(plain: dict[str, str], row: ChannelRow, keyring: Keyring) -> dict[str, str]:
    """Returns the settings with the values of the project secrets that they name.

    Raises: CannotOpen if no key decrypts a value.
    """
    spec = SPECS.get(row.type)
    referred = msgspec.json.decode(row.referred, type=dict[str, tuple[UUID, str]])
    for setting, (secret, sealed) in referred.items():
        if spec is not None and setting in spec.references:
            value = keyring.open(b64decode(sealed), place_of_secret(secret)).decode()
            plain = {**plain, spec.references[setting]: value}
    references = {} if spec is None else spec.references
    return {name: value for name, value in plain.items() if name not in references}


def is_broken(row: ChannelRow, config: Mapping[str, str]) -> bool:
    """Returns whether a named project secret is missing, or its value not valid for its setting.

    `config` are the opened settings.
    """
    spec = SPECS.get(row.type)
    named = {} if spec is None else references_of(spec, plain_settings(row.config))
    if spec is None or not named:
        return False
    # Without an optional one, such as a signature, the message would be another.
    found = msgspec.json.decode(row.referred, type=dict[str, tuple[UUID, str]])
    return not found.keys() >= named.keys() or bool(spec.faults(config))


def references_of(spec: ChannelSpec, config: Mapping[str, str]) -> dict[str, str]:
    """Returns the names of the project secrets by the setting that refers to them."""
    return {key: config[key] for key in spec.references if config.get(key)}


def expect_secrets(
    spec: ChannelSpec,
    config: Mapping[str, str],
    secrets: Mapping[str, tuple[UUID, bytes]],
    keyring: Keyring,
) -> None:
    """Checks the values of the project secrets that complete settings name.

    Raises: Refused invalid with the setting.
    """
    whole = {key: value for key, value in config.items() if key not in spec.references}
    for key, name in references_of(spec, config).items():
        if name not in secrets:
            raise Refused("invalid", f"config.{key}", "names no secret of this project")
        secret, sealed = secrets[name]
        try:
            value = keyring.open(sealed, place_of_secret(secret)).decode()
        except CannotOpen:
            fault = "names a secret that no configured key opens"
            raise Refused("invalid", f"config.{key}", fault) from None
        whole[spec.references[key]] = value
        for wrong in spec.faults(whole):
            if wrong.field == f"config.{spec.references[key]}":
                rule = f"names a secret whose value {wrong.message}"
                raise Refused("invalid", f"config.{key}", rule)


def plain_settings(config: str) -> dict[str, str]:
    """Returns the settings of a stored row, with blanks for secrets."""
    return msgspec.json.decode(config, type=dict[str, str])


def opened_method(row: ContactMethodRow, keyring: Keyring) -> dict[str, str]:
    """Returns the settings of a contact method with secrets. Raises: CannotOpen."""
    plain = plain_settings(row.config)
    if row.config_ciphertext is None:
        return plain
    text = keyring.open(row.config_ciphertext, place_of_method(row.uid))
    return {**plain, **msgspec.json.decode(text, type=dict[str, str])}


def opened_for_edit(
    row: ChannelRow, spec: ChannelSpec, given: Mapping[str, str], keyring: Keyring
) -> dict[str, str]:
    """Returns the settings with secrets and references, as the basis of an edit.

    If no key decrypts the secrets, returns the settings without them.

    Raises: Refused invalid if no key decrypts the secrets and the edit does not replace all.
    """
    try:
        plain = msgspec.json.decode(row.config, type=dict[str, str])
        if row.config_ciphertext is None:
            return plain
        text = keyring.open(row.config_ciphertext, place_of(row.uid))
        return {**plain, **msgspec.json.decode(text, type=dict[str, str])}
    except CannotOpen:
        plain = msgspec.json.decode(row.config, type=dict[str, str])
        for name in sorted(spec.secrets & set(plain)):
            if given.get(name) in (None, "", MASK):
                fault = "must be given again, as no configured key opens it"
                raise Refused("invalid", f"config.{name}", fault) from None
        return {k: v for k, v in plain.items() if k not in spec.secrets}
