"""One request over HTTP and its answer, whichever version of the protocol carries them.

Pure but for the jar that a request brings along. `RawResponse` is the answer as it came.
"""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Union

import trio

from ..check.target import Url
from .cookies import Jar
from .resolver import Family

HEADERS_BYTES_MOST = 64 * 1024
INFORMATIONAL_MOST = 10
REDIRECTS_MOST = 5
BODY_BYTES_MOST = 1024 * 1024

# With a character for every byte: where five have none, each of them would cost as much as a
# hundred others.
_CP1252 = bytes(range(256)).decode("cp1252", "replace")

Header = tuple[str, str]
Stream = Union[trio.SocketStream, "trio.SSLStream[trio.SocketStream]"]


class Version(Enum):
    """Of HTTP, with the protocols that the handshake offers for it (RFC 7301)."""

    ONE = ("http/1.1",)
    TWO = ("h2",)
    ANY = ("h2", "http/1.1")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """`secrets` names, in lower case, the headers that are dropped when the origin changes; so is
    the body where `body_is_secret`. `redirects` is how many are followed, and to what only
    `schemes` says; `keep_body` false reads
    the body and lets it go, `cert_expiry` asks for the certificate's end. The `jar`'s cookies go
    with each hop beside those of the headers. `version` is what is
    spoken; ANY takes HTTP/2 where the server chooses it in the handshake.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """`headers` has lower-case names, repeated ones joined (RFC 9110, 5.3). `body` is unpacked;
    `whole` is false where reading stopped at the bound. `cert_ends_at` is µs since the epoch.
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
        """The body as its charset says, UTF-8 where it says none or one that is not known."""
        kind = self.headers.get("content-type", "").lower()
        charset = kind.partition("charset=")[2].partition(";")[0].strip(" \"'")
        latin = charset in ("iso-8859-1", "latin1", "latin-1", "windows-1252", "cp1252")
        if latin:
            return codecs.charmap_decode(self.body, "strict", _CP1252)[0]
        return self.body.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class RawResponse:
    """`body` as it came, packed still; empty where it was not wanted. Names are lower-case."""

    status: int
    headers: Sequence[tuple[bytes, bytes]] = field(repr=False)
    body: bytes = field(repr=False)
    whole: bool


def request_headers(request: HttpRequest, user_agent: str) -> list[Header]:
    """What is sent in either version: what was given, then what that leaves out."""
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
    """One Cookie header at most (RFC 6265, 5.4)."""
    headers = list(request.headers)
    kept = request.jar.header_for(str(request.url)) if request.jar is not None else ""
    if kept:
        own = [value for name, value in headers if name.lower() == "cookie"]
        headers = [header for header in headers if header[0].lower() != "cookie"]
        headers.append(("cookie", "; ".join([*own, kept])))
    return headers
