"""httpx clients whose connections are dialled by `Egress`.

`EgressBackend` gives httpcore its connections: `Egress.dial` resolves, checks and connects each
address, and TLS uses the contexts of `Egress`. Failures are `TargetFailure` and `LocalFailure`,
as in `http_client`.

The transport reads the whole response within its bounds and closes the connection before httpx
sees the response. No connection is used twice. A request on an idle connection that the server
has closed could arrive and its response be lost, and a POST must not be repeated.
"""

import ssl
from collections.abc import AsyncIterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final

import h11
import httpcore
import httpx
import trio

from ..check.failure import TargetFailure
from ..check.phase_timer import Stopwatch
from ..check.result import FailureClass
from ..check.target import Url
from .decompression import unpack
from .dial import DialedConnection
from .egress import Egress
from .http1 import CHUNK, LINES_MOST, PLAIN_CHUNK
from .http_exchange import HEADERS_BYTES_MOST, Stream
from .tls_contexts import HTTP_ALPN

# httpcore would build a context for each connection. This one trusts no authority and is unused:
# `EgressStream.start_tls` uses the context of the egress.
_NO_CONTEXT: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
# The transport decompresses the body, so its headers no longer apply.
_NOT_PASSED_ON: Final = frozenset({b"content-encoding", b"content-length", b"transfer-encoding"})


def make_client(egress: Egress, *, seconds: float, bytes_most: int) -> httpx.AsyncClient:
    """Returns a client without proxy, netrc, cookies, redirects and connection reuse.

    `seconds` bounds each step of a request (connection, TLS, each read and write). The caller sets
    the deadline over all of it. At most `bytes_most` bytes of a body are read, and at most as many
    are decompressed. A longer body is truncated, and `is_whole` is then false.
    """
    return httpx.AsyncClient(
        transport=EgressTransport(egress, bytes_most),
        headers={
            "user-agent": egress.user_agent,
            "accept": "*/*",
            "accept-encoding": "gzip, deflate",
            "connection": "close",
        },
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        timeout=httpx.Timeout(seconds),
        trust_env=False,
    )


async def send_request(
    egress: Egress,
    method: str,
    url: Url,
    *,
    headers: Mapping[str, str],
    body: bytes = b"",
    bytes_most: int,
    seconds: float,
) -> httpx.Response:
    """Sends one request and returns its response, with any status. Follows no redirect.

    Raises: `TargetFailure` with the class, or `LocalFailure`.
    """
    async with make_client(egress, seconds=seconds, bytes_most=bytes_most) as client:
        return await client.request(
            method,
            str(url),
            content=body,
            headers=[(n.encode("ascii"), v.encode("utf-8")) for n, v in headers.items()],
            # Sends the path unchanged. httpx would resolve its dot segments.
            extensions={"target": url.path.encode("ascii")},
        )


def is_whole(response: httpx.Response) -> bool:
    """Returns whether the body ended within the bound."""
    return bool(response.extensions["whole"])


def location_of(response: httpx.Response) -> str:
    """Returns the Location of a redirect response, or "" if it has no such header."""
    return str(response.extensions["location"])


class EgressTransport(httpx.AsyncBaseTransport):
    """Transport of httpx over an httpcore pool. `make_client` documents the bounds."""

    def __init__(self, egress: Egress, bytes_most: int) -> None:
        self._bytes_most = bytes_most
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=_NO_CONTEXT,
            max_connections=1,
            max_keepalive_connections=0,
            network_backend=EgressBackend(egress),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, AsyncIterable)
        with _failures_named():
            response = await self._pool.handle_async_request(
                httpcore.Request(
                    method=request.method,
                    url=httpcore.URL(
                        scheme=request.url.raw_scheme,
                        host=request.url.raw_host,
                        port=request.url.port,
                        target=request.url.raw_path,
                    ),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
            try:
                body, is_whole = await self._read(response)
            finally:
                await response.aclose()
        headers = httpx.Headers(response.headers)
        if body:
            encoding = headers.get("content-encoding", "")
            body, is_whole = unpack(body, encoding, self._bytes_most, is_whole)
        # httpx builds the request of each redirect, even if it follows none of them, and raises if
        # it cannot parse the Location.
        location = headers.pop("location", "")
        return httpx.Response(
            response.status,
            headers=[(n, v) for n, v in headers.raw if n.lower() not in _NOT_PASSED_ON],
            content=body,
            extensions={"whole": is_whole, "location": location},
        )

    async def _read(self, response: httpcore.Response) -> tuple[bytes, bool]:
        network: EgressStream = response.extensions["network_stream"]
        is_chunked = any(name.lower() == b"transfer-encoding" for name, _ in response.headers)
        network.begin_body(CHUNK if is_chunked else PLAIN_CHUNK)
        body = bytearray()
        try:
            async for piece in response.aiter_stream():
                body += piece
                # Breaking out of the loop would leave generators of httpcore suspended, which Trio
                # reports as leaked. The next read raises `_Cut` and ends them.
                network.is_cut = len(body) > self._bytes_most
        except _Cut:
            pass
        return bytes(body[: self._bytes_most]), not network.is_cut

    async def aclose(self) -> None:
        await self._pool.aclose()


class EgressBackend(httpcore.AsyncNetworkBackend):
    """Network backend of httpcore that connects only by `Egress.dial`."""

    def __init__(self, egress: Egress) -> None:
        self._egress = egress

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,  # noqa: ARG002 - httpcore's signature
        socket_options: Any = None,  # noqa: ARG002
    ) -> httpcore.AsyncNetworkStream:
        watch = Stopwatch()
        with _limited(timeout, FailureClass.CONNECT_TIMEOUT):
            connection = await self._egress.dial(host, port, watch)
        return EgressStream(self._egress, connection, watch)


class EgressStream(httpcore.AsyncNetworkStream):
    """One dialled connection. Reads of a response's head are bounded in bytes and in lines."""

    def __init__(self, egress: Egress, connection: DialedConnection, watch: Stopwatch) -> None:
        self._egress = egress
        self._connection = connection
        self._watch = watch
        self._stream: Stream = connection.stream
        self._unsent = bytearray()
        self._chunk = CHUNK
        self._is_head = True
        self._bytes = 0
        self._lines = 0
        # Set when the body has passed its bound. The next read then raises `_Cut`.
        self.is_cut = False

    def begin_body(self, chunk: int) -> None:
        """Ends the bounds of the head. From now on a read takes at most `chunk` bytes."""
        self._is_head = False
        self._chunk = chunk

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        if self.is_cut:
            raise _Cut
        if self._bytes > HEADERS_BYTES_MOST or self._lines > LINES_MOST:
            raise TargetFailure(FailureClass.RESPONSE_TOO_LARGE)
        try:
            with _limited(timeout, FailureClass.TIMEOUT):
                await self._send()
                data = bytes(await self._stream.receive_some(min(max_bytes, self._chunk)))
        except (trio.BrokenResourceError, trio.ClosedResourceError, ssl.SSLError) as error:
            raise TargetFailure(FailureClass.CONNECT_ERROR) from error
        if self._is_head:
            self._bytes += len(data)
            self._lines += data.count(b"\n")
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002, ASYNC109
        """Buffers `buffer` until the next read.

        The head and the body then leave in one segment. httpcore is also never cancelled in the
        middle of a generator, which Trio reports as leaked.
        """
        self._unsent += buffer

    async def _send(self) -> None:
        """Sends the buffered request. A broken write is ignored.

        A server may respond without reading the whole request, and its response is still read.
        """
        unsent, self._unsent = self._unsent, bytearray()
        if unsent:
            with suppress(trio.BrokenResourceError):
                await self._stream.send_all(unsent)

    async def aclose(self) -> None:
        self._connection.stream.socket.close()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,  # noqa: ARG002 - httpcore's signature
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore.AsyncNetworkStream:
        assert server_hostname is not None
        try:
            with _limited(timeout, FailureClass.TIMEOUT):
                self._stream = await self._egress.encrypt(
                    self._connection, server_hostname, self._watch, alpn=HTTP_ALPN
                )
        except BaseException:
            await self.aclose()
            raise
        return self

    def get_extra_info(self, info: str) -> Any:  # noqa: ARG002 - httpcore's signature
        return None


class _Cut(Exception):
    """Raised if the body has passed its bound."""


@contextmanager
def _limited(seconds: float | None, failure: FailureClass) -> Iterator[None]:
    with trio.move_on_after(float("inf") if seconds is None else seconds) as scope:
        yield
    if scope.cancelled_caught:
        raise TargetFailure(failure)


@contextmanager
def _failures_named() -> Iterator[None]:
    try:
        yield
    # httpcore raises LocalProtocolError for a header that a caller may not send. h11 raises its own
    # for a body whose length differs from the caller's content-length.
    except (
        httpcore.RemoteProtocolError,
        httpcore.LocalProtocolError,
        h11.LocalProtocolError,
    ) as error:
        raise TargetFailure(FailureClass.PROTOCOL_ERROR) from error
