"""Options of the HTTP layer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from urllib.parse import urlsplit

from ...probes.oidc.oidc_settings import OidcSettings
from ...probes.senders.mail_settings import MailSettings
from .agent_credential import ConfiguredAgents


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """Settings of the configuration that the HTTP layer uses."""

    cookie_name: str = "leadline_session"
    cookie_secure: bool = False
    session_ttl_seconds: int = 604_800
    local_enabled: bool = True
    min_password_length: int = 10
    login_rate_limit_per_minute: int = 10
    # Ends with `base_path`, the path prefix of the installation.
    public_base_url: str = ""
    base_path: str = ""
    mail: MailSettings = field(default_factory=MailSettings)
    sign_on: OidcSettings = field(default_factory=OidcSettings)
    # Required audience of client tokens; empty: any audience.
    jwt_audience: str = ""
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    # Regions of the configuration; a monitor can use no other region.
    regions: frozenset[str] = frozenset({"core"})
    # Slugs of the organizations that may use a reserved region.
    reserved: Mapping[str, frozenset[str]] = field(default_factory=dict)
    # Regions that this process probes itself.
    probed_here: frozenset[str] = frozenset({"core"})
    # Agent tokens of the configuration. Agent routes exist only if `has_agents` is true.
    agents: ConfiguredAgents = field(default_factory=ConfiguredAgents)
    has_agents: bool = False
    # Canaries that a region can run concurrently.
    canary_places: int = 4
    heartbeat_days: int = 30
    ledger_days: int = 14
    version: str = ""
    commit: str = ""

    @property
    def public_host(self) -> str:
        """Returns the host name of the console in lower case, empty if none is configured."""
        return _host(self.public_base_url)

    @property
    def own_hosts(self) -> frozenset[str]:
        """Returns the configured host names of the console in lower case."""
        hosts = {self.public_host, _host(self.sign_on.redirect_url)}
        return frozenset(filter(None, hosts))


def _host(url: str) -> str:
    return (urlsplit(url).hostname or "").removesuffix(".")
