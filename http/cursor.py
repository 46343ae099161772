"""Cursors of keyset lists: opaque, versioned, and good only for the list they were made by."""

import base64
import binascii
import hashlib

from ..storage.rules.instant import Instant
from .errors import Problem

_VERSION = 1
_BOUND_BYTES = 8
_KEY_BYTES = 8


def write_cursor(after: Instant, bound: tuple[object, ...]) -> str:
    """`bound` is the route with its filters; a cursor of another is refused."""
    raw = bytes([_VERSION]) + _digest(bound) + after.to_bytes(_KEY_BYTES, signed=True)
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def read_cursor(text: str | None, bound: tuple[object, ...]) -> Instant | None:
    """Where to go on; None at the start. Problem cursor_invalid for anything else."""
    if text is None:
        return None
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise Problem("cursor_invalid") from None
    fits = len(raw) == 1 + _BOUND_BYTES + _KEY_BYTES and raw[0] == _VERSION
    if not fits or raw[1 : 1 + _BOUND_BYTES] != _digest(bound):
        raise Problem("cursor_invalid")
    return Instant(int.from_bytes(raw[1 + _BOUND_BYTES :], signed=True))


def _digest(bound: tuple[object, ...]) -> bytes:
    return hashlib.sha256(repr(bound).encode()).digest()[:_BOUND_BYTES]
