"""Passwords: argon2id (RFC 9106) in a bounded number of threads with low priority.

A sign-in to an unknown account computes the same hash, so that the duration reveals no accounts.
The parameters are part of the stored string, so that they can be raised later.
"""

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, TypeVar

import trio
from cryptography.exceptions import InvalidKey
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

# OWASP's first choice: 46 MiB, one pass, one lane.
MEMORY_KIB: Final = 47_104
ITERATIONS: Final = 1
LANES: Final = 1
SALT_BYTES: Final = 16
HASH_BYTES: Final = 32
# A longer password is refused before it is hashed.
LONGEST: Final = 1_024
# If all cores compute hashes, the event loop still gets a core when it wakes.
NICENESS: Final = 10

T = TypeVar("T")


def _give_way() -> None:
    """Lowers the priority of this thread. Only on Linux is a priority per thread."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        with suppress(OSError):
            # An operator may have started the daemon with a lower priority still.
            lower = max(NICENESS, os.getpriority(os.PRIO_PROCESS, thread))
            os.setpriority(os.PRIO_PROCESS, thread, lower)


def _derive(password: bytes, memory_kib: int) -> str:
    kdf = Argon2id(
        salt=os.urandom(SALT_BYTES),
        length=HASH_BYTES,
        iterations=ITERATIONS,
        lanes=LANES,
        memory_cost=memory_kib,
    )
    return kdf.derive_phc_encoded(password)


def _verify(password: bytes, stored: str) -> bool:
    try:
        Argon2id.verify_phc_encoded(password, stored)
    except InvalidKey:
        return False
    return True


class Passwords:
    """Hashes and verifies passwords.

    `threads` bounds the concurrent hashes; further ones wait. `memory_kib` is the memory cost of
    new hashes; tests of other features choose a small one.
    """

    def __init__(self, threads: trio.CapacityLimiter, memory_kib: int = MEMORY_KIB) -> None:
        self._memory_kib = memory_kib
        self._threads = threads
        # A dedicated pool, since a thread of Trio's pool would keep the low priority in later jobs.
        self._hashing = ThreadPoolExecutor(
            int(threads.total_tokens), "hashing", initializer=_give_way
        )
        self._nobody = _derive(os.urandom(SALT_BYTES), memory_kib)

    async def hash(self, password: str) -> str:
        """Returns the PHC string to store."""
        return await self._aside(lambda: _derive(password.encode(), self._memory_kib))

    async def matches(self, password: str, stored: str | None) -> bool:
        """Returns whether the password matches. `stored` None (no account) takes equally long."""
        against = stored or self._nobody
        found = await self._aside(lambda: _verify(password.encode(), against))
        return found and stored is not None

    async def _aside(self, work: Callable[[], T]) -> T:
        return await trio.to_thread.run_sync(
            lambda: self._hashing.submit(work).result(),
            limiter=self._threads,
            abandon_on_cancel=True,
        )


def rule_broken(password: str, shortest: int) -> str | None:
    """Returns the violated rule of a new password; None if it is acceptable."""
    if len(password) < shortest:
        return f"must be at least {shortest} characters"
    if len(password) > LONGEST:
        return f"must be at most {LONGEST} characters"
    return None
