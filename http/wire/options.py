"""Options."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network

from ...probes.oidc.oidc_settings import OidcSettings
from ...probes.senders.mail_settings import MailSettings
from .agent_credential import ConfiguredAgents


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """What of the configuration is HTTP's business."""

    cookie_name: str = "leadline_session"
    cookie_secure: bool = False
    session_ttl_seconds: int = 604_800
    local_enabled: bool = True
    min_password_length: int = 10
    login_rate_limit_per_minute: int = 10
    public_base_url: str = ""
    mail: MailSettings = field(default_factory=MailSettings)
    sign_on: OidcSettings = field(default_factory=OidcSettings)
    # Whom tokens of clients must be meant for; empty: anybody.
    jwt_audience: str = ""
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    # Regions that the configuration knows; a monitor may stand in no other.
    regions: frozenset[str] = frozenset({"core"})
    # Of those that are not for everybody, the slugs of the organizations that they are for.
    reserved: Mapping[str, frozenset[str]] = field(default_factory=dict)
    # Those that this process probes in itself.
    probed_here: frozenset[str] = frozenset({"core"})
    # Agents that the configuration names; their routes are there only where it says so.
    agents: ConfiguredAgents = field(default_factory=ConfiguredAgents)
    has_agents: bool = False
    # How many canaries a region may run at once.
    canary_places: int = 4
    heartbeat_days: int = 30
    ledger_days: int = 14
    version: str = ""
    commit: str = ""
    # What a stranger is told on the sign-in page of a first start.
    signs_in_first: bool = False
