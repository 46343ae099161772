"""Encrypted envelope for the secrets of a job, bound to one agent token and to the job.

The key is derived from the token of the request that claims the job. Encryption is AES-256-GCM
(NIST SP 800-38D) with a key by HKDF-SHA256 (RFC 5869). The associated data is the SHA-256 of the
job without its envelope, in the JSON Canonicalization Scheme (RFC 8785). Therefore an envelope does
not decrypt with another token or for another job. Pure: randomness is an argument.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec
import rfc8785
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from .agent_protocol import Envelope, Generation, Job

INFO: Final = b"leadline-envelope-v1"
SALT_BYTES: Final = 32
NONCE_BYTES: Final = 12
KEY_BYTES: Final = 32
CIPHERTEXT_MOST: Final = 1 << 20

# Kind of an envelope. Each was introduced with one carrier generation.
KINDS: Final = {
    Generation.PASSWORDS: "credentials@2",
    Generation.SCENARIOS: "scenario@3",
    Generation.WORKFLOWS: "workflow@4",
}
_GENERATIONS: Final = {kind: generation for generation, kind in KINDS.items()}


class BadEnvelope(Exception):
    """Raised if an envelope does not decrypt or is not valid. The text contains no secret."""


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """Decrypted contents.

    `config` is the secret part of the job's config. `secrets` contains the values of its `_ref`
    settings, by the key without `_ref`.
    """

    config: dict[str, str] = msgspec.field(default_factory=dict)
    secrets: dict[str, str] = msgspec.field(default_factory=dict)


def seal(job: Job, contents: Contents, token: str, salt: bytes, nonce: bytes) -> Job:
    """Returns the job with its envelope. `salt` and `nonce` are random and never reused."""
    if len(salt) != SALT_BYTES or len(nonce) != NONCE_BYTES:
        raise ValueError(f"an envelope takes {SALT_BYTES} and {NONCE_BYTES} random bytes")
    bare = msgspec.structs.replace(job, envelope=msgspec.UNSET)
    plain = msgspec.json.encode(contents)
    sealed = AESGCM(_key(token, salt)).encrypt(nonce, plain, _bound_to(msgspec.to_builtins(bare)))
    envelope = Envelope(
        kind=KINDS[Generation(job.carrier)],
        salt=_text(salt),
        nonce=_text(nonce),
        ciphertext=_text(sealed),
    )
    return msgspec.structs.replace(job, envelope=envelope)


def open_envelope(job: Mapping[str, Any], token: str) -> Contents:
    """Decrypts the envelope of a job.

    `job` is its JSON as received, because unknown fields are part of the associated data too.
    Raises: `BadEnvelope`.
    """
    try:
        envelope = msgspec.convert(job.get("envelope"), Envelope)
        generation = _GENERATIONS[envelope.kind]
        if len(envelope.ciphertext) > CIPHERTEXT_MOST:
            raise BadEnvelope("is too large")
        salt, nonce, sealed = map(_bytes, (envelope.salt, envelope.nonce, envelope.ciphertext))
    except KeyError:
        raise BadEnvelope("is of a kind that is not known") from None
    except (msgspec.ValidationError, ValueError):
        raise BadEnvelope("cannot be read") from None
    if generation < int(job.get("carrier", 0)):
        raise BadEnvelope("is older than its carrier")
    if len(salt) != SALT_BYTES or len(nonce) != NONCE_BYTES:
        raise BadEnvelope("cannot be read")
    bare = {key: value for key, value in job.items() if key != "envelope"}
    try:
        plain = AESGCM(_key(token, salt)).decrypt(nonce, sealed, _bound_to(bare))
        return msgspec.json.decode(plain, type=Contents)
    except (InvalidTag, msgspec.MsgspecError, rfc8785.CanonicalizationError):
        raise BadEnvelope("does not open") from None


def _key(token: str, salt: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=salt, info=INFO).derive(token.encode())


def _bound_to(job: Mapping[str, Any]) -> bytes:
    return sha256(rfc8785.dumps(dict(job))).digest()


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _bytes(text: str) -> bytes:
    return b64decode(text, validate=True)
