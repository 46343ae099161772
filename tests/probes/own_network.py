"""A network of the test's own: a namespace with the addresses that it is given on its loopback.

Every address is there, globally routable or not, so that what is not reached was not tried. Needs
root, since namespaces do.
"""

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

CLONE_NEWNET = 0x40000000


@contextmanager
def own_network(*addresses: str) -> Iterator[None]:
    """This thread is in it meanwhile, and so are the threads that it begins."""
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        if libc.unshare(CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            for address in addresses:
                form = ("-6", f"{address}/128", "nodad") if ":" in address else ("-4", address)
                family, prefixed, *more = form
                command = ["ip", family, "address", "add", prefixed, "dev", "lo", *more]
                subprocess.run(command, check=True)
            yield
        finally:
            if libc.setns(home, CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
    finally:
        os.close(home)
