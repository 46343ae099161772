"""HTTP options and rate limits from the configuration."""

import ipaddress

from msgspec.structs import replace

from ...http.wire.admission_control import RateLimits
from ...http.wire.agent_credential import configured_agents
from ...http.wire.options import HttpOptions
from ...probes.senders.mail_settings import MailSettings
from ..config.config_schema import ChangeConfig, Gate, Pull, Settings, mail_settings_of, sign_on_of


def gate_bounds(gate: Gate) -> RateLimits:
    return RateLimits(
        inflight_process=gate.evaluate_inflight_process,
        inflight_principal=gate.evaluate_inflight_principal,
        principal_per_minute=gate.evaluate_rate_principal_per_minute,
        process_per_minute=gate.evaluate_rate_process_per_minute,
    )


def record_bounds(change: ChangeConfig) -> RateLimits:
    """Returns the limits of change recording. A principal gets a quarter of the concurrent ones."""
    return RateLimits(
        inflight_process=change.record_inflight_process,
        inflight_principal=max(change.record_inflight_process // 4, 1),
        principal_per_minute=change.record_rate_principal_per_minute,
        process_per_minute=change.record_rate_process_per_minute,
    )


def regions_of(settings: Settings) -> frozenset[str]:
    """Returns the configured regions; a monitor can use no other region."""
    pulled = {region.name for region in settings.pull.regions}
    pulled |= {agent.region for agent in settings.pull.agents}
    return frozenset(settings.prober.regions) | pulled | {"core"}


def reserved_regions(pull: Pull) -> dict[str, frozenset[str]]:
    return {one.name: frozenset(one.organizations) for one in pull.regions if one.organizations}


def mail_of(settings: Settings) -> MailSettings:
    base_url = settings.server.public_base_url.rstrip("/")
    return replace(mail_settings_of(settings.mail), public_base_url=base_url)


def options_of(settings: Settings, *, probes: bool, version: str) -> HttpOptions:
    return HttpOptions(
        cookie_name=settings.session.cookie_name,
        cookie_secure=settings.session.secure,
        session_ttl_seconds=settings.session.ttl_seconds,
        local_enabled=settings.local.enabled,
        min_password_length=settings.local.min_password_length,
        login_rate_limit_per_minute=settings.local.login_rate_limit_per_minute,
        public_base_url=settings.server.public_base_url.rstrip("/"),
        base_path=settings.server.base_path,
        mail=mail_of(settings),
        sign_on=sign_on_of(settings.oidc, settings.server),
        jwt_audience=settings.oidc.jwt_audience,
        trusted_proxies=tuple(
            ipaddress.ip_network(text, strict=False) for text in settings.server.trusted_proxies
        ),
        regions=regions_of(settings),
        reserved=reserved_regions(settings.pull),
        probed_here=frozenset(settings.prober.regions if probes else ()),
        agents=configured_agents(
            settings.pull.token, {a.name: (a.token, a.region) for a in settings.pull.agents}
        ),
        canary_places=settings.canary.concurrency_per_region,
        has_agents=bool(settings.pull.token or settings.pull.agents or settings.pull.regions),
        heartbeat_days=settings.heartbeats.retention_days,
        ledger_days=settings.ledger.retention_days,
        version=version,
    )
