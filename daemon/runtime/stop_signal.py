"""Receiver of the signals that stop a process."""

import logging
import signal
from typing import Final

import trio

from .sd_notify import notify
from .supervisor import Child, StopPhase

log = logging.getLogger("leadline.stop_signal")


async def _receive(stopping: trio.Event) -> None:
    """Sets `stopping` at the first SIGTERM or SIGINT; raises KeyboardInterrupt at the second."""
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            log.info("stopping", extra={"signal": signal.Signals(number).name})
            notify("STOPPING=1")
            if stopping.is_set():
                raise KeyboardInterrupt
            stopping.set()


# Runs from before the first component is created until after the last has ended.
SIGNALS: Final[Child[trio.Event]] = Child(
    "signals", StopPhase("signals"), bind=lambda stopping: lambda _: _receive(stopping)
)
