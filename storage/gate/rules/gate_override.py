"""When an override of the gate counts: until it expires, while the revision that it is bound to
governs, and as long as nobody has ended it.
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
    """Why an override was ended before its time."""

    MANUAL = "manual"
    POLICY_CHANGED = "policy_changed"
    POLICY_DELETED = "policy_deleted"


class OverrideStatus(StrEnum):
    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"
    # Another policy, or none, governs just now.
    INERT = "inert"


@dataclass(frozen=True, slots=True)
class OverrideBinding:
    """A revision of a policy; by its owner, whose service is known."""

    source: PolicySource
    revision: int


def status(
    bound_to: OverrideBinding,
    expires_at: Instant,
    revoked_at: Instant | None,
    governing: OverrideBinding | None,
    now: Instant,
) -> OverrideStatus:
    """Who was revoked stays so; `governing` is None where no policy is configured."""
    if revoked_at is not None:
        return OverrideStatus.REVOKED
    if expires_at <= now:
        return OverrideStatus.EXPIRED
    return OverrideStatus.ACTIVE if bound_to == governing else OverrideStatus.INERT


def expiry_fault(expires_at: Instant, now: Instant) -> str | None:
    """The rule that an override's end breaks."""
    if expires_at <= now:
        return "must be in the future"
    return "must be at most 7 days ahead" if expires_at > now + LONGEST_US else None


def reason_fault(reason: str) -> str | None:
    """The rule that the words of an override's maker break; blanks around them are gone."""
    if not 1 <= len(reason) <= REASON_MOST:
        return f"must be 1–{REASON_MOST} characters"
    return text_rule_broken(reason, multiline=True)
