"""Runner of loops: bounded passes with a pause between them.

An unavailable database ends no loop; the outage and its end are logged once each. Any other
exception is a bug and is raised to the supervisor.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Final

import trio

from ...storage.core.refusal import Unavailable
from ..runtime.wake_event import WakeEvent

log = logging.getLogger("leadline.loop_runner")

AWAY_FIRST_SECONDS: Final = 0.5
AWAY_LAST_SECONDS: Final = 5.0


async def run_loop(
    name: str,
    pass_once: Callable[[], Awaitable[object]],
    pause_seconds: float,
    beat: Callable[[str], None],
    wake: WakeEvent | None = None,
    limiter: trio.CapacityLimiter | None = None,
) -> None:
    """Calls `pass_once` until cancelled, and `beat` after each pass for the watchdog.

    A pass borrows one token of `limiter`.
    """
    wake = wake or WakeEvent()
    away_seconds = 0.0
    while True:
        try:
            async with limiter or nullcontext():
                await pass_once()
        except Unavailable as error:
            if not away_seconds:
                log.warning("database unavailable", extra={"loop": name, "cause": str(error)})
            away_seconds = min(max(away_seconds * 2, AWAY_FIRST_SECONDS), AWAY_LAST_SECONDS)
        else:
            if away_seconds:
                log.info("database available again", extra={"loop": name})
            away_seconds = 0.0
        beat(name)
        await wake.wait(away_seconds or pause_seconds)
