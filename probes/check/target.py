"""Target syntax, and the target's host, the only part that a message may show.

Pure. Stricter than RFC 3986 if leniency would let two parsers see two different hosts.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address
from urllib.parse import quote, urljoin, urlsplit

import dns.exception
import dns.name

TARGET_LONGEST = 2048
HOST_LONGEST = 253
DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}

_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_LABELS = re.compile(rf"{_LABEL}(\.{_LABEL})*")
# As `ipaddress` reads it. Some parsers read a leading zero as octal, others as decimal.
_OCTET = r"(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4 = re.compile(rf"{_OCTET}(\.{_OCTET}){{3}}")
_ZONE = re.compile(r"[a-z0-9_.-]{1,15}")
_PATH_SAFE = "/?:@!$&'()*+,;=-._~%[]"


class BadTarget(ValueError):
    """Raised for an invalid target. The text states the fault and repeats no part of it."""


@dataclass(frozen=True, slots=True)
class Url:
    """Parts of a URL.

    `host` is lower-case ASCII without brackets. `path` begins with / and includes the query.
    """

    scheme: str
    host: str
    port: int
    path: str

    @property
    def origin(self) -> tuple[str, str, int]:
        return (self.scheme, self.host, self.port)

    @property
    def authority(self) -> str:
        """Returns host and port for the Host header, without the scheme's default port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


@lru_cache(maxsize=4_096)
def read_url(text: str, schemes: tuple[str, ...] = ("http", "https")) -> Url:
    """Parses an absolute URL.

    Raises: `BadTarget` if the URL is invalid or contains userinfo.
    """
    _refuse_odd_characters(text)
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise BadTarget("is not a URL") from None
    if parts.scheme not in schemes:
        raise BadTarget(f"must begin with {' or '.join(f'{s}://' for s in schemes)}")
    if "@" in parts.netloc:
        raise BadTarget("must not carry a user name or password")
    if "\\" in text or "%" in parts.netloc:
        raise BadTarget("has a host that cannot be read")
    host = read_host(parts.hostname or "")
    if port == 0:
        raise BadTarget("has a port outside 1 to 65535")
    path = quote(parts.path or "/", safe=_PATH_SAFE)
    if parts.query:
        path += "?" + quote(parts.query, safe=_PATH_SAFE)
    return Url(parts.scheme, host, port or DEFAULT_PORTS[parts.scheme], path)


def redirected(base: Url, location: str) -> Url:
    """Returns the target of a Location header (RFC 9110, 10.2.2).

    Raises: `BadTarget` if it is invalid or contains userinfo.
    """
    try:
        joined = urljoin(str(base), quote(location.strip(), safe=_PATH_SAFE + "#"))
    except ValueError:
        raise BadTarget("is not a URL") from None
    return read_url(joined)


def read_host_port(text: str, default_port: int | None = None) -> tuple[str, int]:
    """Parses `host:port`, with an IPv6 address in brackets.

    With a default port, the port can be left out.

    Raises: `BadTarget` if it is invalid.
    """
    _refuse_odd_characters(text)
    if "@" in text:
        raise BadTarget("must not carry a user name or password")
    if "/" in text:
        raise BadTarget("must be host:port, without a scheme or a path")
    if default_port is not None and (":" not in text or text.endswith("]")):
        text = f"{text}:{default_port}"
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or len(port) > 5:
        raise BadTarget("must be host:port")
    if not 1 <= int(port) <= 65535:
        raise BadTarget("has a port outside 1 to 65535")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise BadTarget("must have an IPv6 address in brackets")
    return read_host(host), int(port)


def read_host(text: str) -> str:
    """Returns a name or an address in canonical form: lower-case, IDNA, no final dot.

    Raises: `BadTarget` if it is invalid.
    """
    host = text.strip().lower().removesuffix(".")
    if not host:
        raise BadTarget("has no host")
    if ":" in host:
        return _ipv6(host)
    if not host.isascii():
        host = _a_labels(host)
    if len(host) > HOST_LONGEST or not _LABELS.fullmatch(host):
        raise BadTarget("has a host that cannot be read")
    # Some parsers read 127.1, 0x7f000001 and 2130706433 as addresses, others as names.
    last = host.rpartition(".")[2]
    if (last.isdigit() or last.startswith("0x")) and not _IPV4.fullmatch(host):
        raise BadTarget("has an address that is not written in full")
    return host


def _ipv6(host: str) -> str:
    address, percent, zone = host.partition("%")
    try:
        spelled = IPv6Address(address).compressed
    except ValueError:
        raise BadTarget("has a host that cannot be read") from None
    if percent and not _ZONE.fullmatch(zone):
        raise BadTarget("has a host that cannot be read")
    return spelled + percent + zone


def _a_labels(host: str) -> str:
    try:
        name = dns.name.from_unicode(host, origin=None, idna_codec=dns.name.IDNA_2008_UTS_46)
    except (dns.exception.DNSException, UnicodeError):
        raise BadTarget("has a host that cannot be read") from None
    return name.to_text().lower()


def _refuse_odd_characters(text: str) -> None:
    if not text:
        raise BadTarget("is missing")
    if len(text) > TARGET_LONGEST:
        raise BadTarget(f"is longer than {TARGET_LONGEST} characters")
    if any(c <= " " or c == "\x7f" or "\ud800" <= c <= "\udfff" or c.isspace() for c in text):
        raise BadTarget("contains a space or a control character")
