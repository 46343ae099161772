"""`python -m tests.bench.answers FOLDER` runs normal and hostile servers in a process of their own.

It prints their ports as JSON and serves until its input is closed. FOLDER contains cert.pem and
key.pem."""

import gzip
import hashlib
import json
import ssl
import struct
import sys
from base64 import b64encode
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import dns.flags
import dns.message
import dns.rrset
import trio
from trio_websocket import ConnectionClosed, WebSocketRequest, serve_websocket

HOST = "127.0.0.1"
MEBIBYTE = 1024 * 1024
Handler = Callable[[trio.abc.Stream], Awaitable[None]]
FEW = ["192.0.2.1"]
MANY = [f"10.0.{n >> 8}.{n & 255}" for n in range(3_900)]


def _of(unit: str) -> bytes:
    many = ",".join([unit] * (MEBIBYTE // (len(unit) + 1) - 40))
    return f'{{"many": [{many}], "last": 1}}'.encode()


def _whole(body: bytes, *headers: str) -> bytes:
    head = ["HTTP/1.1 200 OK", f"content-length: {len(body)}", "connection: close", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def _samples(count: int) -> bytes:
    series = [{"metric": {"n": str(n)}, "value": [1_700_000_000.5, "1"]} for n in range(count)]
    data = {"resultType": "vector", "result": series}
    return json.dumps({"status": "success", "data": data}).encode()


def hostile() -> dict[str, bytes]:
    """The response to any request, by the name of the hostile server."""
    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    zeros = gzip.compress(bytes(64 * MEBIBYTE))
    return {
        "lists": _whole(_of("[[[[[[]]]]]]")),
        "numbers": _whole(_of("0.12345678901234567")),
        "objects": _whole(_of('{"a":{}}')),
        "text": _whole(b"a" * (MEBIBYTE - 1)),
        "bomb": _whole(zeros, "content-encoding: gzip"),
        "undefined": _whole(b"\x81" * (MEBIBYTE - 1), "content-type: text/plain; charset=latin-1"),
        "chunks": chunked + b"1\r\nx\r\n" * 150_000 + b"0\r\n\r\n",
        "head": b"HTTP/1.1 200 OK\r\n" + b"a:\r\n" * 1_900 + b"\r\n",
        "cookies": _whole(b"ok", *[f"set-cookie: c{n}={'v' * 900}" for n in range(60)]),
        "samples": _whole(_samples(500), "content-type: application/json"),
        "too many samples": _whole(_samples(9_000), "content-type: application/json"),
        "long line": b"SSH-2.0-" + b"a" * 16_000 + b"\r\n",
        "frames": _frames(30_000),
        "notices": b"R\x00\x00\x00\x08\x00\x00\x00\x00" + b"N\x00\x00\x00\x05\x00" * 150_000,
        "heartbeats": b"\x08\x00\x00\x00\x00\x00\x00\xce" * 100_000,
        "greeting": b"220-x\r\n" * 150_000,
        # SSH_MSG_IGNORE without data, before the key exchange.
        "packets": b"SSH-2.0-x\r\n" + (b"\x00\x00\x00\x0c\x06\x02" + bytes(10)) * 150_000,
    }


def _frames(count: int) -> bytes:
    """HTTP/2 in clear: a head, and a body in frames of one byte."""
    settings = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
    head = b"\x00\x00\x01\x01\x04\x00\x00\x00\x01\x88"
    return settings + head + b"\x00\x00\x01\x00\x00\x00\x00\x00\x01x" * count


async def records(stream: trio.abc.Stream) -> None:
    """Sends a body of 1 MiB in TLS records of one byte each, as fast as they are read."""
    assert isinstance(stream, trio.SSLStream)
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError, ssl.SSLError):
        await stream.receive_some(65_536)
        await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
        for _ in range(1_000_000):
            await stream.send_all(b"x")


async def pings(stream: trio.abc.Stream) -> None:
    """Accepts a WebSocket and sends pings, which the client has to answer."""
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        head = bytes(await stream.receive_some(65_536)).decode("latin-1")
        lines = (line.split(":", 1) for line in head.split("\r\n") if ":" in line)
        key = {name.lower(): value.strip() for name, value in lines}["sec-websocket-key"]
        digest = hashlib.sha1(f"{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()
        accept = b64encode(digest).decode()
        await stream.send_all(
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
            + f"sec-websocket-accept: {accept}\r\n\r\n".encode()
        )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_discard, stream)
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await stream.send_all(b"\x89\x00" * 500_000)
        nursery.cancel_scope.cancel()


async def _discard(stream: trio.abc.Stream) -> None:
    with suppress(trio.BrokenResourceError):
        while await stream.receive_some(65_536):
            pass


# Servers that send before the client does.
FIRST = frozenset({"greeting", "packets"})


async def answer_with(data: bytes, is_first: bool, stream: trio.abc.Stream) -> None:
    """Sends `data` to a client, which can disconnect early."""
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        if not is_first:
            await stream.receive_some(65_536)
        await stream.send_all(data)
        if isinstance(stream, trio.SocketStream):
            await stream.send_eof()
        while await stream.receive_some(65_536):
            pass


def secured(context: ssl.SSLContext, handler: Handler) -> Handler:
    async def handle(stream: trio.abc.Stream) -> None:
        wrapped = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
        with suppress(trio.BrokenResourceError, ssl.SSLError):
            await wrapped.do_handshake()
            await handler(wrapped)

    return handle


def reply(wire: bytes) -> bytes:
    query = dns.message.from_wire(wire)
    response = dns.message.make_response(query)
    name = query.question[0].name
    found = MANY if name.to_text().startswith("many") else FEW
    response.answer.append(dns.rrset.from_text_list(name, 60, "IN", "A", found))
    return response.to_wire(max_size=65_535, want_shuffle=False)


async def names(sock: trio.socket.SocketType) -> None:
    kept: dict[bytes, bytes] = {}
    while True:
        wire, peer = await sock.recvfrom(4_096)
        if wire[2:] not in kept:
            kept[wire[2:]] = reply(wire)[2:]
        await sock.sendto(wire[:2] + kept[wire[2:]], peer)


async def converse(stream: trio.abc.Stream) -> None:
    with suppress(trio.BrokenResourceError):
        data = bytes(await stream.receive_some(4_096))
        if not data:
            return
        (length,) = struct.unpack("!H", data[:2])
        answer = reply(data[2 : 2 + length])
        await stream.send_all(len(answer).to_bytes(2, "big") + answer)


async def echo(request: WebSocketRequest) -> None:
    socket = await request.accept()
    with suppress(ConnectionClosed):
        while True:
            await socket.send_message(await socket.get_message())


async def main(folder: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "long.pem", folder / "key.pem")
    handlers: dict[str, Handler] = {
        name: partial(answer_with, data, name in FIRST) for name, data in hostile().items()
    }
    handlers["chain"] = secured(context, partial(answer_with, _whole(b"ok"), False))
    handlers["records"] = secured(context, records)
    handlers["pings"] = pings
    async with trio.open_nursery() as nursery:
        ports = {}
        for name, handler in handlers.items():
            listeners = await trio.open_tcp_listeners(0, host=HOST, backlog=1_000)
            ports[name] = listeners[0].socket.getsockname()[1]
            nursery.start_soon(trio.serve_listeners, handler, listeners)
        listeners = await trio.open_tcp_listeners(0, host=HOST)
        ports["dns"] = listeners[0].socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, converse, listeners)
        sock = trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM)
        await sock.bind((HOST, ports["dns"]))
        nursery.start_soon(names, sock)
        server = await nursery.start(partial(serve_websocket, echo, HOST, 0, None))
        ports["websocket"] = server.port
        sys.stdout.write(json.dumps(ports) + "\n")
        sys.stdout.flush()
        await trio.to_thread.run_sync(sys.stdin.read)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]))
