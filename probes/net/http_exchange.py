"""HTTP request and response, independent of the protocol version.

Pure except for the jar of a request. `RawResponse` is the response before decompression.
"""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Union

import trio

from ..check.private_key import ClientCertificate
from ..check.proxy import Proxy
from ..check.target import Url
from .cookies import Jar
from .resolver import Family

HEADERS_BYTES_MOST = 64 * 1024
INFORMATIONAL_MOST = 10
REDIRECTS_MOST = 5
BODY_BYTES_MOST = 1024 * 1024

# Every byte has a character. Five are undefined in cp1252, and decoding each of them as an error
# would cost as much as a hundred others.
_CP1252 = bytes(range(256)).decode("cp1252", "replace")

Header = tuple[str, str]
Stream = Union[trio.SocketStream, "trio.SSLStream[trio.SocketStream]"]


class Version(Enum):
    """HTTP version, with the ALPN protocols that the handshake offers (RFC 7301)."""

    ONE = ("http/1.1",)
    TWO = ("h2",)
    ANY = ("h2", "http/1.1")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One request.

    `secrets` names, in lower case, the headers that are dropped when the origin changes. The body
    is dropped too if `body_is_secret`. `redirects` is the number of redirects to follow, and
    `schemes` the allowed schemes of their targets.

    If `keep_body` is false, the body is read and discarded. `cert_expiry` requests the end of the
    certificate. The cookies of `jar` are added to those of the headers on each hop. `version` is
    the protocol version; ANY uses HTTP/2 if the server chooses it in the handshake. `identity` is
    presented to the origin of the first hop only. `proxy` opens the connection of every hop.
    """

    method: str
    url: Url = field(repr=False)
    headers: Sequence[Header] = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)
    secrets: frozenset[str] = frozenset()
    body_is_secret: bool = False
    redirects: int = REDIRECTS_MOST
    schemes: tuple[str, ...] = ("http", "https")
    keep_body: bool = True
    body_bytes_most: int = BODY_BYTES_MOST
    verify: bool = True
    cert_expiry: bool = False
    family: Family = Family.ANY
    jar: Jar | None = None
    version: Version = Version.ONE
    identity: ClientCertificate | None = None
    proxy: Proxy | None = None
    # The request in bytes by user agent, built once for all runs. A changed copy has none.
    made: dict[str, bytes] = field(default_factory=dict, init=False, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """Response of the last hop.

    `headers` has lower-case names, repeated ones joined (RFC 9110, 5.3). `body` is decompressed.
    `whole` is false if reading stopped at the bound. `address` is "" behind a proxy.
    `cert_ends_at` is µs since the epoch.
    """

    status: int
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    whole: bool
    address: str
    url: Url = field(repr=False)
    cert_ends_at: int | None = None

    @property
    def text(self) -> str:
        """Returns the body decoded as windows-1252 if its charset is Latin, else as UTF-8."""
        kind = self.headers.get("content-type", "").lower()
        charset = kind.partition("charset=")[2].partition(";")[0].strip(" \"'")
        latin = charset in ("iso-8859-1", "latin1", "latin-1", "windows-1252", "cp1252")
        if latin:
            return codecs.charmap_decode(self.body, "strict", _CP1252)[0]
        return self.body.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class RawResponse:
    """Response as received, with lower-case header names.

    `body` is still compressed, and empty if the request discards it.
    """

    status: int
    headers: Sequence[tuple[bytes, bytes]] = field(repr=False)
    body: bytes = field(repr=False)
    whole: bool


def request_headers(request: HttpRequest, user_agent: str) -> list[Header]:
    """Returns the headers for both versions: the given ones, then missing defaults."""
    headers = _with_cookies(request)
    given = {name.lower() for name, _ in headers}
    for name, value in (
        ("user-agent", user_agent),
        ("accept", "*/*"),
        ("accept-encoding", "gzip, deflate" if request.keep_body else "identity"),
    ):
        if name not in given:
            headers.append((name, value))
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        headers.append(("content-length", str(len(request.body))))
    return headers


def _with_cookies(request: HttpRequest) -> list[Header]:
    """Returns the headers with at most one Cookie header (RFC 6265, 5.4)."""
    headers = list(request.headers)
    kept = request.jar.header_for(str(request.url)) if request.jar is not None else ""
    if kept:
        own = [value for name, value in headers if name.lower() == "cookie"]
        headers = [header for header in headers if header[0].lower() != "cookie"]
        headers.append(("cookie", "; ".join([*own, kept])))
    return headers
