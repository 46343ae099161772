"""Encryption of stored secrets with keys that are not in the database.

AES-256-GCM (NIST SP 800-38D). An encrypted value is a version byte, 8 bytes of key id, a nonce of
12 bytes, then ciphertext and tag. Table, column and row are the associated data: a value that is
moved to another row cannot be decrypted.
"""

import base64
import hashlib
import os
from dataclasses import dataclass
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ..core.refusal import Refused

_VERSION = b"\x01"
_KEY_ID_BYTES = 8
_NONCE_BYTES = 12
KEY_BYTES = 32


class CannotOpen(Exception):
    """The keyring lacks the key of the value, or the value was changed."""


@dataclass(frozen=True, slots=True)
class CipherContext:
    """Table, column and row of an encrypted value: the associated data."""

    table: str
    column: str
    row: UUID

    def associated_data(self) -> bytes:
        return f"{self.table}/{self.column}/{self.row}".encode()


class Keyring:
    """Keys: the current one encrypts, the current and the previous ones decrypt."""

    def __init__(self, current: bytes | None, previous: tuple[bytes, ...] = ()) -> None:
        for key in (current, *previous):
            if key is not None and len(key) != KEY_BYTES:
                raise ValueError(f"a key has {KEY_BYTES} bytes")
        self._current = _key_id(current) if current else None
        keys = [key for key in (current, *previous) if key]
        self._ciphers = {_key_id(key): AESGCM(key) for key in keys}

    @property
    def can_seal(self) -> bool:
        return self._current is not None

    def seal(self, plaintext: bytes, place: CipherContext) -> bytes:
        """Encrypts a value. Raises Refused encryption_key_missing without a current key."""
        if self._current is None:
            raise Refused("encryption_key_missing")
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._ciphers[self._current].encrypt(nonce, plaintext, place.associated_data())
        return _VERSION + self._current + nonce + sealed

    def open(self, sealed: bytes, place: CipherContext) -> bytes:
        """Decrypts a value. Raises CannotOpen without its key, or if value or context differ."""
        key_id = sealed[1 : 1 + _KEY_ID_BYTES]
        nonce_end = 1 + _KEY_ID_BYTES + _NONCE_BYTES
        cipher = self._ciphers.get(key_id)
        if sealed[:1] != _VERSION or cipher is None:
            raise CannotOpen(f"{place.table}.{place.column}: no key of the ring opens it")
        try:
            return cipher.decrypt(
                sealed[1 + _KEY_ID_BYTES : nonce_end],
                sealed[nonce_end:],
                place.associated_data(),
            )
        except InvalidTag as error:
            raise CannotOpen(f"{place.table}.{place.column}: it was changed or moved") from error

    def is_current(self, sealed: bytes) -> bool:
        return sealed[1 : 1 + _KEY_ID_BYTES] == self._current


def key_from_text(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def new_key_text() -> str:
    return base64.b64encode(os.urandom(KEY_BYTES)).decode()


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"leadline key id" + key).digest()[:_KEY_ID_BYTES]
