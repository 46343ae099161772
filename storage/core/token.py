"""Format of bearer secrets: a prefix for the kind, then 256 bits in base62.

A token is looked up by its SHA-256. A secret of 256 random bits needs no slow hash, and the lookup
stays one index probe. Push, page and subscription tokens are also stored encrypted, since the
product shows or sends them again.
"""

from enum import StrEnum
from hashlib import sha256

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_CHARACTERS = frozenset(_ALPHABET)
RANDOM_BYTES = 32
# 62^43 is the first power of 62 that exceeds 256 bits.
LENGTH = 43


class TokenKind(StrEnum):
    """Prefixes of the kinds. A body contains no underscore, so the kinds are unambiguous."""

    API = "leadline_"
    AGENT = "leadline_agent_"
    PUSH = "leadline_push_"
    CALENDAR = "leadline_calendar_"
    PAGE = "leadline_page_"
    SUBSCRIPTION = "leadline_subscription_"
    RESET = "leadline_reset_"
    INVITATION = "leadline_invitation_"


def token_from(kind: TokenKind, random_bytes: bytes) -> str:
    """Returns the token of 32 random bytes. Raises: ValueError for another length."""
    if len(random_bytes) != RANDOM_BYTES:
        raise ValueError(f"a token has {RANDOM_BYTES} random bytes")
    number = int.from_bytes(random_bytes)
    body = ""
    for _ in range(LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        body = _ALPHABET[digit] + body
    return kind.value + body


def kind_of(text: str) -> TokenKind | None:
    """Returns the kind of a well-formed token; None for any other text."""
    for kind in TokenKind:
        body = text.removeprefix(kind.value)
        if body != text and len(body) == LENGTH and set(body) <= _CHARACTERS:
            return kind
    return None


def claims_to_be_ours(text: str) -> bool:
    """Returns whether the text has our prefix. Such a text is never interpreted as a JWT."""
    return text.startswith(TokenKind.API.value)


def digest(token: str) -> bytes:
    """Returns the SHA-256 of the token, its lookup key."""
    return sha256(token.encode()).digest()
