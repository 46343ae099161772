"""Configuration of an agent: its server, token, region and data folder.

All faults are reported together, each with its configuration key.
"""

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
    """Validated configuration.

    `contexts` has the certificate authorities that the server's certificate is verified with.
    """

    server: Url
    contexts: TlsContexts
    token: str = field(repr=False)
    region: str
    folder: Path


class BadAgentConfig(Exception):
    """Raised for an invalid configuration. The text has one line per fault."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


def read_place(settings: Settings, environ: Mapping[str, str], folder: Path) -> AgentConfig:
    """Returns the configuration from the settings and LEADLINE_CA_FILE.

    Raises: `BadAgentConfig` with all faults.
    """
    faults: list[str] = []
    server = _server(settings.pull.server_url, faults)
    token = settings.pull.token
    if not token:
        faults.append("pull.token: an agent needs its token")
    elif not _TOKEN.fullmatch(token):
        faults.append("pull.token: contains a space, a line end or another invalid character")
    if len(settings.prober.regions) != 1:
        faults.append("prober.regions: an agent needs exactly one region")
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
        faults.append(f"{key}: must have no query and no fragment")
    elif url.path.rstrip("/").endswith("/api/v1"):
        faults.append(f"{key}: must be given without /api/v1")
    elif url.scheme == "http" and not _is_loopback(url.host):
        faults.append(f"{key}: must be https, except for a server on this host")
    return url


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _contexts(authorities: str, server: Url | None, faults: list[str]) -> TlsContexts:
    """Returns contexts with the authorities of the given file, else of this host."""
    contexts = TlsContexts(Path(authorities) if authorities else None, alone=True)
    if server is None or server.scheme != "https":
        return contexts
    try:
        contexts.context(verify=True, alpn=HTTP_ALPN)
    except LocalFailure:
        faults.append(f"{CA_FILE}: this host has no certificate authorities; name a file")
    except (OSError, ValueError):
        faults.append(f"{CA_FILE}: the file contains no readable certificate")
    return contexts
