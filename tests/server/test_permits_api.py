"""How often a client may try, against a count of what was let through."""

from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.http.wire.admission_control import ClientBuckets, LoginAttempts
from leadline.storage.core.instant import MINUTE, SECOND, Instant

ZERO = Instant(0)


@settings(max_examples=150)
@given(
    # Those that divide a minute's microseconds: the model is then exact.
    per_minute=st.sampled_from([1, 2, 3, 10, 20, 60]),
    gaps_us=st.lists(st.integers(0, 2 * MINUTE) | st.integers(0, SECOND), max_size=60),
)
def test_a_bucket_holds_one_minutes_worth_and_fills_evenly(
    per_minute: int, gaps_us: list[int]
) -> None:
    """The model: whoever may try was let in less often than `per_minute` for every bucketful,
    counted in microseconds of waiting owed, which time pays back."""
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
def test_whoever_waits_as_told_is_let_in(per_minute: int, now: int) -> None:
    buckets = ClientBuckets()
    for _ in range(per_minute):
        assert buckets.take("a", per_minute, Instant(now)) == 0
    wait_seconds = buckets.take("a", per_minute, Instant(now))
    assert wait_seconds >= 1
    assert buckets.take("a", per_minute, Instant(now + wait_seconds * SECOND)) == 0


def test_a_refused_try_costs_nothing() -> None:
    buckets = ClientBuckets()
    assert buckets.take("a", 1, ZERO) == 0
    for second in range(1, 60):
        assert buckets.take("a", 1, Instant(second * SECOND)) == 60 - second
    assert buckets.take("a", 1, Instant(MINUTE)) == 0


def test_clients_do_not_spend_each_others() -> None:
    buckets = ClientBuckets()
    assert [buckets.take(client, 1, ZERO) for client in "aabb"] == [0, 60, 0, 60]


def test_what_is_remembered_is_bounded_and_who_was_quiet_longest_is_forgotten() -> None:
    buckets = ClientBuckets(clients_most=3)
    for number in range(100):
        buckets.take(str(number), 1, ZERO)
        assert len(buckets) <= 3
    assert buckets.take("99", 1, ZERO) == 60
    assert buckets.take("0", 1, ZERO) == 0


def test_full_buckets_go_first() -> None:
    buckets = ClientBuckets(clients_most=2)
    buckets.take("spent", 1, ZERO)
    buckets.take("slow", 60, ZERO)
    buckets.take("new", 1, Instant(2 * SECOND))
    assert buckets.take("spent", 1, Instant(2 * SECOND)) == 58


def test_tries_of_a_minute_and_of_an_hour_bound_each_other() -> None:
    """Twenty at most at once however slowly, five at once however long ago the last; who is refused
    for one is not charged for the other."""
    tries, now = LoginAttempts(5, 20), ZERO
    taken = 0
    for minute in range(4):
        at = Instant(now + minute * MINUTE)
        assert [tries.take("a", at) == 0 for _ in range(6)] == [True] * 5 + [False]
        taken += 5
    # Four minutes gave one and a third back of the hour's twenty.
    later = Instant(now + 4 * MINUTE)
    assert tries.take("a", later) == 0
    wait_seconds = tries.take("a", later)
    assert 60 < wait_seconds <= 180
    assert tries.take("a", Instant(later + (wait_seconds - 1) * SECOND)) == 1
    assert tries.take("a", Instant(later + wait_seconds * SECOND)) == 0
    assert tries.take("b", later) == 0
