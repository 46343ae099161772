"""Egress of the checks from the configuration: one value per process, for every role."""

import ipaddress

from ...probes.net.egress import Egress, make_reach
from ...probes.net.egress_policy import probe_policy
from ..runtime import limits
from .config_schema import Settings, split_address


def make_egress(settings: Settings, user_agent: str) -> Egress:
    """Returns the egress. Start `lag.watch` before the first check; no task runs yet."""
    prober = settings.prober
    policy = probe_policy(
        tuple(ipaddress.ip_network(text, strict=False) for text in prober.deny_networks),
        allow_private=prober.allow_private_ips,
    )
    check = split_address(prober.connectivity_check) if prober.connectivity_check else None
    return make_reach(
        policy,
        connectivity_check=check,
        user_agent=user_agent,
        threads=limits.working(prober.concurrency),
    )
