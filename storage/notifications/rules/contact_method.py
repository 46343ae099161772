"""Verification of contact methods by a code, and the limits of what is sent to them.

Invariant: a method that is not verified receives nothing but its code. A code is valid for
CODE_LASTS_US and CODE_ATTEMPTS attempts. A person requests at most SENDS_MOST codes and test
messages within SENDS_WITHIN_US, which bounds the cost of SMS and calls.
"""

import hashlib
from collections.abc import Sequence
from hmac import compare_digest
from typing import Final
from uuid import UUID

from ...core.instant import HOUR, MINUTE, SECOND, Instant

METHODS_MOST: Final = 20
CODE_DIGITS: Final = 6
CODE_LASTS_US: Final = 10 * MINUTE
CODE_ATTEMPTS: Final = 5
SENDS_MOST: Final = 10
SENDS_WITHIN_US: Final = HOUR
LABEL_LONGEST: Final = 60


def code_from(number: int) -> str:
    """Returns the code of a random number."""
    return f"{number % 10**CODE_DIGITS:0{CODE_DIGITS}}"


def code_hash(method: UUID, code: str) -> bytes:
    return hashlib.sha256(method.bytes + code.encode()).digest()


def plain_code(text: str) -> str:
    """Returns the digits of a typed code, without blanks and dashes."""
    return "".join(char for char in text if char not in " -")


def is_code(method: UUID, text: str, stored: bytes | None) -> bool:
    """Returns whether the text is the code with this hash."""
    return stored is not None and compare_digest(code_hash(method, plain_code(text)), stored)


def is_open(expires_at: Instant | None, attempts: int, now: Instant) -> bool:
    """Returns whether an attempt can still succeed."""
    return expires_at is not None and now < expires_at and attempts < CODE_ATTEMPTS


def recent_sends(sent_at: Sequence[Instant], now: Instant) -> list[Instant]:
    return [at for at in sent_at if at > now - SENDS_WITHIN_US]


def wait_seconds(sent_at: Sequence[Instant], now: Instant) -> int:
    """Returns the seconds until another message can be requested, 0 for now."""
    recent = sorted(recent_sends(sent_at, now))
    if len(recent) < SENDS_MOST:
        return 0
    return max(-(-(recent[-SENDS_MOST] + SENDS_WITHIN_US - now) // SECOND), 1)
