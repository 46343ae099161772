"""The only place that opens an outward socket: to one address, already checked, by Trio's wait.

An error that `connect` gives at once comes from this host (no route, its firewall, no descriptors);
one that comes later comes from the network. That is what keeps our trouble from being the target's.
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
    """A socket connected to that very address; `OSError` as the network told it, `LocalFailure`
    where it never left this host. The caller closes it; on any way out of here it is closed.
    """
    return trio.socket.from_stdlib_socket(await connected_plainly(address, port, kind))


async def connected_plainly(
    address: str, port: int, kind: socket.SocketKind, protocol: int = 0
) -> socket.socket:
    """As `connected`, and not wrapped: never blocking, for whoever waits by itself."""
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
                # A host with no IPv6 address of its own, not one that has run out of ports.
                raise LocalFailure(UnknownReason.NO_ROUTE)
            raise trouble_at_once(OSError(number, "connect"))
        return sock
    except BaseException:
        sock.close()
        raise


def trouble_at_once(error: OSError) -> Exception:
    """What a call that does not wait was told: `LocalFailure` where this host said it, else the
    error as it is.
    """
    return _ours(error, _OURS_AT_ONCE | _OURS_ALWAYS)


def class_of(error: OSError) -> FailureClass:
    """What the network told of a connection, in the words of the wire."""
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
