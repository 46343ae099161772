"""The status of an override by its binding, its end and its revocation."""

import pytest

from leadline.storage.core.instant import DAY, SECOND, Instant
from leadline.storage.gate.rules.gate_override import (
    OverrideBinding,
    OverrideStatus,
    expiry_fault,
    status,
)
from leadline.storage.gate.rules.gate_policy import PolicySource

NOW = Instant(1_800_000_000 * SECOND)
LATER = Instant(NOW + 1)
BOUND = OverrideBinding(PolicySource.SERVICE, 3)


@pytest.mark.parametrize(
    ("expires_at", "revoked_at", "governing", "expected"),
    [
        (LATER, None, BOUND, OverrideStatus.ACTIVE),
        (LATER, None, OverrideBinding(BOUND.source, 4), OverrideStatus.INERT),
        (LATER, None, None, OverrideStatus.INERT),
        (NOW, None, BOUND, OverrideStatus.EXPIRED),
        (LATER, NOW, BOUND, OverrideStatus.REVOKED),
        (NOW, NOW, BOUND, OverrideStatus.REVOKED),
    ],
)
def test_an_override_is_active_while_its_policy_revision_governs(
    expires_at: Instant,
    revoked_at: Instant | None,
    governing: OverrideBinding | None,
    expected: OverrideStatus,
) -> None:
    assert status(BOUND, expires_at, revoked_at, governing, NOW) is expected


def test_an_override_ends_within_seven_days() -> None:
    assert expiry_fault(NOW, NOW) == "must be in the future"
    assert expiry_fault(LATER, NOW) is None
    assert expiry_fault(Instant(NOW + 7 * DAY), NOW) is None
    assert expiry_fault(Instant(NOW + 7 * DAY + 1), NOW) == "must be at most 7 days ahead"
