"""A network of the test: a namespace with the given addresses on its loopback.

Every address exists there, globally routable or not, so an address without a connection was not
tried. Needs root for the namespace.
"""

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

CLONE_NEWNET = 0x40000000
_CURRENT = "/proc/thread-self/ns/net"


@contextmanager
def own_network(*addresses: str) -> Iterator[None]:
    """Runs the block in a new network; threads that this thread starts are in it as well."""
    libc = ctypes.CDLL(None, use_errno=True)
    with _and_back():
        if libc.unshare(CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        for address in addresses:
            form = ("-6", f"{address}/128", "nodad") if ":" in address else ("-4", address)
            family, prefixed, *more = form
            command = ["ip", family, "address", "add", prefixed, "dev", "lo", *more]
            subprocess.run(command, check=True)
        yield


@contextmanager
def kept_network(*addresses: str) -> Iterator[None]:
    """Enters a network like `own_network`, which is created once per process.

    A test must not change its addresses or routes.
    """
    network = _kept(addresses)
    with _and_back():
        _enter(network)
        yield


@cache
def _kept(addresses: tuple[str, ...]) -> int:
    """Returns a descriptor that keeps the namespace until the process ends."""
    with own_network(*addresses):
        return os.open(_CURRENT, os.O_RDONLY)


@contextmanager
def _and_back() -> Iterator[None]:
    home = os.open(_CURRENT, os.O_RDONLY)
    try:
        yield
    finally:
        try:
            _enter(home)
        finally:
            os.close(home)


def _enter(network: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(network, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")
