"""Passwords are hashed by threads that give way to the loop, and by no other."""

import os
import sys
import threading

import pytest
import trio

from leadline.http.auth.passwords import NICENESS, Passwords


@pytest.fixture(scope="module")
def passwords() -> Passwords:
    """Hashes at the cost that the daemon uses."""
    return Passwords(trio.CapacityLimiter(2))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a priority is a process's")
async def test_only_the_hashing_thread_has_a_lower_priority(passwords: Passwords) -> None:
    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    usual = priority()
    assert await passwords._aside(priority) == max(usual, NICENESS)
    assert await trio.to_thread.run_sync(priority) == usual
    assert priority() == usual


async def test_a_hash_matches_only_its_own_password(passwords: Passwords) -> None:
    stored = await passwords.hash("six blind mice")
    # OWASP's first choice for argon2id.
    assert stored.startswith("$argon2id$v=19$m=47104,t=1,p=1$")
    assert await passwords.matches("six blind mice", stored)
    assert not await passwords.matches("six blind rats", stored)
    assert not await passwords.matches("six blind mice", None)
