"""Verification of a token's signature by the keys of a provider (RFC 7515, RFC 7519).

Accepts asymmetric algorithms only, each with keys of its own type. A public key is therefore never
used as a shared secret.
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
# These parameters change how the rest is interpreted (RFC 7515, section 4.1.11; RFC 7797).
_ODD: Final = frozenset({"crit", "b64"})
_KINDS: Final = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
RSA_BITS_LEAST: Final = 2_048
# Providers add private header parameters; critical ones are refused before.
_REGISTRY: Final = jws.JWSRegistry(algorithms=list(ALGORITHMS), strict_check_header=False)


class NotSigned(Exception):
    """The text is not a token that one of the keys signed."""


class UnknownKey(NotSigned):
    """No known key fits the token; the provider may have rotated its keys."""


class Jwks:
    """Signature keys of a provider. Unreadable keys are skipped."""

    def __init__(self, documents: Sequence[Mapping[str, Any]]) -> None:
        self._keys = [key for key in map(_read, documents) if key is not None]

    def __len__(self) -> int:
        return len(self._keys)

    def claims(self, token: str) -> dict[str, Any]:
        """Returns the claims of a signed token.

        Raises: NotSigned, or UnknownKey if no key fits.
        """
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
        """Returns the named key; without a name, the only key of the type."""
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
    """Returns whether the text has the form of a compact JWT."""
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
