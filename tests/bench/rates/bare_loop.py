"""Checks without a product: an asyncio loop that requests a target at a rate and stores nothing.

`python -m tests.bench.rates.bare_loop TARGET COUNT INTERVAL WARM SECONDS` prints the CPU seconds
for 1 000 checks.
"""

import asyncio
import sys
import time
from urllib.parse import urlsplit


async def _check(host: str, port: int, request: bytes) -> bool:
    async with asyncio.timeout(5):
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.read()
        finally:
            writer.close()
    return head.split(b" ", 2)[1] == b"200"


async def _measure(target: str, rate: float, warm: float, seconds: float) -> float:
    url = urlsplit(target)
    host, port = str(url.hostname), url.port or 80
    request = f"GET {url.path} HTTP/1.1\r\nHost: {url.netloc}\r\nConnection: close\r\n\r\n".encode()
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[bool]] = set()
    good = 0

    def ended(task: asyncio.Task[bool]) -> None:
        nonlocal good
        tasks.discard(task)
        good += not task.cancelled() and task.result()

    async def check_until(end: float) -> None:
        due = loop.time()
        while due < end:
            await asyncio.sleep(due - loop.time())
            task = loop.create_task(_check(host, port, request))
            tasks.add(task)
            task.add_done_callback(ended)
            due += 1 / rate

    await check_until(loop.time() + warm)
    good, before = 0, time.process_time()
    await check_until(loop.time() + seconds)
    spent = time.process_time() - before
    assert good > rate * seconds / 2, f"{good} checks"
    return spent * 1000 / good


def main() -> None:
    target, count, interval, warm, seconds = sys.argv[1:]
    rate = int(count) / int(interval)
    spent = asyncio.run(_measure(target, rate, float(warm), float(seconds)))
    sys.stdout.write(f"{spent:.3f}\n")


if __name__ == "__main__":
    main()
