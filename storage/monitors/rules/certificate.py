"""Choice of the certificate that counts for a target: the first to end among the recent ones.

Several servers can answer for a target, each with its own certificate. An old one on one of them
counts until no check saw it for `window_us`, while other checks saw another one or used no TLS.
A certificate is known by its end.

Invariant: time without a check, or with failing checks, removes no certificate, except one that
ended and was not seen afterwards, if another one is known.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from ...core.instant import DAY, HOUR, LATEST, Instant

# Certificates that are kept of one monitor: the first to end, and the newest.
CERTIFICATES_MOST: Final = 8
# Checks that must not have seen a certificate, within the bounds of time.
CHECKS_WITHOUT: Final = 20
WINDOW_US_LEAST: Final = HOUR
WINDOW_US_MOST: Final = 3 * DAY
# Rare checks need more time: so many must not have seen it. With two servers, half of the checks
# see one of them.
CHECKS_WITHOUT_LEAST: Final = 10
RARE_WINDOW_US_MOST: Final = 60 * DAY


class CertificateUnknown(StrEnum):
    """Reason why no certificate of a monitor is known."""

    NO_TLS = "no_tls"
    NOT_SEEN = "not_seen"


class Sighting(msgspec.Struct, frozen=True, array_like=True):
    """End of a certificate, None for checks without TLS, and when a check saw it last."""

    ends_at: Instant | None
    seen_at: Instant


class SeenCertificate(msgspec.Struct, frozen=True):
    """Certificate by its end, and when a check saw it last."""

    ends_at: Instant
    seen_at: Instant


class Sightings(msgspec.Struct, frozen=True, array_like=True):
    """What the checks of one monitor saw, within the window of this monitor."""

    window_us: int
    seen: list[Sighting]


def window_us(interval_us: int) -> int:
    """Returns how long a certificate counts after it was seen, up to the newest sighting.

    `interval_us` is the longest distance of two checks.
    """
    wanted = min(max(CHECKS_WITHOUT * interval_us, WINDOW_US_LEAST), WINDOW_US_MOST)
    return max(wanted, min(CHECKS_WITHOUT_LEAST * interval_us, RARE_WINDOW_US_MOST))


def merged(
    known: Iterable[Sighting], reports: Iterable[Sighting], window: int, now: Instant
) -> list[Sighting]:
    """Returns the sightings to keep, the first to end first.

    After the clock was set back, those of the future count as of `now`.
    """
    last: dict[Instant | None, Instant] = {}
    for one in (*known, *reports):
        seen_at = min(one.seen_at, now)
        last[one.ends_at] = max(last.get(one.ends_at, seen_at), seen_at)
    newest = max(last.values(), default=Instant(0))
    plain_at = last.pop(None, None)
    kept = [Sighting(end, seen) for end, seen in sorted(last.items()) if seen >= newest - window]
    if len(kept) > CERTIFICATES_MOST:
        first = kept[: CERTIFICATES_MOST - 1]
        rest = max(kept[CERTIFICATES_MOST - 1 :], key=lambda one: one.seen_at)
        kept = [*first, rest]
    if plain_at is not None and plain_at >= newest - window:
        kept.append(Sighting(None, plain_at))
    return kept


def that_counts(parts: Sequence[Sightings], now: Instant) -> SeenCertificate | None:
    """Returns the certificate that counts for the monitors of one target, None without TLS."""
    seen = [
        (Sighting(one.ends_at, min(one.seen_at, now)), part.window_us)
        for part in parts
        for one in part.seen
    ]
    newest = max((one.seen_at for one, _ in seen), default=now)
    found = [
        SeenCertificate(one.ends_at, one.seen_at)
        for one, window in seen
        if one.ends_at is not None and one.seen_at >= newest - window
    ]
    # One that ended is replaced or refused, unless the checks accept it.
    valid = [one for one in found if one.ends_at > now or one.seen_at >= one.ends_at]
    return min(valid or found, key=lambda one: (one.ends_at, -one.seen_at), default=None)


def same_until(parts: Sequence[Sightings], now: Instant) -> Instant:
    """Returns the first instant after `now` at which `that_counts` can differ, or `now`."""
    seen = [one for part in parts for one in part.seen]
    if any(one.seen_at > now for one in seen):
        return now
    ends = [one.ends_at for one in seen if one.ends_at is not None and one.ends_at > now]
    return min(ends, default=LATEST)
