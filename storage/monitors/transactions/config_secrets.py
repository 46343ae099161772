"""Secrets of a monitor's config: stored separately, encrypted, and never returned.

A blank value on write keeps the stored one. If scheme, host or port changed of the target, of the
proxy, or of the address to which the value is sent, it must be given again, so that a stored
credential is not sent to another host.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any
from uuid import UUID

import msgspec

from ....probes.check.monitor_spec import FieldType, is_credential_header
from ....probes.check.registry import spec_of
from ...core.refusal import Refused
from ...engine.keyring import CipherContext, Keyring

HEADERS = "headers"


def place_of(monitor: UUID) -> CipherContext:
    return CipherContext("monitors", "config_ciphertext", monitor)


def split(kind: str, config: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the config without its secrets, and the secrets. Secrets are replaced by blanks."""
    spec = spec_of(kind)
    fields = {field.name: field for field in spec.fields} if spec else {}
    plain: dict[str, Any] = {}
    secret: dict[str, Any] = {}
    for name, value in config.items():
        field = fields.get(name)
        if field is not None and field.type is FieldType.HEADERS and isinstance(value, Mapping):
            hidden = {k: v for k, v in value.items() if is_credential_header(k)}
            plain[name] = {k: "" if k in hidden else v for k, v in value.items()}
            if hidden:
                secret[name] = hidden
        elif field is not None and field.secret:
            plain[name] = ""
            secret[name] = _text(value) if field.type is FieldType.DOCUMENT else value
        else:
            plain[name] = value
    return plain, secret


def _text(document: Any) -> Any:
    """Returns a document as text, given as text or object."""
    is_object = isinstance(document, Mapping)
    return msgspec.json.encode(document).decode() if is_object else document


def readable(
    kind: str, config: dict[str, Any], secrets: Callable[[], Mapping[str, Any]]
) -> dict[str, Any]:
    """Returns the config with documents as objects, for callers that can edit the monitor.

    `secrets` is called only if there is a document, because decryption is expensive.
    """
    spec = spec_of(kind)
    for field in spec.fields if spec else ():
        if field.type is FieldType.DOCUMENT and field.secret:
            text = secrets().get(field.name)
            if text:
                config[field.name] = msgspec.json.decode(text)
    return config


def join(plain: Mapping[str, Any], secret: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the complete config for a probe."""
    whole = dict(plain)
    for name, value in secret.items():
        if isinstance(value, Mapping):
            whole[name] = {**whole.get(name, {}), **value}
        else:
            whole[name] = value
    return whole


def keep_blanks(
    secret: Mapping[str, Any],
    stored: Mapping[str, Any],
    *,
    moved: bool,
    moved_settings: Collection[str] = (),
) -> dict[str, Any]:
    """Returns the secrets after a write.

    A blank keeps the stored value unless the target moved. `moved_settings` are the secrets whose
    own address moved.
    """
    kept: dict[str, Any] = {}
    for name, value in secret.items():
        before = stored.get(name)
        if isinstance(value, Mapping):
            before = before if isinstance(before, Mapping) else {}
            kept[name] = {
                k: _kept(f"config.{name}.{k}", v, before.get(k), moved=moved)
                for k, v in value.items()
            }
        else:
            gone = moved or name in moved_settings
            kept[name] = _kept(f"config.{name}", value, before, moved=gone)
    return {name: value for name, value in kept.items() if value not in ("", None, {})}


def expect_replaced(blanks: Mapping[str, Any], secret: Mapping[str, Any]) -> None:
    """Checks that a write replaces or removes all stored secrets, which no key decrypts.

    `blanks` are the stored secrets with blank values.

    Raises:
        Refused invalid with the field of a secret that is blank.
    """
    for name, stored in blanks.items():
        value = secret.get(name)
        if isinstance(stored, Mapping):
            inner = value if isinstance(value, Mapping) else {}
            expect = {f"config.{name}.{key}": inner.get(key) for key in stored if key in inner}
        else:
            expect = {f"config.{name}": value} if name in secret else {}
        for field, given in expect.items():
            if given in ("", None):
                fault = "must be given again, as no configured key opens it"
                raise Refused("invalid", field, fault)


def _kept(field: str, value: Any, stored: Any, *, moved: bool) -> Any:
    if value not in ("", None):
        return value
    if stored not in ("", None) and moved:
        raise Refused("invalid", field, "must be given again, as scheme, host or port changed")
    return stored


def encrypt(keyring: Keyring, secret: Mapping[str, Any], monitor: UUID) -> bytes | None:
    """Returns the encrypted secrets, None without secrets.

    Raises:
        Refused encryption_key_missing without a key.
    """
    if not secret:
        return None
    return keyring.seal(msgspec.json.encode(secret), place_of(monitor))


def decrypt(keyring: Keyring, sealed: bytes | None, monitor: UUID) -> dict[str, Any]:
    """Returns the decrypted secrets.

    Raises:
        CannotOpen if no key of the ring decrypts them.
    """
    if sealed is None:
        return {}
    opened: dict[str, Any] = msgspec.json.decode(keyring.open(sealed, place_of(monitor)))
    return opened
