"""Where an agent stands: its server, its token, its one region, its folder; every fault of it is
told at once, by the key it stands at."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from ...probes.check.failure import LocalFailure
from ...probes.check.target import BadTarget, Url, read_url
from ...probes.net.tls_contexts import HTTP_ALPN, TlsContexts
from ..config.config_schema import Settings

CA_FILE: Final = "LEADLINE_CA_FILE"
_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,4096}")


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """`contexts` believes who vouches for the server, and holds what its TLS takes."""

    server: Url
    contexts: TlsContexts
    token: str = field(repr=False)
    region: str
    folder: Path


class BadAgentConfig(Exception):
    """A line for each fault."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


def read_place(settings: Settings, environ: Mapping[str, str], folder: Path) -> AgentConfig:
    """From what is configured and LEADLINE_CA_FILE; BadAgentConfig with all faults."""
    faults: list[str] = []
    server = _server(settings.pull.server_url, faults)
    token = settings.pull.token
    if not token:
        faults.append("pull.token: an agent needs the token it was given")
    elif not _TOKEN.fullmatch(token):
        faults.append("pull.token: holds a space, a line end, or what no token holds")
    if len(settings.prober.regions) != 1:
        faults.append("prober.regions: an agent stands in exactly one region")
    contexts = _contexts(environ.get(CA_FILE, ""), server, faults)
    if faults:
        raise BadAgentConfig(faults)
    assert server is not None, "without one there is a fault"
    return AgentConfig(server, contexts, token, settings.prober.regions[0], folder)


def _server(text: str, faults: list[str]) -> Url | None:
    key = "pull.server_url"
    if not text:
        faults.append(f"{key}: an agent needs the address of its server")
        return None
    try:
        url = read_url(text)
    except BadTarget as error:
        faults.append(f"{key}: {error}")
        return None
    if "?" in text or "#" in text:
        faults.append(f"{key}: has no query and no fragment")
    elif url.path.rstrip("/").endswith("/api/v1"):
        faults.append(f"{key}: is written without /api/v1")
    elif url.scheme == "http" and not _is_loopback(url.host):
        faults.append(f"{key}: is https, but for a server on this very host")
    return url


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _contexts(authorities: str, server: Url | None, faults: list[str]) -> TlsContexts:
    """Of that file alone where one is named, else of the authorities of this host."""
    contexts = TlsContexts(Path(authorities) if authorities else None, alone=True)
    if server is None or server.scheme != "https":
        return contexts
    try:
        contexts.context(verify=True, alpn=HTTP_ALPN)
    except LocalFailure:
        faults.append(f"{CA_FILE}: this host holds no certificate authorities: name a file of them")
    except (OSError, ValueError):
        faults.append(f"{CA_FILE}: no certificate can be read from it")
    return contexts
