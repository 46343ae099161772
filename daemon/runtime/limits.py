"""Limits of the running daemon, and the limiters, which are created here and passed down."""

from typing import Final

import trio

# Time limits of the stop phases, in their order.
HTTP_FINISH_SECONDS: Final = 10.0
PROBES_FINISH_SECONDS: Final = 10.0
RECORDER_DRAIN_SECONDS: Final = 10.0
# Further API processes have the same phases, and are asked to stop in the first phase.
PROCESSES_FINISH_SECONDS: Final = 35.0

# Pause between attempts of a start to reach the database; it doubles up to the last value.
DATABASE_FIRST_PAUSE_SECONDS: Final = 0.5
DATABASE_LAST_PAUSE_SECONDS: Final = 5.0
# Interval of the log entries of a start that waits for the database.
DATABASE_LOG_SECONDS: Final = 60.0
# A start that waits or migrates asks systemd every minute for as much time as the unit grants.
START_EXTENSION_SECONDS: Final = 330
START_EXTENSION_PAUSE_SECONDS: Final = 60.0

# Failures of children are counted together; above this many in this time the process ends.
RESTARTS_MOST: Final = 5
RESTARTS_WITHIN_SECONDS: Final = 30.0

# Each Argon2id hash uses a core and 64 MiB; two at a time leave a core for the event loop.
HASHING_THREADS: Final = 2

# Share of the connections for HTTP, so that requests cannot starve results.
HTTP_SHARE: Final = 0.5

# Further requests get 429. The memory of one request is bounded; this bounds the total.
REQUESTS_AT_ONCE: Final = 6_000

# Requests with a body above 2 MiB, which is wholly in memory, several times during its conversion.
LARGE_REQUESTS_AT_ONCE: Final = 2

# Check tests are probes that belong to no schedule.
TESTS_AT_ONCE: Final = 8

# A run uses one thread at most. A thread that its run abandoned at a deadline still finishes.
THREADS_LEFT_ALONE: Final = 32

# Threads for deliveries that block: mail and the channels of apprise.
DELIVERY_THREADS: Final = 16

WATCHDOG_STALE_SECONDS: Final = 60.0


def serving() -> trio.CapacityLimiter:
    """Returns the limiter of concurrent HTTP requests, including open event streams."""
    return trio.CapacityLimiter(REQUESTS_AT_ONCE)


def receiving_large() -> trio.CapacityLimiter:
    """Returns the limiter of concurrent HTTP requests with large files."""
    return trio.CapacityLimiter(LARGE_REQUESTS_AT_ONCE)


def ticking() -> trio.CapacityLimiter:
    """Returns the limiter of ticker passes: only one pass at a time may change the plans."""
    return trio.CapacityLimiter(1)


def sending(deliveries: int) -> trio.CapacityLimiter:
    """Returns the limiter of the deliveries that the outbox leaser sends."""
    return trio.CapacityLimiter(deliveries)


def running_canaries(places: int, regions: int) -> trio.CapacityLimiter:
    """Returns the limiter of canaries: `places` for each region that this process probes in."""
    return trio.CapacityLimiter(places * regions)


def probing(concurrency: int) -> trio.CapacityLimiter:
    return trio.CapacityLimiter(concurrency)


def testing() -> trio.CapacityLimiter:
    return trio.CapacityLimiter(TESTS_AT_ONCE)


def working(concurrency: int) -> trio.CapacityLimiter:
    """Returns the limiter of probe threads, with a place for each possible run."""
    return trio.CapacityLimiter(concurrency + TESTS_AT_ONCE + THREADS_LEFT_ALONE)


def delivering() -> trio.CapacityLimiter:
    return trio.CapacityLimiter(DELIVERY_THREADS)


def ring() -> trio.CapacityLimiter:
    """Returns the limiter of an agent's result ring on disk: one writer."""
    return trio.CapacityLimiter(1)


def reading_bundles() -> trio.CapacityLimiter:
    """Returns a limiter of bundle reading: one directory or one document at a time."""
    return trio.CapacityLimiter(1)


def hashing() -> trio.CapacityLimiter:
    return trio.CapacityLimiter(HASHING_THREADS)
