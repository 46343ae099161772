"""Password reset by mail: lifetime of the token, and intervals of attempts and mails."""

from typing import Final

from ...core.instant import MINUTE, SECOND, Instant

TTL_US: Final = 30 * MINUTE
TTL_WORDS: Final = "30 minutes"
# A request within this interval sends no mail. The previous mail stays valid.
LETTER_EVERY_US: Final = MINUTE
ATTEMPTS_MOST: Final = 7
# Longer than an attempt, so that no other process tries at the same time.
LEASE_US: Final = 30 * SECOND
_FIRST_PAUSE_US: Final = 5 * SECOND


def tried_again_at(attempts: int, now: Instant) -> Instant | None:
    """Returns the next attempt after `attempts` failures, None after the last."""
    if attempts >= ATTEMPTS_MOST:
        return None
    return Instant(now + (_FIRST_PAUSE_US << max(attempts - 1, 0)))


def is_passed_over(attempts: int, written_at: Instant | None, now: Instant) -> bool:
    """Returns whether the first attempt of a request follows an earlier mail too soon."""
    if attempts > 1 or written_at is None:
        return False
    return now - written_at < LETTER_EVERY_US
