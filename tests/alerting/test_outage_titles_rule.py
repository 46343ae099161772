"""Durations in the titles of outages: two units, rounded down."""

import pytest

from leadline.storage.core.instant import DAY, HOUR, MINUTE, SECOND
from leadline.storage.incidents.rules.incident import lasted


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (-1, "0 s"),
        (SECOND - 1, "0 s"),
        (MINUTE - 1, "59 s"),
        (MINUTE, "1 min"),
        (HOUR - 1, "59 min"),
        (HOUR, "1 h"),
        (2 * HOUR + 5 * MINUTE + 59 * SECOND, "2 h 5 min"),
        (DAY - 1, "23 h 59 min"),
        (DAY, "1 d"),
        (3 * DAY + 4 * HOUR + 59 * MINUTE, "3 d 4 h"),
    ],
)
def test_a_duration_is_rounded_down_to_two_units(us: int, text: str) -> None:
    assert lasted(us) == text
