"""The only module that opens outgoing sockets: each to one address already checked.

An error that `connect` returns immediately comes from this host (no route, firewall, no
descriptors). A later error comes from the network. This separates local failures from target
failures.
"""

import errno
import socket

import trio

from ..check.failure import LocalFailure
from ..check.result import FailureClass, UnknownReason

_OURS_AT_ONCE = {
    errno.ENETUNREACH: UnknownReason.NO_ROUTE,
    errno.EAFNOSUPPORT: UnknownReason.NO_ROUTE,
    errno.EACCES: UnknownReason.EGRESS_DENIED,
    errno.EPERM: UnknownReason.EGRESS_DENIED,
}
_OURS_ALWAYS = {
    errno.EMFILE: UnknownReason.LOCAL_RESOURCES,
    errno.ENFILE: UnknownReason.LOCAL_RESOURCES,
    errno.ENOMEM: UnknownReason.LOCAL_RESOURCES,
    errno.ENOBUFS: UnknownReason.LOCAL_RESOURCES,
    errno.EADDRNOTAVAIL: UnknownReason.LOCAL_RESOURCES,
    errno.EAGAIN: UnknownReason.LOCAL_RESOURCES,
}


async def connected(
    address: str, port: int, *, kind: socket.SocketKind = socket.SOCK_STREAM
) -> trio.socket.SocketType:
    """Returns a socket connected to exactly this address. The caller closes it.

    On every error the socket is closed.
    Raises: `OSError` as the network reported it, `LocalFailure` if no packet left this host.
    """
    return trio.socket.from_stdlib_socket(await connected_plainly(address, port, kind))


async def connected_plainly(
    address: str, port: int, kind: socket.SocketKind, protocol: int = 0
) -> socket.socket:
    """Returns the socket of `connected` unwrapped and non-blocking."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        sock = socket.socket(family, kind, protocol)
    except OSError as error:
        raise trouble_at_once(error) from error
    try:
        sock.setblocking(False)
        number = sock.connect_ex(_socket_address(address, port))
        if number == errno.EINPROGRESS:
            await trio.lowlevel.wait_writable(sock)
            number = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if number:
                raise _ours(OSError(number, "connect"), _OURS_ALWAYS)
        elif number:
            if number == errno.EADDRNOTAVAIL and family == socket.AF_INET6:
                # The host has no IPv6 address of its own. It has not run out of ports.
                raise LocalFailure(UnknownReason.NO_ROUTE)
            raise trouble_at_once(OSError(number, "connect"))
        return sock
    except BaseException:
        sock.close()
        raise


def trouble_at_once(error: OSError) -> Exception:
    """Returns the exception for an error of a non-blocking call.

    It is a `LocalFailure` if this host is the cause, else the error itself.
    """
    return _ours(error, _OURS_AT_ONCE | _OURS_ALWAYS)


def class_of(error: OSError) -> FailureClass:
    """Returns the failure class of a connection error."""
    if error.errno == errno.ECONNREFUSED:
        return FailureClass.CONNECT_REFUSED
    if error.errno == errno.ETIMEDOUT:
        return FailureClass.CONNECT_TIMEOUT
    return FailureClass.CONNECT_ERROR


def _socket_address(address: str, port: int) -> tuple[str, int] | tuple[str, int, int, int]:
    host, percent, zone = address.partition("%")
    if not percent:
        return (host, port)
    try:
        scope = int(zone) if zone.isdigit() else socket.if_nametoindex(zone)
    except OSError as error:
        raise LocalFailure(UnknownReason.NO_ROUTE) from error
    return (host, port, 0, scope)


def _ours(error: OSError, causes: dict[int, UnknownReason]) -> Exception:
    reason = causes.get(error.errno or 0)
    return error if reason is None else LocalFailure(reason)
