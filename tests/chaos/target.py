"""A target that answers as its script says, and logs each answer. Run as a process of its own.

`python -m tests.chaos.target FOLDER ADDRESS` prints its port. A line `NUMBER up|down` on standard
input changes how it answers `/NUMBER`: 200, or 503. `target.log` has a line for each answer,
written when the kernel has accepted the last byte: instant of the request, instant of the answer,
number, status. A POST is a webhook: `hooks.log` has a line of JSON for each, written before the
answer.
"""

import json
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TextIO

import trio

BODY = {200: b"fine", 503: b"broken"}
HEAD = "HTTP/1.1 {} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n"
REQUEST_SECONDS = 30.0


async def answer(down: set[int], log: TextIO, hooks: TextIO, stream: trio.SocketStream) -> None:
    with (
        suppress(trio.BrokenResourceError, ValueError, IndexError),
        trio.move_on_after(REQUEST_SECONDS),
    ):
        head = bytes(await stream.receive_some(8_192))
        asked_at = time.time()
        if head.startswith(b"POST"):
            await receive_hook(hooks, head, asked_at, stream)
        else:
            number = int(head.split(b" ")[1][1:])
            status = 503 if number in down else 200
            body = BODY[status]
            await stream.send_all(HEAD.format(status, len(body)).encode() + body)
            log.write(f"{asked_at:.6f} {time.time():.6f} {number} {status}\n")
    await stream.aclose()


async def receive_hook(
    hooks: TextIO, data: bytes, asked_at: float, stream: trio.SocketStream
) -> None:
    while b"\r\n\r\n" not in data:
        data += bytes(await stream.receive_some(8_192))
    head, _, body = data.partition(b"\r\n\r\n")
    lines = (line.split(b":", 1) for line in head.split(b"\r\n")[1:])
    headers = {name.decode().lower(): value.strip().decode() for name, value in lines}
    while len(body) < int(headers["content-length"]):
        body += bytes(await stream.receive_some(65_536))
    path = head.split(b" ")[1].decode()
    record = {
        "at": asked_at,
        "path": path,
        "id": headers.get("webhook-id"),
        "body": json.loads(body),
    }
    hooks.write(json.dumps(record) + "\n")
    await stream.send_all(HEAD.format(200, 0).encode())


async def obey(down: set[int]) -> None:
    """Follows the script. A change holds for every request that arrives later."""
    async for line in trio.wrap_file(sys.stdin):
        number, word = line.split()
        (down.add if word == "down" else down.discard)(int(number))


async def main(folder: Path, address: str) -> None:
    down: set[int] = set()
    with (
        (folder / "target.log").open("w", buffering=1) as log,
        (folder / "hooks.log").open("w", buffering=1) as hooks,
    ):
        async with trio.open_nursery() as nursery:
            listeners = await trio.open_tcp_listeners(0, host=address, backlog=1_000)
            sys.stdout.write(f"{listeners[0].socket.getsockname()[1]}\n")
            sys.stdout.flush()
            handler = partial(answer, down, log, hooks)
            nursery.start_soon(trio.serve_listeners, handler, listeners)
            await obey(down)
            nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]), sys.argv[2])
