"""Warning of a monitor whose certificate ends soon, which is not an outage.

A warning begins when the certificate that counts ends within the days of the setting. It ends when
one with more days counts, when the checks use no TLS any more, or when the setting is removed.

Invariant: an unknown certificate neither begins nor ends a warning. After the end of
a certificate, it begins no warning until a check accepts it: a refusal is an outage already.
"""

from dataclasses import dataclass
from typing import Final

from ...core.instant import DAY, HOUR, Instant
from ...monitors.rules.certificate import SeenCertificate

# Time beyond the days that ends a warning, more than a correction of the clock.
HYSTERESIS_US: Final = HOUR


@dataclass(frozen=True, slots=True)
class WatchedCertificate:
    """Facts that decide about the warning of a monitor.

    `days` is 0 without the setting. `is_known` is false before a check of the present revision saw
    a certificate. If it is true, `certificate` is None for checks without TLS.
    """

    days: int
    is_known: bool = False
    certificate: SeenCertificate | None = None


def begins(watched: WatchedCertificate, now: Instant) -> bool:
    """Returns whether a monitor without a warning begins one."""
    seen = watched.certificate
    if not watched.days or seen is None or seen.seen_at < seen.ends_at <= now:
        return False
    return seen.ends_at - now <= watched.days * DAY


def ends(watched: WatchedCertificate, now: Instant) -> bool:
    """Returns whether a warning ends."""
    if not watched.days:
        return True
    if watched.certificate is None:
        return watched.is_known
    return watched.certificate.ends_at - now > watched.days * DAY + HYSTERESIS_US
