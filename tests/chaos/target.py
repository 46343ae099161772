"""A target that answers as its script says, and logs each answer. Run as a process of its own.

`python -m tests.chaos.target LOG` prints its port. A line `NUMBER up|down` on standard input
changes how it answers `/NUMBER`: 200, or 503. The log has a line for each answer, written when the
kernel has accepted the last byte: instant of the request, instant of the answer, number, status.
"""

import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TextIO

import trio

BODY = {200: b"fine", 503: b"broken"}
HEAD = "HTTP/1.1 {} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n"


async def answer(down: set[int], log: TextIO, stream: trio.SocketStream) -> None:
    with suppress(trio.BrokenResourceError, ValueError, IndexError):
        head = bytes(await stream.receive_some(8_192))
        asked_at = time.time()
        number = int(head.split(b" ")[1][1:])
        status = 503 if number in down else 200
        body = BODY[status]
        await stream.send_all(HEAD.format(status, len(body)).encode() + body)
        log.write(f"{asked_at:.6f} {time.time():.6f} {number} {status}\n")
        await stream.aclose()


async def obey(down: set[int], log: TextIO) -> None:
    """Follows the script. Each change is logged, before any answer that follows it."""
    async for line in trio.wrap_file(sys.stdin):
        number, word = line.split()
        (down.add if word == "down" else down.discard)(int(number))


async def main(path: Path) -> None:
    down: set[int] = set()
    with path.open("w", buffering=1) as log:
        async with trio.open_nursery() as nursery:
            listeners = await trio.open_tcp_listeners(0, host="127.0.0.1", backlog=1_000)
            sys.stdout.write(f"{listeners[0].socket.getsockname()[1]}\n")
            sys.stdout.flush()
            nursery.start_soon(trio.serve_listeners, partial(answer, down, log), listeners)
            await obey(down, log)
            nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]))
