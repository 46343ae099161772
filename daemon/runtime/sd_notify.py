"""Tells systemd how the service stands (sd_notify(3)), where systemd asked to be told.

The watchdog ping proves that the loops move and not that a timer fires: it is only sent while every
loop has made a pass within its time.
"""

import os
import socket
from collections.abc import Callable

import trio


def notify(message: str) -> None:
    """Sends a line such as READY=1; silent where nobody listens."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        try:
            channel.connect(address)
            channel.send(message.encode())
        except OSError:
            return


def watchdog_seconds() -> float | None:
    """How often systemd wants a sign of life: half of what it allows; None where it wants none."""
    wanted = os.environ.get("WATCHDOG_USEC", "")
    owner = os.environ.get("WATCHDOG_PID", str(os.getpid()))
    if not wanted.isdigit() or owner != str(os.getpid()):
        return None
    return int(wanted) / 2_000_000


async def keep_alive(is_moving: Callable[[], bool]) -> None:
    """Pings as often as systemd asks, while the loops move."""
    seconds = watchdog_seconds()
    if seconds is None:
        await trio.sleep_forever()
        return
    while True:
        if is_moving():
            notify("WATCHDOG=1")
        await trio.sleep(seconds)
