"""The signatures of tokens: every known way to forge one is refused."""

import base64
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, hmac, serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jws
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from leadline.http.auth.jws import (
    ALGORITHMS,
    TOKEN_LONGEST,
    Jwks,
    NotSigned,
    UnknownKey,
    looks_signed,
)

RSA = RSAKey.generate_key(2_048, parameters={"kid": "rsa"})
OTHER = RSAKey.generate_key(2_048, parameters={"kid": "other"})
EC = ECKey.generate_key("P-256", parameters={"kid": "ec"})
ED = OKPKey.generate_key("Ed25519", parameters={"kid": "ed"})
SMALL = RSAKey.generate_key(1_024, parameters={"kid": "small"})
CLAIMS = {"sub": "ada"}


def public(*keys: Any) -> list[dict[str, Any]]:
    return [dict(key.as_dict(private=False)) for key in keys]


def signed(header: dict[str, Any], key: Any, claims: Any = CLAIMS) -> str:
    registry = jws.JWSRegistry(algorithms=[*ALGORITHMS, "HS256", "none"], strict_check_header=False)
    payload = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
    return jws.serialize_compact(header, payload, key, registry=registry)


def packed(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


KEYS = Jwks(public(RSA, EC, ED))


@pytest.mark.parametrize(
    ("algorithm", "key"),
    [
        *((f"{kind}{bits}", RSA) for kind in ("RS", "PS") for bits in (256, 384, 512)),
        ("ES256", EC),
        ("EdDSA", ED),
        ("Ed25519", ED),
    ],
)
def test_a_signed_token_is_accepted(algorithm: str, key: Any) -> None:
    assert KEYS.claims(signed({"alg": algorithm, "kid": key.kid}, key)) == CLAIMS
    assert KEYS.claims(signed({"alg": algorithm}, key)) == CLAIMS
    odd = {"alg": algorithm, "kid": key.kid, "typ": "at+jwt", "x.of.a.vendor": [1]}
    assert KEYS.claims(signed(odd, key)) == CLAIMS


def test_a_public_key_is_not_accepted_as_a_shared_secret() -> None:
    """The attack signs with the public key as the HMAC secret."""
    raw = RSA.raw_value
    assert isinstance(raw, RSAPrivateKey)
    forms = [
        raw.public_key().public_bytes(serialization.Encoding.PEM, form)
        for form in (
            serialization.PublicFormat.SubjectPublicKeyInfo,
            serialization.PublicFormat.PKCS1,
        )
    ]
    forms.append(json.dumps(public(RSA)[0]).encode())
    for secret in forms:
        body = f"{packed({'alg': 'HS256', 'kid': 'rsa'})}.{packed(CLAIMS)}"
        mac = hmac.HMAC(secret, hashes.SHA256())
        mac.update(body.encode())
        with pytest.raises(NotSigned):
            KEYS.claims(f"{body}.{packed(mac.finalize())}")


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", None, "HS256", ["RS256"], 7])
def test_an_algorithm_without_a_signature_is_refused(algorithm: Any) -> None:
    token = signed({"alg": "RS256", "kid": "rsa"}, RSA)
    _, body, signature = token.split(".")
    for end in ("", signature):
        with pytest.raises(NotSigned):
            KEYS.claims(f"{packed({'alg': algorithm, 'kid': 'rsa'})}.{body}.{end}")


def test_each_part_of_a_token_is_signed() -> None:
    header, body, signature = signed({"alg": "RS256", "kid": "rsa"}, RSA).split(".")
    for wrong in (
        f"{packed({'alg': 'PS256', 'kid': 'rsa'})}.{body}.{signature}",
        f"{header}.{packed({'sub': 'boss'})}.{signature}",
        f"{header}.{body}.{signature[:-6]}AAAAAA",
        f"{header}.{body}.",
        f"{header}..{signature}",
    ):
        with pytest.raises(NotSigned):
            KEYS.claims(wrong)


def test_a_signature_of_another_key_is_refused() -> None:
    with pytest.raises(UnknownKey):
        KEYS.claims(signed({"alg": "RS256", "kid": "other"}, OTHER))
    for header in ({"alg": "RS256", "kid": "rsa"}, {"alg": "RS256"}):
        with pytest.raises(NotSigned):
            KEYS.claims(signed(header, OTHER))
    brought = {"alg": "RS256", "kid": "rsa", "jwk": public(OTHER)[0]}
    with pytest.raises(NotSigned):
        KEYS.claims(signed(brought, OTHER))
    with pytest.raises(UnknownKey):
        KEYS.claims(signed({"alg": "RS256", "jku": "https://evil.test", "kid": "x"}, OTHER))


def test_without_a_name_the_key_must_be_the_only_one() -> None:
    with pytest.raises(NotSigned):
        Jwks(public(RSA, OTHER)).claims(signed({"alg": "RS256"}, RSA))
    with pytest.raises(UnknownKey):
        Jwks(()).claims(signed({"alg": "RS256"}, RSA))


def test_a_key_is_for_its_own_algorithm_and_use() -> None:
    only = {**public(RSA)[0], "alg": "RS512"}
    with pytest.raises(NotSigned):
        Jwks([only]).claims(signed({"alg": "RS256", "kid": "rsa"}, RSA))
    sealing = {**public(RSA)[0], "use": "enc"}
    assert len(Jwks([sealing])) == 0
    with pytest.raises(NotSigned):
        KEYS.claims(signed({"alg": "ES256", "kid": "rsa"}, EC))


def test_invalid_keys_are_skipped() -> None:
    shared = dict(OctKey.generate_key(256).as_dict(private=True))
    odd: list[dict[str, Any]] = [{}, {"kty": "RSA"}, {"kty": "XX"}, {"kty": "RSA", "n": 7, "e": 1}]
    assert len(Jwks([shared, *odd, *public(SMALL), *public(EC)])) == 1
    with pytest.raises(NotSigned):
        Jwks(public(SMALL)).claims(signed({"alg": "RS256", "kid": "small"}, SMALL))


@pytest.mark.parametrize("odd", [{"crit": ["exp"]}, {"b64": False}, {"crit": []}])
def test_a_header_that_changes_how_the_rest_is_read_is_refused(odd: dict[str, Any]) -> None:
    token = signed({"alg": "RS256", "kid": "rsa"}, RSA)
    _, body, signature = token.split(".")
    with pytest.raises(NotSigned):
        KEYS.claims(f"{packed({'alg': 'RS256', 'kid': 'rsa', **odd})}.{body}.{signature}")


@pytest.mark.parametrize("claims", [b"", b"7", b"[]", b"\xff", b'{"a":', b"[" * 5_000])
def test_claims_are_an_object(claims: bytes) -> None:
    with pytest.raises(NotSigned):
        KEYS.claims(signed({"alg": "RS256", "kid": "rsa"}, RSA, claims))


def test_a_token_that_is_too_long_is_refused() -> None:
    token = signed({"alg": "RS256", "kid": "rsa"}, RSA, {"sub": "x" * TOKEN_LONGEST})
    assert not looks_signed(token)
    with pytest.raises(NotSigned):
        KEYS.claims(token)


@given(st.text(alphabet="aAeyJ01._-=é\x00 ", max_size=60) | st.text(max_size=60))
def test_no_text_is_a_token_by_chance(text: str) -> None:
    with pytest.raises(NotSigned):
        KEYS.claims(text)
