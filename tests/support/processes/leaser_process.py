"""Runs a leaser by the real clock, with leases and pauses of at most 0.1 s, until it is killed.

The chaos test runs `python -m tests.support.processes.leaser_process DSN`.
"""

import random
import sys
import time

import trio

from leadline.probes import senders
from leadline.storage.notifications.rules import delivery_retry as delivery

# Before they are made part of statements.
delivery.LEASE_US = 1_000_000  # type: ignore[misc]
delivery.RETRY_FIRST_US = 20_000  # type: ignore[misc]
delivery.RETRY_LONGEST_US = 300_000  # type: ignore[misc]
delivery.REST_LONGEST_US = 100_000  # type: ignore[misc]
vars(senders)["SEND_SECONDS"] = 0.4

from leadline.storage.core.instant import Instant  # noqa: E402
from leadline.storage.engine.keyring import Keyring  # noqa: E402
from leadline.storage.engine.pools import open_pool  # noqa: E402
from tests.support.worlds.leasing import lease_on, leaser_of  # noqa: E402


def now() -> Instant:
    return Instant(time.time_ns() // 1_000)


async def main(dsn: str) -> None:
    async with open_pool(dsn, name="leaser", size=2, clock=now) as pool:
        leaser = leaser_of(
            pool, Keyring(b"k" * 32), max_attempts=1_000_000, random=random.Random().random
        )
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await lease_on(leaser)


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
