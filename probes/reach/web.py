"""HTTP/1.1 for one request on one connection, redirects hop by hop, each through the guard again.

h11 speaks the protocol. Every read is bounded: headers, informational responses, the body as it
comes and as it unpacks. Once the origin has changed, credentials stay dropped for good.
"""

import ssl
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Union

import h11
import trio

from ..failure import Failed
from ..phases import Stopwatch
from ..result import FailureClass, Phase
from ..target import BadTarget, Url, redirected
from .cookies import Jar
from .dial import Connection
from .outward import Reach
from .resolve import Family
from .tls import HTTP_ALPN, expires_at_us
from .unpack import unpack

HEADERS_BYTES_MOST = 64 * 1024
INFORMATIONAL_MOST = 10
REDIRECTS_MOST = 5
BODY_BYTES_MOST = 1024 * 1024
_CHUNK = 65_536
_REDIRECTS = frozenset({301, 302, 303, 307, 308})

Header = tuple[str, str]
Stream = Union[trio.SocketStream, "trio.SSLStream[trio.SocketStream]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """`secrets` names, in lower case, the headers that are dropped when the origin changes; so is
    the body where `body_is_secret`. `redirects` is how many are followed; `keep_body` false reads
    the body and lets it go, `cert_expiry` asks for the certificate's end. The `jar`'s cookies go
    with each hop beside those of the headers.
    """

    method: str
    url: Url
    headers: Sequence[Header] = ()
    body: bytes = b""
    secrets: frozenset[str] = frozenset()
    body_is_secret: bool = False
    redirects: int = REDIRECTS_MOST
    keep_body: bool = True
    body_bytes_most: int = BODY_BYTES_MOST
    verify: bool = True
    cert_expiry: bool = False
    family: Family = Family.ANY
    jar: Jar | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """`headers` has lower-case names, repeated ones joined (RFC 9110, 5.3). `body` is unpacked;
    `whole` is false where reading stopped at the bound. `cert_ends_at` is µs since the epoch.
    """

    status: int
    headers: dict[str, str]
    body: bytes
    whole: bool
    address: str
    url: Url
    cert_ends_at: int | None = None

    @property
    def text(self) -> str:
        """The body as its charset says, UTF-8 where it says none or one that is not known."""
        kind = self.headers.get("content-type", "").lower()
        charset = kind.partition("charset=")[2].partition(";")[0].strip(" \"'")
        latin = charset in ("iso-8859-1", "latin1", "latin-1", "windows-1252", "cp1252")
        return self.body.decode("cp1252" if latin else "utf-8", "replace")


async def fetch(reach: Reach, request: Request, watch: Stopwatch) -> Response:
    """The last response of the chain. `Failed` with the class where there is none; a redirect more
    than `redirects` is the failure `http_status` with its code.
    """
    for hops_left in range(request.redirects, -1, -1):
        response = await _hop(reach, request, watch)
        location = response.headers.get("location")
        if response.status not in _REDIRECTS or not location or request.redirects == 0:
            return response
        if hops_left:
            request = _follow(request, response.status, location)
    raise Failed(FailureClass.HTTP_STATUS, response.status)


def _follow(request: Request, status: int, location: str) -> Request:
    """The next hop's request (RFC 9110, 15.4)."""
    try:
        url = redirected(request.url, location)
    except BadTarget:
        raise Failed(FailureClass.PROTOCOL_ERROR, status) from None
    method, body, headers = request.method, request.body, list(request.headers)
    if (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST"):
        method, body = "GET", b""
    if url.origin != request.url.origin:
        headers = [h for h in headers if h[0].lower() not in request.secrets | {"host"}]
        if request.body_is_secret:
            body = b""
    if not body:
        headers = [h for h in headers if not h[0].lower().startswith("content-")]
    return replace(request, url=url, method=method, body=body, headers=tuple(headers))


async def _hop(reach: Reach, request: Request, watch: Stopwatch) -> Response:
    url = request.url
    connection = await reach.dial(url.host, url.port, watch, request.family)
    try:
        if url.scheme == "http":
            return await _exchange(connection, connection.stream, request, watch, reach.user_agent)
        wrapped = await reach.encrypt(
            connection, url.host, watch, verify=request.verify, alpn=HTTP_ALPN
        )
        response = await _exchange(connection, wrapped, request, watch, reach.user_agent)
        if request.cert_expiry:
            response = replace(response, cert_ends_at=expires_at_us(wrapped))
        return response
    finally:
        # Nothing is left to say: a socket is closed without waiting, under cancellation too.
        connection.stream.socket.close()


async def _exchange(
    connection: Connection,
    stream: Stream,
    request: Request,
    watch: Stopwatch,
    user_agent: str,
) -> Response:
    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEADERS_BYTES_MOST)
    watch.begin(Phase.FIRST_BYTE)
    try:
        await _send(http, stream, request, user_agent)
        head = await _read_head(http, stream, watch)
        headers = _joined(head.headers)
        if request.jar is not None:
            set_cookies = [v.decode("latin-1") for n, v in head.headers if n == b"set-cookie"]
            request.jar.take(str(request.url), set_cookies)
        packed, whole = await _read_body(http, stream, request)
    except h11.RemoteProtocolError as error:
        too_large = error.error_status_hint == 431
        raise Failed(
            FailureClass.RESPONSE_TOO_LARGE if too_large else FailureClass.PROTOCOL_ERROR
        ) from error
    except (trio.BrokenResourceError, trio.ClosedResourceError, ssl.SSLError) as error:
        raise Failed(FailureClass.CONNECT_ERROR) from error
    body = packed
    if request.keep_body and packed:
        body, whole = unpack(
            packed, headers.get("content-encoding", ""), request.body_bytes_most, whole
        )
    return Response(
        status=head.status_code,
        headers=headers,
        body=body,
        whole=whole,
        address=connection.address,
        url=request.url,
    )


async def _send(
    http: h11.Connection,
    stream: Stream,
    request: Request,
    user_agent: str,
) -> None:
    """A target that answers without reading all of it is heard all the same."""
    headers = _with_cookies(request)
    given = {name.lower() for name, _ in headers}
    for name, value in (
        ("host", request.url.authority),
        ("user-agent", user_agent),
        ("accept", "*/*"),
        ("accept-encoding", "gzip, deflate" if request.keep_body else "identity"),
    ):
        if name not in given:
            headers.append((name, value))
    if request.body or request.method in ("POST", "PUT"):
        headers.append(("content-length", str(len(request.body))))
    headers.append(("connection", "close"))
    wire = http.send(
        h11.Request(
            method=request.method,
            target=request.url.path.encode("ascii"),
            headers=[(n.encode("ascii"), v.encode("utf-8")) for n, v in headers],
        )
    )
    assert wire is not None
    if request.body:
        wire += http.send(h11.Data(data=request.body)) or b""
    wire += http.send(h11.EndOfMessage()) or b""
    try:
        await stream.send_all(wire)
    except trio.BrokenResourceError:
        if not request.body:
            raise


def _with_cookies(request: Request) -> list[Header]:
    """One Cookie header at most (RFC 6265, 5.4)."""
    headers = list(request.headers)
    kept = request.jar.header_for(str(request.url)) if request.jar is not None else ""
    if kept:
        own = [value for name, value in headers if name.lower() == "cookie"]
        headers = [header for header in headers if header[0].lower() != "cookie"]
        headers.append(("cookie", "; ".join([*own, kept])))
    return headers


async def _read_head(
    http: h11.Connection,
    stream: Stream,
    watch: Stopwatch,
) -> h11.Response:
    informational = 0
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            data = await stream.receive_some(_CHUNK)
            watch.done()
            http.receive_data(bytes(data))
        elif isinstance(event, h11.Response):
            return event
        elif isinstance(event, h11.InformationalResponse):
            informational += 1
            if informational > INFORMATIONAL_MOST or event.status_code == 101:
                raise Failed(FailureClass.PROTOCOL_ERROR)
        else:
            raise Failed(FailureClass.PROTOCOL_ERROR)


async def _read_body(
    http: h11.Connection,
    stream: Stream,
    request: Request,
) -> tuple[bytes, bool]:
    """The body as it came, and whether it is whole; empty where it is not wanted."""
    pieces: list[bytes] = []
    size = 0
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(bytes(await stream.receive_some(_CHUNK)))
        elif isinstance(event, h11.Data):
            size += len(event.data)
            if request.keep_body:
                pieces.append(bytes(event.data))
            if size > request.body_bytes_most:
                return b"".join(pieces)[: request.body_bytes_most], False
        elif isinstance(event, h11.EndOfMessage):
            return b"".join(pieces), True
        else:
            raise Failed(FailureClass.PROTOCOL_ERROR)


def _joined(headers: h11._headers.Headers) -> dict[str, str]:
    joined: dict[str, str] = {}
    for name, value in headers:
        key, text = name.decode("ascii"), value.decode("utf-8", "replace")
        joined[key] = f"{joined[key]}, {text}" if key in joined else text
    return joined
