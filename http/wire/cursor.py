"""Cursors of keyset lists: opaque, versioned, and valid only for the issuing list.

The page limit is validated here too, because all such lists use the same rule.
"""

import base64
import binascii
import hashlib
from collections.abc import Sequence
from typing import Final

from .errors import Problem

PAGE_MOST: Final = 200

_VERSION = 1
_BOUND_BYTES = 8
_NUMBER_BYTES = 8
_PAGE_DIGITS_MOST = 10


def write_cursor(after: Sequence[int], bound: tuple[object, ...]) -> str:
    """Encodes a cursor.

    `after` is the key of the last item of the page, as signed 64-bit numbers. `bound` is the route
    with its filters; another route refuses the cursor.
    """
    key = b"".join(number.to_bytes(_NUMBER_BYTES, signed=True) for number in after)
    raw = bytes([_VERSION]) + _digest(bound) + key
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def read_cursor(
    text: str | None, bound: tuple[object, ...], numbers: int
) -> tuple[int, ...] | None:
    """Returns the key of `numbers` numbers after which the list continues; None at the start.

    Raises: Problem cursor_invalid for any other text.
    """
    if text is None:
        return None
    key = _key_of(text, bound)
    if len(key) != numbers * _NUMBER_BYTES:
        raise Problem("cursor_invalid")
    places = range(0, len(key), _NUMBER_BYTES)
    return tuple(int.from_bytes(key[at : at + _NUMBER_BYTES], signed=True) for at in places)


def write_text_cursor(after: str, bound: tuple[object, ...]) -> str:
    """Encodes a cursor whose key is a text."""
    raw = bytes([_VERSION]) + _digest(bound) + after.encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def read_text_cursor(text: str | None, bound: tuple[object, ...]) -> str | None:
    """Returns the text after which the list continues; None at the start.

    Raises: Problem cursor_invalid for any other text.
    """
    if text is None:
        return None
    key = _key_of(text, bound)
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise Problem("cursor_invalid") from None


def _key_of(text: str, bound: tuple[object, ...]) -> bytes:
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise Problem("cursor_invalid") from None
    start = 1 + _BOUND_BYTES
    if raw[:start] != bytes([_VERSION]) + _digest(bound):
        raise Problem("cursor_invalid")
    return raw[start:]


def page_limit(text: str) -> int:
    """Returns the page size.

    Raises: Problem limit_invalid, the only error for every invalid size.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= _PAGE_DIGITS_MOST):
        raise Problem("limit_invalid")
    if not 1 <= int(text) <= PAGE_MOST:
        raise Problem("limit_invalid")
    return int(text)


def _digest(bound: tuple[object, ...]) -> bytes:
    return hashlib.sha256(repr(bound).encode()).digest()[:_BOUND_BYTES]
