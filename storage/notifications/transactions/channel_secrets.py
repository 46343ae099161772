"""What of a channel's settings is secret is kept apart, sealed, and given back as a mask only.

A blank or the mask keeps the stored value; where it would be sent to another host, it is asked for
again, so that nobody who may edit a channel can have its secrets sent to a place of theirs.
"""

from collections.abc import Mapping
from uuid import UUID

import msgspec

from ....probes.senders import SPECS
from ....probes.senders.channel_spec import MASK, ChannelSpec
from ...core.refusal import Refused
from ...engine.keyring import CannotOpen, CipherContext, Keyring
from ..rows import ChannelRow


def place_of(channel: UUID) -> CipherContext:
    return CipherContext("notification_channels", "config_ciphertext", channel)


def spec_of(kind: str) -> ChannelSpec:
    """Refused where no channel is of that type."""
    spec = SPECS.get(kind)
    if spec is None:
        raise Refused("invalid", "type", "is no type of channel")
    return spec


def checked(spec: ChannelSpec, config: Mapping[str, str]) -> dict[str, str]:
    """The settings without blanks; Refused with the first that is wrong."""
    whole = {key: value for key, value in config.items() if value}
    for fault in spec.faults(whole):
        raise Refused("invalid", fault.field, fault.message)
    return whole


def merged(
    spec: ChannelSpec, before: Mapping[str, str], given: Mapping[str, str]
) -> dict[str, str]:
    """The whole settings after an edit that gave some of them."""
    kept = {k for k, v in given.items() if k in spec.secrets and v in ("", MASK)}
    whole = checked(spec, {**before, **{k: v for k, v in given.items() if k not in kept}})
    if spec.has_moved(before, whole):
        for name in sorted(spec.secrets & set(before)):
            if not given.get(name) or name in kept:
                fault = "must be given again, as host or port changed"
                raise Refused("invalid", f"config.{name}", fault)
    return whole


def split(
    spec: ChannelSpec, config: Mapping[str, str], keyring: Keyring, channel: UUID
) -> tuple[str, bytes | None]:
    """What is stored in clear, as JSON text, and what is sealed, None for nothing. Refused
    encryption_key_missing."""
    plain = {k: "" if k in spec.secrets else v for k, v in config.items()}
    secret = {k: v for k, v in config.items() if k in spec.secrets}
    sealed = keyring.seal(msgspec.json.encode(secret), place_of(channel)) if secret else None
    return msgspec.json.encode(plain).decode(), sealed


def shown(row: ChannelRow) -> dict[str, str]:
    """The settings as everybody may see them."""
    secrets = SPECS[row.type].secrets
    plain = msgspec.json.decode(row.config, type=dict[str, str])
    return {name: MASK if name in secrets else value for name, value in plain.items()}


def opened(row: ChannelRow, keyring: Keyring) -> dict[str, str]:
    """The settings as a sender needs them; CannotOpen where the ring does not open the secrets."""
    plain = msgspec.json.decode(row.config, type=dict[str, str])
    if row.config_ciphertext is None:
        return plain
    text = keyring.open(row.config_ciphertext, place_of(row.uid))
    return {**plain, **msgspec.json.decode(text, type=dict[str, str])}


def opened_for_edit(
    row: ChannelRow, spec: ChannelSpec, given: Mapping[str, str], keyring: Keyring
) -> dict[str, str]:
    """As `opened`; where no key opens the secrets, an edit that gives them all again may go on."""
    try:
        return opened(row, keyring)
    except CannotOpen:
        plain = msgspec.json.decode(row.config, type=dict[str, str])
        for name in sorted(spec.secrets & set(plain)):
            if given.get(name) in (None, "", MASK):
                fault = "must be given again, as no configured key opens it"
                raise Refused("invalid", f"config.{name}", fault) from None
        return {k: v for k, v in plain.items() if k not in spec.secrets}
