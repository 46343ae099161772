"""Tokens contain all their random bits, and no token has the form of another kind."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.token import TokenKind, claims_to_be_ours, digest, kind_of, token_from

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@given(st.sampled_from(TokenKind), st.binary(min_size=32, max_size=32))
def test_a_token_is_its_prefix_and_all_of_its_bits(kind: TokenKind, random: bytes) -> None:
    token = token_from(kind, random)
    body = token[len(kind.value) :]
    assert token.startswith(kind.value)
    assert len(body) == 43
    number = 0
    for char in body:
        number = number * 62 + ALPHABET.index(char)
    assert number.to_bytes(32) == random
    assert kind_of(token) is kind
    assert digest(token) == sha256(token.encode()).digest()


@given(st.text(max_size=80))
def test_no_other_text_is_a_token(text: str) -> None:
    assert kind_of(text) is None
    assert kind_of("leadline_" + text) in (None, TokenKind.API)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "leadline_",
        "leadline_" + "a" * 42,
        "leadline_" + "a" * 44,
        "leadline_" + "a" * 42 + "-",
        "leadline_" + "a" * 42 + "é",
        "leadline_other_" + "a" * 43,
        "Leadline_" + "a" * 43,
    ],
)
def test_a_malformed_token_has_no_kind(text: str) -> None:
    assert kind_of(text) is None


def test_a_text_with_the_product_prefix_is_only_read_as_a_token() -> None:
    assert claims_to_be_ours("leadline_x.y.z")
    assert not claims_to_be_ours("eyJhbGciOi.x.y")


def test_a_token_is_built_from_all_its_random_bytes_or_refused() -> None:
    with pytest.raises(ValueError, match="32"):
        token_from(TokenKind.API, b"short")
