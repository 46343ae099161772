"""Runner of loops: bounded passes with a rest between them.

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
    beat: Callable[[float], None],
    wake: WakeEvent,
    *,
    rest_seconds: Callable[[], float] | None = None,
    after_work: Callable[[], None] = lambda: None,
    limiter: trio.CapacityLimiter | None = None,
) -> None:
    """Calls `pass_once` until cancelled. A pass borrows one token of `limiter`.

    `beat` is called before and after each pass, for the watchdog, with the longest time to the next
    call. `pause_seconds` is the least time between two passes for known instants of work, and
    `rest_seconds` returns the longest time without a pass; without it the loop passes at each
    pause. `after_work` is called after a pass that `wake` began.
    """
    away_seconds = 0.0
    is_woken = True
    while True:
        beat(0.0)
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
        if is_woken:
            after_work()
        seconds = away_seconds or (pause_seconds if rest_seconds is None else rest_seconds())
        beat(seconds)
        is_woken = await wake.wait(seconds, least=pause_seconds)
