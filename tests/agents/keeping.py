"""Writes results to a ring buffer until it is killed, and prints the numbers that are on disk.
Usage: `python keeping.py FOLDER`."""

import sys
from pathlib import Path

import trio

from leadline.daemon.agent.ring_buffer import open_ring
from leadline.daemon.runtime import limits


async def main(folder: Path) -> None:
    ring = await open_ring(folder, limits.ring())
    while True:
        for _ in range(7):
            seq = ring.keep(b'{"n":%d}' % (ring.last + 1), lease_until=ring.last)
        if seq % 5 == 0:
            ring.drop(ring.oldest(3))
        assert await ring.flush()
        sys.stdout.write(f"{ring.oldest(1)[0].seq} {seq}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]))
