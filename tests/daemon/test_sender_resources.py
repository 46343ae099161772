"""Notifications use the network settings of the configuration and share the resources of the
probes."""

import ipaddress

from leadline.daemon.config.config_schema import (
    MailConfig,
    NotificationEgress,
    ProberConfig,
    Settings,
)
from leadline.daemon.process.wiring import means_of
from leadline.probes.net.egress import Egress, make_reach
from leadline.probes.net.egress_policy import Refusal, probe_policy
from leadline.storage.core.instant import Instant


def reach_of(deny: str = "") -> Egress:
    return make_reach(probe_policy((ipaddress.ip_network(deny),) if deny else ()))


def test_channels_keep_out_of_private_networks_unless_they_may_go_there() -> None:
    reach = reach_of("203.0.112.0/24")
    for allowed in (False, True):
        egress = NotificationEgress(allow_private_ips=allowed)
        means = means_of(Settings(notification_egress=egress), reach, lambda: Instant(0))
        assert (means.reach.policy.refuses("10.0.0.1") is None) == allowed
        assert means.reach.policy.refuses("169.254.169.254") is Refusal.METADATA
        assert means.reach.policy.refuses("203.0.112.9") is Refusal.DENIED
        assert means.reach.lag is reach.lag
        assert means.reach.resolver is reach.resolver
        assert means.reach.contexts is reach.contexts
        assert means.mail is None


def test_the_mail_server_can_have_a_private_address() -> None:
    given = MailConfig(enabled=True, smtp_host="10.0.0.2", smtp_port=25, from_="a@b.test")
    settings = Settings(mail=given, prober=ProberConfig(allow_private_ips=False))
    means = means_of(settings, reach_of(), lambda: Instant(0))
    assert means.mail is not None
    assert (means.mail.host, means.mail.port, means.mail.sender) == ("10.0.0.2", 25, "a@b.test")
    assert means.mail.reach.policy.refuses("10.0.0.2") is None
    assert means.mail.reach.policy.refuses("169.254.169.254") is Refusal.METADATA
    assert means.reach.policy.refuses("10.0.0.2") is Refusal.NOT_GLOBAL
