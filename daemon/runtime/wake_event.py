"""Wake event, which ends the pause of a loop when there is work for it."""

import random
from math import inf
from typing import Final

import trio

# Processes and loops that started together diverge, so that their polls do not coincide.
STAGGER: Final = 0.2


def staggered(seconds: float) -> float:
    """Returns up to STAGGER less than `seconds`."""
    return seconds * random.uniform(1 - STAGGER, 1)  # noqa: S311


class WakeEvent:
    """Event that resets itself after a wait; several calls of `set` count as one."""

    def __init__(self) -> None:
        self._event = trio.Event()
        self._is_set = False
        self._due = inf

    def set(self) -> None:
        self._is_set = True
        self._event.set()

    def set_at(self, at: float) -> None:
        """Wakes at the Trio instant `at`, in place of the instant given before."""
        if at != self._due:
            self._due = at
            self._event.set()

    async def wait(self, seconds: float, *, least: float = 0.0) -> bool:
        """Waits for `set` or the instant of `set_at`, but at most `seconds`.

        The instant ends the wait after `least` seconds at the earliest. Returns whether one of them
        ended the wait.
        """
        began = trio.current_time()
        if self._is_set:
            await trio.lowlevel.checkpoint()
        while not self._is_set:
            until = min(began + seconds, max(self._due, began + least))
            self._event = trio.Event()
            with trio.move_on_at(until) as bound:
                await self._event.wait()
            if bound.cancelled_caught:
                break
        is_woken = self._is_set or self._due <= trio.current_time()
        self._is_set, self._due = False, inf
        return is_woken
