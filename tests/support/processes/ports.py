"""Ports for the servers of tests. Each is given once, and is outside the range that the system uses
for outgoing connections.
"""

import os
import random
import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# Below what Linux takes for outgoing connections (net.ipv4.ip_local_port_range).
_FROM, _BELOW = 20_000, 32_000
# Each of the processes that share the tests has its own ports, so a closed one stays closed.
_WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_untried = list(range(_FROM + _WORKER, _BELOW, _WORKERS))
# Not `random.shuffle`: Hypothesis seeds it, and a second run of the tests would get the same ports.
random.SystemRandom().shuffle(_untried)


def free_port(host: str = "127.0.0.1") -> int:
    """Returns a port that no socket of TCP or UDP is bound to.

    Raises `IndexError` when this process has used all of its ports.
    """
    while True:
        port = _untried.pop()
        with suppress(OSError):
            with socket.socket() as stream, socket.socket(type=socket.SOCK_DGRAM) as datagrams:
                stream.bind((host, port))
                datagrams.bind((host, port))
            return port


@contextmanager
def refusing_port(host: str = "127.0.0.1") -> Iterator[int]:
    """Yields a TCP port that refuses every connection.

    The socket stays bound and never listens: Linux answers a SYN with a reset, and gives the port
    to no other process while it is bound. A bound datagram socket would not refuse.
    """
    with socket.socket() as bound:
        bound.bind((host, 0))
        yield bound.getsockname()[1]


@contextmanager
def full_port(host: str = "127.0.0.1") -> Iterator[int]:
    """Yields a TCP port that drops every connection: its queue of one is full."""
    with socket.socket() as listener, socket.socket() as waiting:
        listener.bind((host, 0))
        listener.listen(0)
        port: int = listener.getsockname()[1]
        waiting.connect((host, port))
        # The client can be connected before the server has queued the connection.
        select.select([listener], [], [])
        yield port
