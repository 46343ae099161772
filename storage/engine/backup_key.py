"""The encryption keys inside a backup, encrypted under a passphrase.

scrypt (RFC 7914) derives a key from the passphrase, AES-256-GCM (NIST SP 800-38D) encrypts. The
SHA-256 sum of the dump is authenticated with it: keys of another backup do not open.
"""

import os
from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from .backup_file import BadBackup

PASSPHRASE_SHORTEST: Final = 12
PASSPHRASE_LONGEST: Final = 1024
# 128 MiB and some tenths of a second.
_N: Final = 1 << 17
_R: Final = 8
_P: Final = 1
# Bounds the memory that a file can require of this process: 1 GiB.
_N_MOST: Final = 1 << 20
_SALT_BYTES: Final = 16
_NONCE_BYTES: Final = 12


class KeySet(msgspec.Struct, frozen=True):
    """`current` encrypts, `previous` still open older values; base64, as in the configuration."""

    current: str
    previous: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"KeySet({len(self.previous)} previous)"


class _Sealed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kdf: str
    n: int
    r: int
    p: int
    salt: bytes
    nonce: bytes
    ciphertext: bytes


def passphrase_fault(passphrase: str) -> str | None:
    """Returns why a passphrase cannot be used; None if it can."""
    if not PASSPHRASE_SHORTEST <= len(passphrase) <= PASSPHRASE_LONGEST:
        return f"must have {PASSPHRASE_SHORTEST} to {PASSPHRASE_LONGEST} characters"
    try:
        passphrase.encode()
    except UnicodeEncodeError:
        # Bytes of an environment variable that are not UTF-8.
        return "must be text in UTF-8"
    return None


def seal_keys(keys: KeySet, passphrase: str, dump_sha256: str) -> bytes:
    salt, nonce = os.urandom(_SALT_BYTES), os.urandom(_NONCE_BYTES)
    cipher = _cipher(passphrase, salt, _N, _R, _P)
    ciphertext = cipher.encrypt(nonce, msgspec.json.encode(keys), dump_sha256.encode())
    return msgspec.json.encode(_Sealed("scrypt", _N, _R, _P, salt, nonce, ciphertext))


def open_keys(sealed: bytes, passphrase: str, dump_sha256: str) -> KeySet:
    """Raises BadBackup if the passphrase is another one, or the part was changed."""
    try:
        given = msgspec.json.decode(sealed, type=_Sealed)
    except msgspec.MsgspecError as error:
        raise BadBackup(f"the encryption key of the backup is damaged: {error}") from error
    if given.kdf != "scrypt" or not 1 < given.n <= _N_MOST or (given.r, given.p) != (_R, _P):
        raise BadBackup("the encryption key of the backup was encrypted in an unknown way")
    try:
        cipher = _cipher(passphrase, given.salt, given.n, given.r, given.p)
        plain = cipher.decrypt(given.nonce, given.ciphertext, dump_sha256.encode())
        return msgspec.json.decode(plain, type=KeySet)
    except (InvalidTag, ValueError) as error:
        raise BadBackup("the passphrase does not open the encryption key of the backup") from error


def _cipher(passphrase: str, salt: bytes, n: int, r: int, p: int) -> AESGCM:
    return AESGCM(Scrypt(salt=salt, length=32, n=n, r=r, p=p).derive(passphrase.encode()))
