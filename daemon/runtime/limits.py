"""Every bound of the running daemon, in one place; limiters are made here and passed down."""

from typing import Final

import trio

# How long the parts of a stop may take, in the order in which they happen.
HTTP_FINISH_SECONDS: Final = 10.0
PROBES_FINISH_SECONDS: Final = 10.0
RECORDER_DRAIN_SECONDS: Final = 10.0

# A start that cannot reach the database pauses between attempts; the pause doubles up to the last.
DATABASE_FIRST_PAUSE_SECONDS: Final = 0.5
DATABASE_LAST_PAUSE_SECONDS: Final = 5.0
# A start that waits for the database logs the cause at this interval.
DATABASE_LOG_SECONDS: Final = 60.0
# A start that waits or migrates asks systemd every minute for as much time as the unit gives it.
START_EXTENSION_SECONDS: Final = 330
START_EXTENSION_PAUSE_SECONDS: Final = 60.0

# A child that fails is begun again; so many times within so long, then the process ends.
RESTARTS_MOST: Final = 5
RESTARTS_WITHIN_SECONDS: Final = 30.0

# Argon2id holds a core and 64 MiB each: two at a time leave the loop a core.
HASHING_THREADS: Final = 2

# Connections by what they are for, so that pages cannot starve results.
HTTP_SHARE: Final = 0.5

# More requests than these are answered 429: what one holds of memory is bounded, all is not.
REQUESTS_AT_ONCE: Final = 6_000

# Tests before saving: they are probes too, but nobody's schedule.
TESTS_AT_ONCE: Final = 8

# A run holds one thread at most. One that was left alone by a deadline still ends its work.
THREADS_LEFT_ALONE: Final = 32

# Deliveries that work in threads: mail, and what apprise carries.
DELIVERY_THREADS: Final = 16

WATCHDOG_STALE_SECONDS: Final = 60.0


def serving() -> trio.CapacityLimiter:
    """The requests that the HTTP app works on, open event streams included."""
    return trio.CapacityLimiter(REQUESTS_AT_ONCE)


def ticking() -> trio.CapacityLimiter:
    """The passes of the ticker: the plans of its shards are changed by one pass at a time."""
    return trio.CapacityLimiter(1)


def sending(deliveries: int) -> trio.CapacityLimiter:
    """The deliveries that the outbox leaser sends."""
    return trio.CapacityLimiter(deliveries)


def running_canaries(places: int, regions: int) -> trio.CapacityLimiter:
    """The canaries that the dispatcher runs: all places of the regions that this process probes in,
    or none."""
    return trio.CapacityLimiter(places * regions)


def probing(concurrency: int) -> trio.CapacityLimiter:
    return trio.CapacityLimiter(concurrency)


def testing() -> trio.CapacityLimiter:
    return trio.CapacityLimiter(TESTS_AT_ONCE)


def working(concurrency: int) -> trio.CapacityLimiter:
    """The threads that checks may hold: a place for each run that there can be."""
    return trio.CapacityLimiter(concurrency + TESTS_AT_ONCE + THREADS_LEFT_ALONE)


def delivering() -> trio.CapacityLimiter:
    return trio.CapacityLimiter(DELIVERY_THREADS)


def ring() -> trio.CapacityLimiter:
    """The disk of an agent's results: one writer."""
    return trio.CapacityLimiter(1)


def reading_bundles() -> trio.CapacityLimiter:
    """The directories of file providers, and what people give: one at a time each."""
    return trio.CapacityLimiter(1)


def hashing() -> trio.CapacityLimiter:
    return trio.CapacityLimiter(HASHING_THREADS)
