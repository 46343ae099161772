"""Expiry of API tokens: a chosen end is in the future and bounded."""

from typing import Final

from ...core.instant import DAY, Instant

LIFETIME_DAYS_MOST: Final = 3_650


def expiry_fault(expires_at: Instant | None, now: Instant) -> str | None:
    """Returns why an end cannot be chosen now, None if it can. No end is always possible."""
    if expires_at is None:
        return None
    if expires_at <= now:
        return "must be in the future"
    if expires_at > now + LIFETIME_DAYS_MOST * DAY:
        return f"must be at most {LIFETIME_DAYS_MOST:,} days from now"
    return None


def successor_expiry(
    created_at: Instant, chosen_expiry: Instant | None, now: Instant
) -> Instant | None:
    """Returns the end of a successor: it lives as long as its predecessor was to live.

    A token without a chosen end has a successor without an end.
    """
    if chosen_expiry is None:
        return None
    lifetime = min(chosen_expiry - created_at, LIFETIME_DAYS_MOST * DAY)
    return Instant(now + lifetime)
