"""Codes of contact methods, and the limit of messages that a person requests."""

from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import HOUR, MINUTE, SECOND, Instant
from leadline.storage.notifications.rules.contact_method import (
    CODE_ATTEMPTS,
    CODE_LASTS_US,
    SENDS_MOST,
    code_from,
    code_hash,
    is_code,
    is_open,
    wait_seconds,
)

NOW = Instant(1_767_225_600_000_000)


@given(st.integers(0, 2**64), st.integers(0, 2**64))
def test_only_the_code_of_the_method_matches(number: int, other: int) -> None:
    method, code = uuid4(), code_from(number)
    assert len(code) == 6
    assert code.isdigit()
    stored = code_hash(method, code)
    assert is_code(method, f" {code[:3]}-{code[3:]} ", stored)
    assert is_code(method, code_from(other), stored) == (code_from(other) == code)
    assert not is_code(uuid4(), code, stored)
    assert not is_code(method, code, None)


def test_a_code_ends_with_its_time_and_its_attempts() -> None:
    expires = Instant(NOW + CODE_LASTS_US)
    assert is_open(expires, CODE_ATTEMPTS - 1, Instant(expires - 1))
    assert not is_open(expires, 0, expires)
    assert not is_open(expires, CODE_ATTEMPTS, NOW)
    assert not is_open(None, 0, NOW)


@given(st.lists(st.integers(0, 2 * HOUR), max_size=15))
def test_the_wait_ends_when_fewer_messages_are_recent(ages: list[int]) -> None:
    sent = [Instant(NOW - age) for age in ages]
    wait = wait_seconds(sent, NOW)

    def recent(at: int) -> int:
        return sum(one > at - HOUR for one in sent)

    if recent(NOW) < SENDS_MOST:
        assert wait == 0
    else:
        assert recent(NOW + wait * SECOND) < SENDS_MOST
        assert wait == 1 or recent(NOW + (wait - 1) * SECOND) >= SENDS_MOST
        assert wait * SECOND <= HOUR + MINUTE
