"""Validity of a gate override.

An override is active until it expires or is revoked, while its policy revision governs.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ...core.instant import DAY, Instant
from ...core.naming import text_rule_broken
from .gate_policy import PolicySource

LONGEST_US: Final = 7 * DAY
REASON_MOST: Final = 500


class Ended(StrEnum):
    """Reason why an override ended before its expiry."""

    MANUAL = "manual"
    POLICY_CHANGED = "policy_changed"
    POLICY_DELETED = "policy_deleted"


class OverrideStatus(StrEnum):
    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"
    # Another policy, or no policy, governs at present.
    INERT = "inert"


@dataclass(frozen=True, slots=True)
class OverrideBinding:
    """Policy revision that an override belongs to. The service is known from the context."""

    source: PolicySource
    revision: int


def status(
    bound_to: OverrideBinding,
    expires_at: Instant,
    revoked_at: Instant | None,
    governing: OverrideBinding | None,
    now: Instant,
) -> OverrideStatus:
    """Returns the status. `governing` is None without a policy."""
    if revoked_at is not None:
        return OverrideStatus.REVOKED
    if expires_at <= now:
        return OverrideStatus.EXPIRED
    return OverrideStatus.ACTIVE if bound_to == governing else OverrideStatus.INERT


def expiry_fault(expires_at: Instant, now: Instant) -> str | None:
    """Returns the rule that the expiry breaks, None if it is valid."""
    if expires_at <= now:
        return "must be in the future"
    return "must be at most 7 days ahead" if expires_at > now + LONGEST_US else None


def reason_fault(reason: str) -> str | None:
    """Returns the rule that a stripped reason breaks, None if it is valid."""
    if not 1 <= len(reason) <= REASON_MOST:
        return f"must be 1–{REASON_MOST} characters"
    return text_rule_broken(reason, multiline=True)
