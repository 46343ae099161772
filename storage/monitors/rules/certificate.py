"""Choice of the certificate that counts for a target: the first to end among the recent ones.

Several servers can answer for a target, each with its own certificate. An old one on one of them
counts until no check saw it for `window_us`. A certificate is known by its end.

Invariant: time without a check, or with failing checks, removes no certificate.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from ...core.instant import DAY, HOUR, SECOND, Instant

# Certificates that are kept of one monitor: the first to end, and the newest.
CERTIFICATES_MOST: Final = 8
# Checks that must not have seen a certificate, within the bounds of time.
CHECKS_WITHOUT: Final = 20
WINDOW_US_LEAST: Final = HOUR
WINDOW_US_MOST: Final = 3 * DAY


class CertificateUnknown(StrEnum):
    """Reason why no certificate of a monitor is known."""

    NO_TLS = "no_tls"
    NOT_SEEN = "not_seen"


class SeenCertificate(msgspec.Struct, frozen=True, array_like=True):
    """Certificate by its end, and when a check saw it last."""

    ends_at: Instant
    seen_at: Instant


def window_us(interval_seconds: int) -> int:
    """Returns how long a certificate counts after it was seen, up to the newest one."""
    wanted = CHECKS_WITHOUT * interval_seconds * SECOND
    return min(max(wanted, WINDOW_US_LEAST), WINDOW_US_MOST)


def merged(
    known: Iterable[SeenCertificate], reports: Iterable[SeenCertificate], window: int
) -> list[SeenCertificate]:
    """Returns the certificates to keep, the first to end first."""
    last: dict[Instant, Instant] = {}
    for one in (*known, *reports):
        last[one.ends_at] = max(last.get(one.ends_at, one.seen_at), one.seen_at)
    newest = max(last.values(), default=Instant(0))
    kept = [SeenCertificate(end, seen) for end, seen in sorted(last.items())]
    kept = [one for one in kept if one.seen_at >= newest - window]
    if len(kept) > CERTIFICATES_MOST:
        first = kept[: CERTIFICATES_MOST - 1]
        rest = max(kept[CERTIFICATES_MOST - 1 :], key=lambda one: one.seen_at)
        kept = [*first, rest]
    return kept


def that_counts(kept: Sequence[SeenCertificate]) -> SeenCertificate | None:
    return kept[0] if kept else None
