"""Notifications of the service state to systemd, if systemd requests them.

The watchdog ping proves that the loops make progress. It is sent only while every loop has made a
pass within its time limit.

Source: sd_notify(3).
"""

import os
import socket
from collections.abc import Callable

import trio


def notify(message: str) -> None:
    """Sends a line such as READY=1; a no-op without a notification socket."""
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
    """Returns the ping interval, half of the systemd limit; None without a watchdog."""
    wanted = os.environ.get("WATCHDOG_USEC", "")
    owner = os.environ.get("WATCHDOG_PID", str(os.getpid()))
    if not wanted.isdigit() or owner != str(os.getpid()):
        return None
    return int(wanted) / 2_000_000


async def keep_alive(is_moving: Callable[[], bool]) -> None:
    """Pings at the interval that systemd requires, while `is_moving` returns true."""
    seconds = watchdog_seconds()
    if seconds is None:
        await trio.sleep_forever()
        return
    while True:
        if is_moving():
            notify("WATCHDOG=1")
        await trio.sleep(seconds)
