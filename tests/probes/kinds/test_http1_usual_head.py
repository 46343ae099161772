"""The usual head of a response is split without h11, with the same result as h11 has.

Mutated responses in random pieces are read both ways.
"""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from leadline.probes.check.check import Check
from leadline.probes.check.failure import TargetFailure
from leadline.probes.check.phase_timer import Stopwatch
from leadline.probes.check.target import read_url
from leadline.probes.net import http1
from leadline.probes.net.cookies import Jar
from leadline.probes.net.http_exchange import HttpRequest

SEEDS = (
    b"HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Length: 3\r\nX-A: \t b c \r\n\r\nok\n",
    b"HTTP/1.0 404 Not Found\r\nConnection: close\r\n\r\nuntil the end",
    b"HTTP/1.1 204 No Content\r\nDate: now\r\n\r\n",
    b"HTTP/1.1 304 \r\nContent-Length: 9\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nok\n\r\n0\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
    b"HTTP/1.1 500 \xe9chec\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 301 Moved\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200\r\nContent-Length: 2, 2\r\n folded: x\r\n\r\nab",
    b"HTTP/1.1 200 OK\nContent-Length: 2\n\nab",
)
PIECES = (
    b"\r\n", b"\n", b"\r", b"\x00", b" ", b"\t", b":", b",", b"\x7f", b"\xff", b"0", b"9", b"-1",
    b"+1", b"Content-Length: 1\r\n", b"Content-Length: 2\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: identity\r\n", b"Connection: keep-alive\r\n", b"Upgrade: h2c\r\n",
    b": \r\n", b"HTTP/1.1 ", b"HTTP/2.0 ", b"199 ", b"600 ", b"101 ", b"A B: c\r\n", b"A : c\r\n",
    b"\r\n\r\n", b" \r\n", b"x" * 5_000, b"\x0b", b"\x0c", b"\x85", b"\xa0", b"\x1f",
)  # fmt: skip


class Peer:
    """A stream whose other side has sent a response in pieces and then closed."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = [piece for piece in pieces if piece]
        self.sent = b""

    async def send_all(self, data: bytes) -> None:
        self.sent += data

    async def receive_some(self, most: int) -> bytes:
        if not self._pieces:
            return b""
        piece = self._pieces.pop(0)
        if len(piece) > most:
            self._pieces.insert(0, piece[most:])
        return piece[:most]


def a_request(**given: Any) -> HttpRequest:
    values: dict[str, Any] = {"method": "GET", "url": read_url("http://a.example/b?c")}
    return HttpRequest(**{**values, **given})


async def read(pieces: Sequence[bytes], request: HttpRequest) -> object:
    try:
        raw = await http1.exchange(Peer(pieces), request, Stopwatch(), "test")  # type: ignore[arg-type]
    except TargetFailure as failure:
        return failure.failure
    return raw.status, list(raw.headers), raw.body, raw.whole


def mutated(chance: random.Random) -> bytes:
    data = bytearray(chance.choice(SEEDS))
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3))):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(4):
            case 0:
                data[at:at] = chance.choice(PIECES)
            case 1:
                del data[at : at + chance.randrange(1, 5)]
            case 2 if at < len(data):
                data[at] = chance.randrange(256)
            case _:
                other = chance.choice(SEEDS)
                data[at:] = other[chance.randrange(len(other)) :]
    return bytes(data)


def cut(data: bytes, chance: random.Random) -> list[bytes]:
    if chance.random() < 0.6:
        return [data]
    places = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randrange(1, 4)))
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


async def compare(seed: int, count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Reads mutated responses both ways. Returns how many of them had a usual head."""
    chance = random.Random(seed)
    usual_head, usual = http1._usual_head, 0

    def counted(data: bytes, method: str) -> Any:
        nonlocal usual
        found = usual_head(data, method)
        usual += found is not None
        return found

    for _ in range(count):
        pieces = cut(mutated(chance), chance)
        given = {
            "method": chance.choice(("GET", "GET", "HEAD", "POST")),
            "keep_body": chance.random() < 0.5,
            "body_bytes_most": chance.choice((2, 3, 1_000)),
        }
        monkeypatch.setattr(http1, "_usual_head", counted)
        ours = await read(pieces, a_request(**given))
        monkeypatch.setattr(http1, "_usual_head", lambda _data, _method: None)
        by_h11 = await read(pieces, a_request(**given))
        assert ours == by_h11, (pieces, given)
    return usual


async def test_mutated_responses_have_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 600
    usual = await compare(7, count, monkeypatch)
    assert count / 10 < usual < count, "both ways are exercised"


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
async def test_a_hundred_thousand_mutated_responses(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    assert await compare(seed, 10_000, monkeypatch)


async def test_a_prepared_request_sends_the_same_bytes_again() -> None:
    request, first, second = a_request(method="POST", body=b"x"), Peer(SEEDS[:1]), Peer(SEEDS[:1])
    for peer in (first, second):
        await http1.exchange(peer, request, Stopwatch(), "test")  # type: ignore[arg-type]
    assert first.sent == second.sent
    assert first.sent.startswith(b"POST /b?c HTTP/1.1\r\n")
    assert first.sent.endswith(b"\r\n\r\nx")


async def test_the_cookies_of_a_jar_are_not_prepared() -> None:
    request, before, after = a_request(jar=Jar()), Peer(SEEDS[:1]), Peer(SEEDS[:1])
    await http1.exchange(before, request, Stopwatch(), "test")  # type: ignore[arg-type]
    assert request.jar is not None
    request.jar.take(str(request.url), ["a=b"])
    await http1.exchange(after, request, Stopwatch(), "test")  # type: ignore[arg-type]
    assert b"cookie" not in before.sent.lower()
    assert b"a=b" in after.sent


def test_a_failed_preparation_is_not_kept() -> None:
    check, calls = Check("http", "http://a.example", "a.example"), []

    def make(_check: Check) -> str:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("no secret")
        return "made"

    with pytest.raises(ValueError, match="no secret"):
        check.made(make)
    assert [check.made(make), check.made(make)] == ["made", "made"]
    assert len(calls) == 2
