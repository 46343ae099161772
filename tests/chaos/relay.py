"""A relay of TCP connections that delays, throttles or truncates them. A process of its own.

`python -m tests.chaos.relay PORT=HOST:PORT[,HOST:PORT] …` listens on the loopback. A connection
goes to the first of the hosts that accepts it. A line on standard input changes all connections:
`pass`; `delay S`, each piece waits S seconds; `throttle N`, N bytes per second in each direction;
`truncate N`, each connection ends after N more bytes.
"""

import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import trio

CONNECT_SECONDS = 3.0
PIECE = 16_384


@dataclass
class Mode:
    word: str = "pass"
    value: float = 0.0


async def relay(mode: Mode, behind: list[tuple[str, int]], front: trio.SocketStream) -> None:
    back = await _connect(behind)
    if back is None:
        await front.aclose()
        return
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        async with front, back, trio.open_nursery() as nursery:
            for one, other in ((front, back), (back, front)):
                nursery.start_soon(_pass_on, mode, one, other, nursery.cancel_scope)


async def _connect(behind: list[tuple[str, int]]) -> trio.SocketStream | None:
    for host, port in behind:
        with trio.move_on_after(CONNECT_SECONDS), suppress(OSError):
            return await trio.open_tcp_stream(host, port)
    return None


async def _pass_on(
    mode: Mode, source: trio.SocketStream, to: trio.SocketStream, connection: trio.CancelScope
) -> None:
    """Passes bytes on until one side ends or the mode truncates the connection."""
    left = mode.value if mode.word == "truncate" else None
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        while data := await source.receive_some(PIECE):
            if mode.word == "delay":
                await trio.sleep(mode.value)
            elif mode.word == "throttle":
                await trio.sleep(len(data) / mode.value)
            if mode.word != "truncate":
                left = None
            elif left is None:
                left = mode.value
            if left is not None and left < len(data):
                await to.send_all(data[: int(left)])
                break
            left = None if left is None else left - len(data)
            await to.send_all(data)
    connection.cancel()


async def obey(mode: Mode) -> None:
    async for line in trio.wrap_file(sys.stdin):
        word, _, value = line.strip().partition(" ")
        mode.word, mode.value = word, float(value or 0)


async def main(links: list[str]) -> None:
    mode = Mode()
    async with trio.open_nursery() as nursery:
        for link in links:
            port, _, hosts = link.partition("=")
            parts = [host.rsplit(":", 1) for host in hosts.split(",")]
            behind = [(host, int(number)) for host, number in parts]
            listeners = await trio.open_tcp_listeners(int(port), host="127.0.0.1")
            nursery.start_soon(
                partial(trio.serve_listeners, partial(relay, mode, behind), listeners)
            )
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await obey(mode)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main, sys.argv[1:])
