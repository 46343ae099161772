"""The window of a service before any time is sealed, and the text of durations."""

import pytest

from leadline.storage.core.availability import Withheld
from leadline.storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant
from leadline.storage.services.rules.service_report import (
    ServiceReportStatus,
    spelt,
    whole_minutes,
    window_of,
)

NOW = Instant(1_800_000_000 * SECOND)


@pytest.mark.parametrize(
    ("has_sli", "start", "sealed_through", "reason"),
    [
        (True, None, None, Withheld.NOTHING_SEALED),
        (False, None, None, Withheld.NO_SLI),
        (True, NOW, NOW, Withheld.NOTHING_SEALED),
        (True, Instant(NOW + 1), NOW, Withheld.NOTHING_SEALED),
    ],
)
def test_a_window_without_sealed_time_is_empty(
    has_sli: bool, start: Instant | None, sealed_through: Instant | None, reason: Withheld
) -> None:
    window = window_of("24h", NOW, has_sli, start, sealed_through, ())
    assert (window.status, window.reason) == (ServiceReportStatus.UNAVAILABLE, reason)
    assert (window.from_, window.to, window.sealed_through) == (NOW, NOW, sealed_through)
    assert (window.expected_minutes, window.sealed_minutes) == (DAY // MINUTE, 0)
    assert window.availability is None
    assert window.coverage == 0
    assert not window.is_continuous
    assert window.budget(990_000) is reason


def test_a_duration_uses_the_largest_unit_that_divides_it() -> None:
    assert [spelt(us) for us in (7 * DAY, 36 * HOUR, 5 * MINUTE, 90 * SECOND)] == [
        "7d",
        "36h",
        "5m",
        "90s",
    ]
    assert whole_minutes(2 * MINUTE + 59 * SECOND) == 2 * MINUTE
