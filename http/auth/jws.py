"""Whether a token is signed by one of a provider's keys (RFC 7515, RFC 7519).

Asymmetric algorithms only, each with the keys that it is for: a public key can sign nothing, so
none is ever taken for a shared secret.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey, import_key

TOKEN_LONGEST: Final = 16 * 1024
ALGORITHMS: Final = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
    "Ed25519",
)
# They change how the rest is read (RFC 7515, section 4.1.11; RFC 7797).
_ODD: Final = frozenset({"crit", "b64"})
_KINDS: Final = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
RSA_BITS_LEAST: Final = 2_048
# Providers put names of their own into headers; what is critical is refused before.
_REGISTRY: Final = jws.JWSRegistry(algorithms=list(ALGORITHMS), strict_check_header=False)


class NotSigned(Exception):
    """It is no token that any of the keys signed."""


class UnknownKey(NotSigned):
    """It names a key that is not among them: they may have been changed since."""


class Jwks:
    """Those of a provider that can check a signature; what cannot be read is passed over."""

    def __init__(self, documents: Sequence[Mapping[str, Any]]) -> None:
        self._keys = [key for key in map(_read, documents) if key is not None]

    def __len__(self) -> int:
        return len(self._keys)

    def claims(self, token: str) -> dict[str, Any]:
        """What a signed token says; else NotSigned, UnknownKey where its key is not here."""
        header = _header(token)
        key = self._key_for(header)
        try:
            found = jws.deserialize_compact(token, key, registry=_REGISTRY)
            claims = json.loads(found.payload)
        except (JoseError, ValueError, RecursionError):
            raise NotSigned from None
        if not isinstance(claims, dict):
            raise NotSigned
        return claims

    def _key_for(self, header: Mapping[str, Any]) -> Key:
        """The one that is named; where none is, the only one of its kind."""
        kind = _KINDS[header["alg"][:2]]
        named = header.get("kid")
        fit = [key for key in self._keys if key.key_type == kind]
        fit = [key for key in fit if key.get("alg") in (None, header["alg"])]
        if named is not None:
            fit = [key for key in fit if key.kid == named]
        if not fit:
            raise UnknownKey
        if len(fit) > 1:
            raise NotSigned
        return fit[0]


def looks_signed(text: str) -> bool:
    """Whether it could be a JWT in the compact form at all."""
    return text.count(".") == 2 and len(text) <= TOKEN_LONGEST


def _header(token: str) -> dict[str, Any]:
    if not looks_signed(token):
        raise NotSigned
    try:
        header = jws.extract_compact(token.encode("ascii")).headers()
    except (JoseError, ValueError, RecursionError):
        raise NotSigned from None
    algorithm, named = header.get("alg"), header.get("kid")
    if algorithm not in ALGORITHMS or not isinstance(named, str | None) or header.keys() & _ODD:
        raise NotSigned
    return header


def _read(document: Mapping[str, Any]) -> Key | None:
    if document.get("use") not in (None, "sig") or document.get("kty") not in ("RSA", "EC", "OKP"):
        return None
    try:
        key = import_key(dict(document))
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    if isinstance(key, RSAKey) and key.raw_value.key_size < RSA_BITS_LEAST:
        return None
    return key if isinstance(key, RSAKey | ECKey | OKPKey) else None
