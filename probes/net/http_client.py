"""One HTTP request. Each redirect is a new hop with its own egress check.

Once the origin has changed, credentials stay removed for all later hops. `http1` and `http2`
implement the protocol versions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import trio

from ..check.cpu_meter import current_meter
from ..check.failure import TargetFailure
from ..check.phase_timer import Stopwatch
from ..check.result import FailureClass
from ..check.target import BadTarget, redirected
from . import http1, http2
from .certificate_expiry import expires_at_us
from .decompression import unpack
from .dial import DialedConnection
from .egress import Egress
from .http_exchange import REDIRECTS_MOST, HttpRequest, HttpResponse, Stream, Version
from .proxy_tunnel import dial_through

__all__ = ["REDIRECTS_MOST", "HttpRequest", "HttpResponse", "Version", "fetch"]

_REDIRECTS = frozenset({301, 302, 303, 307, 308})


async def fetch(reach: Egress, request: HttpRequest, watch: Stopwatch) -> HttpResponse:
    """Returns the last response of the chain. Raises `TargetFailure` with the class.

    A redirect more than `redirects` is the failure `http_status` with its code. If `redirects` is
    0, the response of the first hop is returned, also a redirect.
    """
    meter = current_meter()
    if meter is not None:
        meter.allow_request()
    for hops_left in range(request.redirects, -1, -1):
        response = await _hop(reach, request, watch)
        location = leads_to(request, response.status, response.headers)
        if not location:
            return response
        if hops_left:
            request = follow(request, response.status, location)
    raise TargetFailure(FailureClass.HTTP_STATUS, response.status)


def leads_to(request: HttpRequest, status: int, headers: Mapping[str, str]) -> str:
    """Returns the Location of a redirect to follow, or "" without one."""
    if status not in _REDIRECTS or request.redirects == 0:
        return ""
    return headers.get("location", "")


def follow(request: HttpRequest, status: int, location: str) -> HttpRequest:
    """Returns the next hop's request (RFC 9110, 15.4).

    Raises `TargetFailure` if the location cannot be read or is not allowed.
    """
    try:
        url = redirected(request.url, location)
    except BadTarget:
        raise TargetFailure(FailureClass.PROTOCOL_ERROR, status) from None
    if url.scheme not in request.schemes:
        raise TargetFailure(FailureClass.TARGET_BLOCKED, status)
    method, body, headers = request.method, request.body, list(request.headers)
    if (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST"):
        method, body = "GET", b""
    if url.origin != request.url.origin:
        headers = [h for h in headers if h[0].lower() not in request.secrets | {"host"}]
        if request.body_is_secret:
            body = b""
        request = replace(request, identity=None)
    if not body:
        headers = [h for h in headers if not h[0].lower().startswith("content-")]
    return replace(request, url=url, method=method, body=body, headers=tuple(headers))


async def _hop(reach: Egress, request: HttpRequest, watch: Stopwatch) -> HttpResponse:
    url = request.url
    # That of the hop before belongs to another server, also if this hop fails before its own.
    watch.certificate = None
    connection = await dial_through(reach, request.proxy, url.host, url.port, watch, request.family)
    try:
        if url.scheme == "http":
            return await _exchange(connection, connection.carrier, request, watch, reach)
        wrapped = await reach.encrypt(
            connection,
            url.host,
            watch,
            verify=request.verify,
            alpn=request.version.value,
            identity=request.identity,
        )
        version = _chosen(request.version, wrapped)
        if version is not request.version:
            request = replace(request, version=version)
        response = await _exchange(connection, wrapped, request, watch, reach)
        if request.cert_expiry:
            response = replace(response, cert_ends_at=expires_at_us(wrapped))
        return response
    finally:
        # Closing the socket does not wait, so it also works under cancellation.
        connection.stream.socket.close()


def _chosen(version: Version, wrapped: "trio.SSLStream[trio.SocketStream]") -> Version:
    """Returns the version that the server chose. Without a choice it is HTTP/1.1.

    Raises: `TargetFailure(protocol_error)` if the request requires HTTP/2.
    """
    if wrapped.selected_alpn_protocol() == Version.TWO.value[0]:
        return Version.TWO
    if version is Version.TWO:
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    return Version.ONE


async def _exchange(
    connection: DialedConnection,
    stream: Stream,
    request: HttpRequest,
    watch: Stopwatch,
    reach: Egress,
) -> HttpResponse:
    version = http2 if request.version is Version.TWO else http1
    raw = await version.exchange(stream, request, watch, reach.user_agent)
    headers = joined(raw.headers)
    if request.jar is not None:
        set_cookies = [v.decode("latin-1") for n, v in raw.headers if n == b"set-cookie"]
        request.jar.take(str(request.url), set_cookies)
    body, whole = raw.body, raw.whole
    if request.keep_body and body:
        encoding = headers.get("content-encoding", "")
        body, whole = unpack(body, encoding, request.body_bytes_most, whole)
    return HttpResponse(
        status=raw.status,
        headers=headers,
        body=body,
        whole=whole,
        address=connection.address,
        url=request.url,
    )


def joined(headers: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Returns headers by lower-case name, with repeated ones joined (RFC 9110, 5.3)."""
    found: dict[str, str] = {}
    for name, value in headers:
        key, text = name.decode("latin-1"), value.decode("utf-8", "replace")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found
