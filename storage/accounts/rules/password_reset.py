"""A new password by mail: how long a letter is good for, and how often one is tried and sent."""

from typing import Final

from ...core.instant import MINUTE, SECOND, Instant

TTL_US: Final = 30 * MINUTE
TTL_WORDS: Final = "30 minutes"
# Who asks again so soon has the letter before it, which stays good.
LETTER_EVERY_US: Final = MINUTE
ATTEMPTS_MOST: Final = 7
# Longer than an attempt may take: nobody else tries meanwhile.
LEASE_US: Final = 30 * SECOND
_FIRST_PAUSE_US: Final = 5 * SECOND


def tried_again_at(attempts: int, now: Instant) -> Instant | None:
    """After so many attempts that failed; None where it is given up."""
    if attempts >= ATTEMPTS_MOST:
        return None
    return Instant(now + (_FIRST_PAUSE_US << max(attempts - 1, 0)))


def is_passed_over(attempts: int, written_at: Instant | None, now: Instant) -> bool:
    """Whether a request, taken up for the `attempts`th time, came too soon after a letter."""
    if attempts > 1 or written_at is None:
        return False
    return now - written_at < LETTER_EVERY_US
