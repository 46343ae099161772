"""Compression of the answers of the API: negotiation, bounds, and equal content."""

import gzip
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from leadline.http.wire import content_encoding
from leadline.http.wire.content_encoding import COMPRESSED_LEAST, best_encoding, compressed
from leadline.http.wire.finished_response import FinishedResponse
from tests.support.app.cast import Api

ACCEPTED = ["gzip", "zstd", "identity"]


def unpacked(reply: FinishedResponse) -> bytes:
    match reply.headers.get("Content-Encoding"):
        case "gzip":
            return gzip.decompress(reply.body)
        case "zstd":
            return zstandard.ZstdDecompressor().decompressobj().decompress(reply.body)
        case _:
            return reply.body


def reply_of(
    body: bytes, content_type: str = "application/json", **headers: str
) -> FinishedResponse:
    return FinishedResponse(200, {"Content-Type": content_type, **headers}, body)


@pytest.mark.parametrize(
    ("accept", "encoding"),
    [
        ("", None),
        ("identity", None),
        ("gzip, deflate, br", "gzip"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("*", "zstd"),
        ("zstd;q=0, *;q=0.5", "gzip"),
        ("gzip;q=1.0, zstd;q=0.9", "gzip"),
        ("GZIP", "gzip"),
        ("gzip;q=0", None),
        ("gzip;q=0, zstd;q=0.000", None),
        ("gzip;q=much", None),
        ("x-gzip", None),
    ],
)
def test_the_encoding_with_the_highest_weight_is_chosen(accept: str, encoding: str | None) -> None:
    assert best_encoding({"accept-encoding": accept}) == encoding


@given(st.binary(max_size=4_000), st.sampled_from(ACCEPTED), st.integers(1, 900))
async def test_an_unpacked_answer_equals_the_plain_one(
    body: bytes, accept: str, piece: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(content_encoding, "_PIECE_BYTES", piece)
        reply = await compressed(reply_of(body), {"accept-encoding": accept})
    assert unpacked(reply) == body
    is_packed = len(body) >= COMPRESSED_LEAST and accept != "identity"
    assert ("Content-Encoding" in reply.headers) == is_packed
    assert ("Vary" in reply.headers) == (len(body) >= COMPRESSED_LEAST)


@pytest.mark.parametrize(
    "reply",
    [
        reply_of(b"x" * (COMPRESSED_LEAST - 1)),
        reply_of(b"x" * 5_000, "image/png"),
        reply_of(b"x" * 5_000, ETag='"strong"'),
        reply_of(zlib.compress(b"x" * 9_000_000, 9), **{"Content-Encoding": "deflate"}),
        FinishedResponse(204, {}, b""),
    ],
)
async def test_other_answers_are_unchanged(reply: FinishedResponse) -> None:
    assert await compressed(reply, {"accept-encoding": "gzip, zstd"}) is reply


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
async def test_a_list_of_the_api_is_compressed(api: Api, encoding: str) -> None:
    path = f"/api/v1/projects/{api.project}/monitors"
    for number in range(4):
        body = {"name": f"Monitor {number}", "type": "push", "interval_seconds": 60}
        assert (await api.ask("editor", "POST", path, body)).status_code == 201
    plain = await api.ask("viewer", "GET", path)
    packed = await api.ask("viewer", "GET", path, headers={"Accept-Encoding": encoding})
    assert packed.headers["Content-Encoding"] == encoding
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Vary"] == plain.headers["Vary"] == "Accept-Encoding"
    small = await packed.get_data(as_text=False)
    assert int(packed.headers["Content-Length"]) == len(small)
    reply = FinishedResponse(200, {"Content-Encoding": encoding}, small)
    assert unpacked(reply) == await plain.get_data(as_text=False)


async def test_a_refusal_and_a_short_answer_are_plain(api: Api) -> None:
    headers = {"Accept-Encoding": "gzip, zstd"}
    refused = await api.ask("viewer", "GET", "/api/v1/organizations/none", headers=headers)
    short = await api.ask("viewer", "GET", "/api/v1/version", headers=headers)
    assert "Content-Encoding" not in refused.headers
    assert "Content-Encoding" not in short.headers
