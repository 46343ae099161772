"""The exchange of RFC 7677, and passwords as RFC 4013 prepares them."""

import hashlib
import hmac
from base64 import b64decode, b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.net.scram import ITERATIONS_MOST, BadChallenge, Scram, prepared

SALT = "W22ZaJ0SNY7soEsUEjb6gQ=="
NONCE = "rOprNGfwEbeRWgbNEkqO"
CHALLENGE = f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s={SALT},i=4096"


def hmac256(key: bytes, text: bytes) -> bytes:
    return hmac.new(key, text, "sha256").digest()


@given(st.text(min_size=1, max_size=20).filter(lambda t: t.isascii()), st.integers(1, 50))
def test_client_and_server_prove_the_password_to_each_other(password: str, iterations: int) -> None:
    """The server side as in section 3 of RFC 5802."""
    exchange = Scram(password, NONCE)
    assert exchange.first() == f"n,,n=,r={NONCE}".encode()
    challenge = f"r={NONCE}SERVER,s={SALT},i={iterations}".encode()
    exchange.challenged(challenge)
    final = exchange.answer(exchange.salt())
    unproved, _, proof = final.rpartition(b",p=")
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), b64decode(SALT), iterations)
    client_key = hmac256(salted, b"Client Key")
    said = b",".join((f"n=,r={NONCE}".encode(), challenge, unproved))
    signature = hmac256(hashlib.sha256(client_key).digest(), said)
    assert unproved == f"c=biws,r={NONCE}SERVER".encode()
    assert bytes(a ^ b for a, b in zip(b64decode(proof), signature, strict=True)) == client_key
    server = b"v=" + b64encode(hmac256(hmac256(salted, b"Server Key"), said))
    assert exchange.proves(server)
    assert not exchange.proves(server[:-4] + b"AAA=")
    assert not exchange.proves(b"e=other-error")
    assert not exchange.proves(b"v=" + proof)


def test_no_proof_is_valid_before_the_exchange() -> None:
    assert not Scram("pencil", NONCE).proves(b"v=")
    assert not Scram("pencil", NONCE).proves(b"")


@pytest.mark.parametrize(
    "challenge",
    [
        "",
        CHALLENGE.replace(NONCE, "someoneElses"),
        CHALLENGE.replace(NONCE + "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", NONCE),
        CHALLENGE.replace("4096", "0"),
        CHALLENGE.replace("4096", "-1"),
        CHALLENGE.replace("4096", str(ITERATIONS_MOST + 1)),
        CHALLENGE.replace("4096", "9" * 5_000),
        CHALLENGE.replace("4096", "²"),
        CHALLENGE.replace(SALT, ""),
        CHALLENGE.replace(SALT, "!!!!"),
        CHALLENGE.replace(",i=4096", ""),
        "\udcff",
    ],
)
def test_an_invalid_or_expensive_challenge_is_refused(challenge: str) -> None:
    exchange = Scram("pencil", NONCE)
    with pytest.raises(BadChallenge):
        exchange.challenged(challenge.encode("utf-8", "surrogateescape"))


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused(data: bytes) -> None:
    exchange = Scram("pencil", NONCE)
    with pytest.raises(BadChallenge):
        exchange.challenged(data)
    assert exchange.proves(data) is False


@pytest.mark.parametrize(
    ("password", "expected"),
    [
        # The examples of RFC 4013, section 3.
        ("I\u00adX", "IX"),
        ("user", "user"),
        ("USER", "USER"),
        ("\u00aa", "a"),
        ("\u2168", "IX"),
        # Forbidden characters: the password stays unchanged.
        ("\u0007é", "\u0007é"),
        ("\u06271", "\u06271"),
        ("\u0627a\u0627", "\u0627a\u0627"),
        ("\u0627\u0628", "\u0627\u0628"),
        ("a\u00a0b", "a b"),
        ("\u00ad", "\u00ad"),
    ],
)
def test_passwords_are_prepared_with_saslprep(password: str, expected: str) -> None:
    assert prepared(password) == expected.encode()
