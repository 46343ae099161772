"""The rate limit of a client, compared with a count of the admitted attempts."""

from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.http.wire.admission_control import ClientBuckets, LoginAttempts
from leadline.storage.core.instant import MINUTE, SECOND, Instant

ZERO = Instant(0)


@settings(max_examples=150)
@given(
    # Divisors of a minute in microseconds: the model is then exact.
    per_minute=st.sampled_from([1, 2, 3, 10, 20, 60]),
    gaps_us=st.lists(st.integers(0, 2 * MINUTE) | st.integers(0, SECOND), max_size=60),
)
def test_a_bucket_has_one_minute_of_tokens_and_refills_evenly(
    per_minute: int, gaps_us: list[int]
) -> None:
    """The model is the waiting time owed, in microseconds: an admitted attempt adds the price of a
    token, and time reduces it. An attempt is admitted if it owes at most one minute.
    """
    buckets, now, owed_us = ClientBuckets(), 1_000 * SECOND, 0
    price_us = MINUTE // per_minute
    for gap_us in gaps_us:
        now += gap_us
        owed_us = max(owed_us - gap_us, 0)
        wait_seconds = buckets.take("a", per_minute, Instant(now))
        if owed_us + price_us <= MINUTE:
            assert wait_seconds == 0
            owed_us += price_us
        else:
            over_us = owed_us + price_us - MINUTE
            assert (wait_seconds - 1) * SECOND < over_us <= wait_seconds * SECOND


@given(per_minute=st.integers(1, 600), now=st.integers(0, 1 << 60))
def test_a_client_is_admitted_after_the_stated_wait(per_minute: int, now: int) -> None:
    buckets = ClientBuckets()
    for _ in range(per_minute):
        assert buckets.take("a", per_minute, Instant(now)) == 0
    wait_seconds = buckets.take("a", per_minute, Instant(now))
    assert wait_seconds >= 1
    assert buckets.take("a", per_minute, Instant(now + wait_seconds * SECOND)) == 0


def test_a_refused_attempt_takes_no_token() -> None:
    buckets = ClientBuckets()
    assert buckets.take("a", 1, ZERO) == 0
    for second in range(1, 60):
        assert buckets.take("a", 1, Instant(second * SECOND)) == 60 - second
    assert buckets.take("a", 1, Instant(MINUTE)) == 0


def test_clients_have_separate_buckets() -> None:
    buckets = ClientBuckets()
    assert [buckets.take(client, 1, ZERO) for client in "aabb"] == [0, 60, 0, 60]


def test_the_longest_idle_client_is_evicted() -> None:
    buckets = ClientBuckets(clients_most=3)
    for number in range(100):
        buckets.take(str(number), 1, ZERO)
        assert len(buckets) <= 3
    assert buckets.take("99", 1, ZERO) == 60
    assert buckets.take("0", 1, ZERO) == 0


def test_full_buckets_are_evicted_first() -> None:
    buckets = ClientBuckets(clients_most=2)
    buckets.take("spent", 1, ZERO)
    buckets.take("slow", 60, ZERO)
    buckets.take("new", 1, Instant(2 * SECOND))
    assert buckets.take("spent", 1, Instant(2 * SECOND)) == 58


def test_minute_and_hour_limits_apply_together() -> None:
    """The hourly limit admits 20 attempts before it refills, the minute limit 5. A refusal by one
    limit takes no token of the other.
    """
    tries, now = LoginAttempts(5, 20), ZERO
    taken = 0
    for minute in range(4):
        at = Instant(now + minute * MINUTE)
        assert [tries.take("a", at) == 0 for _ in range(6)] == [True] * 5 + [False]
        taken += 5
    # In four minutes the hourly limit of 20 regained one and a third tokens.
    later = Instant(now + 4 * MINUTE)
    assert tries.take("a", later) == 0
    wait_seconds = tries.take("a", later)
    assert 60 < wait_seconds <= 180
    assert tries.take("a", Instant(later + (wait_seconds - 1) * SECOND)) == 1
    assert tries.take("a", Instant(later + wait_seconds * SECOND)) == 0
    assert tries.take("b", later) == 0
