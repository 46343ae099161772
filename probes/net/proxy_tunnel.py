"""Connection to a target through a proxy that allows CONNECT (RFC 9110, 9.3.6).

The egress policy applies to the address of the proxy. The proxy resolves the name of the target,
so the policy can only apply to a target that is an address, and to names of this host.
A failure of the proxy is `proxy_error`, with the status of its response.
"""

import ssl
from dataclasses import replace
from typing import Final

import h11
import trio

from ..check.failure import TargetFailure
from ..check.phase_timer import Stopwatch
from ..check.proxy import Proxy
from ..check.result import FailureClass, ProbePhase
from .dial import DialedConnection
from .egress import Egress
from .egress_policy import EgressPolicy, Refusal
from .resolver import Family
from .tls_contexts import HTTP_ALPN

HEAD_BYTES_MOST: Final = 16 * 1024
CHUNK: Final = 4_096
LINES_MOST: Final = 200
_LOCAL: Final = "localhost"


async def dial_through(
    reach: Egress,
    proxy: Proxy | None,
    host: str,
    port: int,
    watch: Stopwatch,
    family: Family = Family.ANY,
) -> DialedConnection:
    """Returns a connection to the target, through the proxy if there is one.

    `family` selects the address to connect to: the proxy, if there is one. The phase `connect` then
    ends when the proxy has opened the tunnel.
    Raises: `TargetFailure` with the class, or `LocalFailure`.
    """
    if proxy is None:
        return await reach.dial(host, port, watch, family)
    if _is_refused(reach.policy, host):
        raise TargetFailure(FailureClass.TARGET_BLOCKED)
    stood_for, watch.stands_for = watch.stands_for, FailureClass.PROXY_ERROR
    connection: DialedConnection | None = None
    opened = False
    try:
        connection = await reach.dial(proxy.url.host, proxy.url.port, watch, family)
        watch.begin(ProbePhase.CONNECT)
        if proxy.url.scheme == "https":
            # This handshake is a part of the phase `connect`.
            tunnel = await reach.encrypt(connection, proxy.url.host, Stopwatch(), alpn=HTTP_ALPN)
            connection = replace(connection, tunnel=tunnel)
        await _open_tunnel(connection, proxy, host, port, reach.user_agent)
        watch.done()
        opened = True
    except TargetFailure as failed:
        raise TargetFailure(FailureClass.PROXY_ERROR, failed.code) from failed
    finally:
        if connection is not None and not opened:
            connection.stream.socket.close()
    watch.stands_for = stood_for
    # The address of the target is not known.
    return replace(connection, address="")


def _is_refused(policy: EgressPolicy, host: str) -> bool:
    if not policy.allow_private and (host == _LOCAL or host.endswith(f".{_LOCAL}")):
        return True
    return policy.refuses(host) not in (None, Refusal.NO_ADDRESS)


async def _open_tunnel(
    connection: DialedConnection, proxy: Proxy, host: str, port: int, user_agent: str
) -> None:
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    headers = [("host", authority), ("user-agent", user_agent)]
    if proxy.authorization:
        headers.append(("proxy-authorization", proxy.authorization))
    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES_MOST)
    wire = http.send(h11.Request(method="CONNECT", target=authority, headers=headers))
    wire = (wire or b"") + (http.send(h11.EndOfMessage()) or b"")
    try:
        await connection.carrier.send_all(wire)
        status = await _status(http, connection)
    except (
        h11.RemoteProtocolError,
        trio.BrokenResourceError,
        trio.ClosedResourceError,
        ssl.SSLError,
    ) as error:
        raise TargetFailure(FailureClass.PROXY_ERROR) from error
    # Bytes of the target cannot precede ours: both protocols let the client begin.
    if not 200 <= status <= 299 or http.trailing_data[0]:
        raise TargetFailure(FailureClass.PROXY_ERROR, status)


async def _status(http: h11.Connection, connection: DialedConnection) -> int:
    """Returns the final status of the proxy. Its body, if any, is not read."""
    lines = 0
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            data = bytes(await connection.carrier.receive_some(CHUNK))
            lines += data.count(b"\n")
            if not data or lines > LINES_MOST:
                raise TargetFailure(FailureClass.PROXY_ERROR)
            http.receive_data(data)
        elif isinstance(event, h11.Response):
            return event.status_code
        elif not isinstance(event, h11.InformationalResponse):
            raise TargetFailure(FailureClass.PROXY_ERROR)
