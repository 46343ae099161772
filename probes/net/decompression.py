"""Bounded decompression of bodies, so that a small response cannot become a large one."""

import zlib

from ..check.failure import TargetFailure
from ..check.result import FailureClass

_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_RAW = -zlib.MAX_WBITS


def unpack(packed: bytes, encoding: str, most: int, whole: bool) -> tuple[bytes, bool]:
    """Returns (body, whole) for a Content-Encoding (RFC 9110, 8.4.1).

    The body has at most `most` bytes. `whole` is false if it was cut at this bound.
    Raises: `TargetFailure(protocol_error)` for a coding that was not requested, or a broken one.
    """
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return packed, whole
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    try:
        body, ended = _inflate(packed, _GZIP_OR_ZLIB, most)
    except zlib.error:
        if encoding != "deflate":
            raise TargetFailure(FailureClass.PROTOCOL_ERROR) from None
        # Some servers send deflate without the zlib wrapper that the RFC requires.
        try:
            body, ended = _inflate(packed, _RAW, most)
        except zlib.error:
            raise TargetFailure(FailureClass.PROTOCOL_ERROR) from None
    if not ended and len(body) < most and whole:
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    return body, whole and ended


def _inflate(packed: bytes, window: int, most: int) -> tuple[bytes, bool]:
    inflater = zlib.decompressobj(window)
    body = inflater.decompress(packed, most)
    return body, inflater.eof
