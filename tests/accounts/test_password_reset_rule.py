"""The limits of password reset mail: attempts to send one, and new mails for one account."""

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.accounts.rules.password_reset import (
    ATTEMPTS_MOST,
    LETTER_EVERY_US,
    TTL_US,
    TTL_WORDS,
    is_passed_over,
    tried_again_at,
)
from leadline.storage.core.instant import MINUTE, SECOND, Instant

NOW = Instant(1_767_000_000_000_000)


def test_attempts_come_at_growing_intervals_and_end() -> None:
    waits = []
    for attempts in range(1, ATTEMPTS_MOST + 2):
        at = tried_again_at(attempts, NOW)
        waits.append(None if at is None else (at - NOW) // SECOND)
    assert waits == [5, 10, 20, 40, 80, 160, None, None]


def test_all_attempts_take_less_time_than_the_token_is_valid() -> None:
    assert sum(5 << n for n in range(ATTEMPTS_MOST - 1)) * SECOND < TTL_US == 30 * MINUTE
    assert TTL_WORDS == "30 minutes"


@given(st.integers(1, ATTEMPTS_MOST), st.none() | st.integers(0, 10 * MINUTE))
def test_only_a_new_request_soon_after_a_mail_is_skipped(attempts: int, ago: int | None) -> None:
    written_at = None if ago is None else Instant(NOW - ago)
    expected = attempts == 1 and ago is not None and ago < LETTER_EVERY_US
    assert is_passed_over(attempts, written_at, NOW) == expected
