"""Invitations by e-mail: lifetime, and intervals of the e-mails."""

from typing import Final, Literal

from ...core.instant import DAY, MINUTE, SECOND, Instant

MailState = Literal["none", "waiting", "sent", "failed"]
TTL_US: Final = 7 * DAY
# An invitation is sent again at most once in this interval.
RESEND_EVERY_US: Final = MINUTE
ATTEMPTS_MOST: Final = 7
# Longer than an attempt, so that no other process tries at the same time.
LEASE_US: Final = 30 * SECOND
_FIRST_PAUSE_US: Final = 5 * SECOND


def next_attempt_at(attempts: int, now: Instant) -> Instant | None:
    """Returns the instant of the next attempt after `attempts` failures, None after the last."""
    if attempts >= ATTEMPTS_MOST:
        return None
    return Instant(now + (_FIRST_PAUSE_US << max(attempts - 1, 0)))


def mail_state(due_at: Instant | None, mailed_at: Instant | None, attempts: int) -> MailState:
    """Returns the state of the e-mail: waiting, sent, failed, or none if no e-mail was to be sent.

    After the last failed attempt no e-mail is due and none is recorded as sent.
    """
    if due_at is not None:
        return "waiting"
    if mailed_at is not None:
        return "sent"
    return "failed" if attempts else "none"


def last_mail_at(
    due_at: Instant | None, mailed_at: Instant | None, attempts: int, expires_at: Instant
) -> Instant | None:
    """Returns the start of the resend interval: the last request or e-mail, None without one.

    A failed e-mail is due at its next attempt, which can be minutes away. Its request is the start
    of the lifetime.
    """
    if due_at is not None and attempts:
        return Instant(expires_at - TTL_US)
    return due_at or mailed_at


def resend_wait(last: Instant, now: Instant) -> int:
    """Returns the microseconds until an invitation can be sent again, 0 if it can be now."""
    return max(last + RESEND_EVERY_US - now, 0)
