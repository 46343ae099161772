"""Negotiation of compressed responses by Accept-Encoding (RFC 9110, 12.5.3)."""

import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import trio
import zstandard

from .finished_response import FinishedResponse

# A smaller body fits one packet in any case.
COMPRESSED_LEAST: Final = 1_024
# A list of 1 000 monitors takes 1 ms; higher levels take twice as long and save an eighth more.
_GZIP_LEVEL: Final = 1
_ZSTD_LEVEL: Final = 3
# `wbits` of zlib for the format of gzip.
_GZIP_FORMAT: Final = 31
# Between pieces of this size other tasks run, so that a long answer delays no other client.
_PIECE_BYTES: Final = 256 << 10
_COMPRESSIBLE: Final = ("application/json", "text/", "image/svg+xml")
# By preference, if the client gives them the same weight.
_ENCODINGS: Final = ("zstd", "gzip")


async def compressed(reply: FinishedResponse, headers: Mapping[str, str]) -> FinishedResponse:
    """Returns the reply compressed if the client accepts it and the body is text of some length.

    A reply with a strong validator is returned unchanged, as each encoding needs a tag of its own.
    """
    given = reply.headers
    is_strong = not given.get("ETag", "W/").startswith("W/")
    is_text = given.get("Content-Type", "").startswith(_COMPRESSIBLE)
    if len(reply.body) < COMPRESSED_LEAST or is_strong or not is_text:
        return reply
    if "Content-Encoding" in given:
        return reply
    varied = {**given, "Vary": "Accept-Encoding"}
    encoding = best_encoding(headers)
    if encoding is None:
        return replace(reply, headers=varied)
    body = await _packed(reply.body, encoding)
    return replace(reply, body=body, headers={**varied, "Content-Encoding": encoding})


async def _packed(body: bytes, encoding: str) -> bytes:
    packer: Any = (
        zstandard.ZstdCompressor(_ZSTD_LEVEL).compressobj()
        if encoding == "zstd"
        else zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_FORMAT)
    )
    pieces = []
    for start in range(0, len(body), _PIECE_BYTES):
        if start:
            await trio.lowlevel.checkpoint()
        pieces.append(packer.compress(body[start : start + _PIECE_BYTES]))
    return b"".join([*pieces, packer.flush()])


def best_encoding(headers: Mapping[str, str]) -> str | None:
    """Returns `zstd` or `gzip`, whichever has the higher weight above 0, or None."""
    weights = _weights(headers)
    usual = weights.get("*", 0.0)
    # `max` returns the first of equal ones.
    best = max(_ENCODINGS, key=lambda name: weights.get(name, usual))
    return best if weights.get(best, usual) > 0 else None


def takes_gzip(headers: Mapping[str, str]) -> bool:
    """Returns whether gzip is listed, by name or `*`, with a weight above 0."""
    weights = _weights(headers)
    return weights.get("gzip", weights.get("*", 0.0)) > 0


def _weights(headers: Mapping[str, str]) -> dict[str, float]:
    weights: dict[str, float] = {}
    for item in headers.get("accept-encoding", "").split(","):
        name, _, weight = item.partition(";")
        weights[name.strip().lower()] = _weight(weight)
    return weights


def _weight(text: str) -> float:
    name, _, value = text.strip().partition("=")
    if name.strip().lower() != "q":
        return 1.0
    try:
        return float(value)
    except ValueError:
        return 0.0
