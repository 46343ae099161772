"""Outgoing connections: resolve once, check each address, connect to that very address.

Addresses of both families alternate. The next attempt starts when the previous one has failed or
has lasted `HEAD_START_SECONDS` (RFC 8305). The first connection wins.
"""

import errno
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import trio

from ..check.failure import LocalFailure, TargetFailure
from ..check.phase_timer import Stopwatch
from ..check.result import FailureClass, ProbePhase, UnknownReason
from .egress_policy import EgressPolicy
from .icmp_echo import Echo, open_echo
from .resolver import Family, Resolver
from .sockets import class_of, connected

HEAD_START_SECONDS = 0.25
TRIED_MOST = 6

T = TypeVar("T")


@dataclass(slots=True)
class DialedConnection:
    """An open stream and the address at its other end. The caller closes the stream.

    `tunnel` is the TLS stream to an https proxy, through which the target is reached.
    """

    stream: trio.SocketStream
    address: str
    tunnel: "trio.SSLStream[trio.SocketStream] | None" = None

    @property
    def carrier(self) -> "trio.SocketStream | trio.SSLStream[trio.SocketStream]":
        """Returns the stream on which the target is reached."""
        return self.stream if self.tunnel is None else self.tunnel


async def dial(
    resolver: Resolver,
    policy: EgressPolicy,
    host: str,
    port: int,
    watch: Stopwatch,
    family: Family = Family.ANY,
) -> DialedConnection:
    """Returns a connection to `host`. Raises `TargetFailure` with the class, or `LocalFailure`."""
    allowed = await _allowed(resolver, policy, host, watch, family)
    watch.begin(ProbePhase.CONNECT)
    try:
        if len(allowed) == 1:
            connection = await _connect(allowed[0], port)
        else:
            connection = await _race(_interleaved(allowed)[:TRIED_MOST], port)
    except TargetFailure as failure:
        if _was_connected(failure):
            watch.done()
        raise
    watch.done()
    return connection


def _was_connected(failure: TargetFailure) -> bool:
    """Returns whether the connection existed before it failed.

    A refusal of the handshake is ECONNREFUSED. ECONNRESET means that the peer accepted and reset
    the connection before this process saw it.
    """
    cause = failure.__cause__
    return isinstance(cause, OSError) and cause.errno == errno.ECONNRESET


async def dial_datagram(
    resolver: Resolver, policy: EgressPolicy, host: str, port: int, watch: Stopwatch
) -> trio.socket.SocketType:
    """Returns a datagram socket connected to the first address that has a route.

    The caller closes it.
    """
    allowed = await _allowed(resolver, policy, host, watch, Family.ANY)
    return await _first(allowed, lambda a: connected(a, port, kind=socket.SOCK_DGRAM))


async def dial_echo(resolver: Resolver, policy: EgressPolicy, host: str, watch: Stopwatch) -> Echo:
    """Returns an ICMP echo to the first address that has a route.

    The caller closes it.
    """
    allowed = await _allowed(resolver, policy, host, watch, Family.ANY)
    return await _first(allowed, open_echo)


async def _first(allowed: list[str], connect: Callable[[str], Awaitable[T]]) -> T:
    lost: LocalFailure | None = None
    for address in _interleaved(allowed)[:TRIED_MOST]:
        try:
            return await connect(address)
        except LocalFailure as failure:
            lost = failure
        except OSError as error:
            raise TargetFailure(class_of(error)) from error
    assert lost is not None
    raise lost


async def _allowed(
    resolver: Resolver, policy: EgressPolicy, host: str, watch: Stopwatch, family: Family
) -> list[str]:
    """Returns the addresses of `host` that the policy allows, at least one.

    Raises: `TargetFailure(target_blocked)` if the policy refuses all of them.
    """
    watch.begin(ProbePhase.DNS)
    addresses = await resolver.lookup(host, family, watch)
    watch.done()
    allowed = [a for a in addresses if policy.refuses(a) is None]
    if not allowed:
        raise TargetFailure(FailureClass.TARGET_BLOCKED)
    return allowed


async def _connect(address: str, port: int) -> DialedConnection:
    try:
        sock = await connected(address, port)
    except OSError as error:
        raise TargetFailure(class_of(error)) from error
    return DialedConnection(trio.SocketStream(sock), address)


async def _race(addresses: list[str], port: int) -> DialedConnection:
    """Returns the first connection of the staggered attempts.

    The nursery raises only cancellation, so that the caller never receives an exception group.
    """
    won: list[DialedConnection] = []
    lost: list[TargetFailure | LocalFailure] = []

    async def attempt(address: str, ended: trio.Event) -> None:
        try:
            connection = await _connect(address, port)
        except (TargetFailure, LocalFailure) as failure:
            lost.append(failure)
        else:
            if won:
                connection.stream.socket.close()
            else:
                won.append(connection)
                nursery.cancel_scope.cancel()
        ended.set()

    try:
        async with trio.open_nursery() as nursery:
            for address in addresses:
                ended = trio.Event()
                nursery.start_soon(attempt, address, ended)
                with trio.move_on_after(HEAD_START_SECONDS):
                    await ended.wait()
    except BaseException:
        for connection in won:
            connection.stream.socket.close()
        raise
    if won:
        return won[0]
    raise min(lost, key=_weight)


def _weight(failure: TargetFailure | LocalFailure) -> int:
    """Returns the rank by which one of several failures is chosen. The lowest wins.

    An address that could not be tried leaves the result open, whatever the other attempts returned.
    A family without a route on this host does not.
    """
    if isinstance(failure, TargetFailure):
        return 1
    return 2 if failure.reason is UnknownReason.NO_ROUTE else 0


def _interleaved(addresses: list[str]) -> list[str]:
    """Returns the addresses with the families alternating, IPv6 first, else in answer order."""
    v6 = [a for a in addresses if ":" in a]
    v4 = [a for a in addresses if ":" not in a]
    turns = [a for pair in zip(v6, v4, strict=False) for a in pair]
    shorter = min(len(v6), len(v4))
    return turns + v6[shorter:] + v4[shorter:]
