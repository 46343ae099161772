"""Retries wait with a limit and end. The slots of a process are bounded, and pages come first."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import HOUR, MINUTE, SECOND, Instant
from leadline.storage.notifications.rules.delivery_retry import (
    DeliveryOutcome,
    DeliveryStatus,
    DestinationDemand,
    DestinationState,
    InFlight,
    RetryLimit,
    allot,
    backoff_us,
    decide_delivery,
    is_lost,
    retry_limit,
    rooms_beside,
    standing_after,
)

NOW = Instant(1_767_571_200_000_000)
CHANCES = st.floats(0, 1, exclude_max=True)
FAILED = DeliveryOutcome("http_status 503")


def longest(failures: int, cap: int) -> int:
    """The longest wait, by repeated doubling as in the specification."""
    wait = 5 * SECOND
    for _ in range(failures - 1):
        wait = min(2 * wait, cap)
    return min(wait, cap)


@given(st.integers(1, 60), CHANCES)
def test_a_failed_delivery_waits_a_random_part_of_a_doubling_wait(
    attempts: int, chance: float
) -> None:
    found = decide_delivery(FAILED, attempts, RetryLimit(100), NOW, chance)
    assert found.status is DeliveryStatus.PENDING
    assert found.due == NOW + int(longest(attempts, HOUR) * chance)


def test_the_first_waits_equal_the_specification() -> None:
    waits = [backoff_us(n, HOUR, 1.0) // SECOND for n in range(1, 13)]
    assert waits == [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600]


@given(st.integers(1, 30), CHANCES, st.integers(0, 3600))
def test_a_retry_after_of_the_destination_is_the_least_wait(
    attempts: int, chance: float, asked: int
) -> None:
    outcome = DeliveryOutcome("http_status 429", retry_after_us=asked * SECOND)
    found = decide_delivery(outcome, attempts, RetryLimit(100), NOW, chance)
    assert found.due >= NOW + asked * SECOND
    assert found.due == max(
        NOW + asked * SECOND, decide_delivery(FAILED, attempts, RetryLimit(100), NOW, chance).due
    )


@given(st.integers(1, 40), st.integers(1, 40), CHANCES)
def test_the_last_attempt_ends_it_and_no_earlier_one(
    attempts: int, most: int, chance: float
) -> None:
    is_dead = (
        decide_delivery(FAILED, attempts, RetryLimit(most), NOW, chance).status
        is DeliveryStatus.DEAD
    )
    assert is_dead == (attempts >= most)
    assert (
        decide_delivery(DeliveryOutcome(), attempts, RetryLimit(most), NOW, chance).status
        is DeliveryStatus.DELIVERED
    )


@given(st.integers(1, 40), st.booleans(), st.booleans(), st.booleans())
def test_an_event_for_a_visitor_never_becomes_a_dead_letter(
    most: int, is_question: bool, is_visitors_webhook: bool, is_ours: bool
) -> None:
    limit = retry_limit(
        most, is_question=is_question, is_visitors_webhook=is_visitors_webhook, is_ours=is_ours
    )
    if is_question:
        assert not limit.is_dead_letter
    else:
        assert limit.is_dead_letter == (not is_visitors_webhook or is_ours)
    assert limit.attempts == (min(most, 5) if is_question and is_visitors_webhook else most)
    last = decide_delivery(FAILED, limit.attempts, limit, NOW, 0.5)
    assert (last.status is DeliveryStatus.DEAD) == limit.is_dead_letter
    assert last.status is not DeliveryStatus.PENDING


def test_only_a_last_leased_attempt_without_an_outcome_is_lost() -> None:
    for attempts, was_leased in product((0, 2, 3, 4), (False, True)):
        lost = is_lost(attempts, 3, was_leased=was_leased)
        assert lost == (was_leased and attempts >= 3)


@given(
    st.lists(
        st.lists(
            st.sampled_from(
                [DeliveryOutcome(), FAILED, DeliveryOutcome("bad_payload", is_ours=True)]
            ),
            max_size=4,
        ),
        max_size=12,
    ),
    CHANCES,
    st.lists(st.integers(0, 10 * MINUTE), min_size=12, max_size=12),
)
def test_failures_in_a_row_make_a_destination_rest_and_one_delivery_ends_it(
    batches: list[list[DeliveryOutcome]], chance: float, pauses: list[int]
) -> None:
    standing, now = DestinationState(), NOW
    failures, until = 0, 0
    for batch, pause in zip(batches, pauses, strict=False):
        standing = standing_after(standing, batch, now, chance)
        if DeliveryOutcome() in batch:
            failures, until = 0, 0
        elif FAILED in batch and until <= now:
            failures += 1
            until = now + int(longest(failures, 5 * MINUTE) * chance)
        assert standing.failures == failures
        assert standing.rests(now) == (until > now)
        assert (standing.backoff_until or 0) == until
        now = Instant(now + pause)


@given(st.integers(1, 3600), CHANCES)
def test_a_destination_that_asks_to_be_left_alone_is(asked: int, chance: float) -> None:
    outcome = DeliveryOutcome("http_status 429", retry_after_us=asked * SECOND)
    standing = standing_after(DestinationState(), [outcome], NOW, chance)
    assert (standing.backoff_until or 0) >= NOW + asked * SECOND
    # Also by one that was on its way already.
    resting = DestinationState(1, Instant(NOW + 1))
    again = standing_after(resting, [outcome, FAILED], NOW, chance)
    assert again == DestinationState(1, Instant(NOW + asked * SECOND))


DEMANDS = st.lists(
    st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 6), st.integers(1, 9)), max_size=30
).map(
    lambda rows: [
        DestinationDemand(1, n, page, failures, held, due)
        for n, (page, failures, held, due) in enumerate(rows)
    ]
)


HELD = st.lists(
    st.builds(InFlight, is_page=st.booleans(), is_failing=st.booleans(), is_slow=st.booleans()),
    max_size=70,
)


def may_begin(held: list[InFlight], one: InFlight) -> bool:
    """Counts all deliveries in flight, including the new one."""
    for some, share in ((held, 1.0), ([h for h in held if not h.is_page], 0.6)):
        if one.is_page and share < 1:
            continue
        failing = [h for h in some if h.is_failing]
        quick = [h for h in some if not h.is_failing and not h.is_slow]
        mine = failing if one.is_failing else quick
        if len(mine) >= 50 * share or len(some) >= 150 * share:
            return False
    return True


@given(DEMANDS, HELD, st.integers(1, 3))
def test_a_lease_equals_taking_deliveries_one_by_one(
    demands: list[DestinationDemand], held: list[InFlight], times: int
) -> None:
    beside = held = held * times
    taken: dict[int, int] = {}
    # By kind, and within a kind to the destination with the fewest deliveries in flight.
    for is_page, is_failing in product((True, False), (False, True)):
        one = InFlight(is_page, is_failing, is_slow=False)
        for turn in range(5):
            for demand in demands:
                mine = taken.get(demand.destination, 0)
                bound = min((1 if demand.failures else 5) - demand.held, demand.due)
                is_one = (demand.is_page, demand.failures > 0) == (is_page, is_failing)
                if (
                    is_one
                    and mine + demand.held == turn
                    and mine < bound
                    and may_begin(beside, one)
                ):
                    taken[demand.destination] = mine + 1
                    beside = [*beside, one]
    found = allot(demands, rooms_beside(held))
    assert {demand.destination: count for demand, count in found} == taken


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=60), st.booleans())
def test_a_healthy_destination_has_a_slot_beside_all_hanging_ones(
    hanging: list[tuple[bool, bool]], is_slow: bool
) -> None:
    """Fifty destinations that fail, or fifty that became slow, for webhooks and for channels."""
    held = [InFlight(is_page, is_failing, is_slow) for is_page, is_failing in hanging[:49]]
    assert allot([DestinationDemand(1, 1, True, 0, 0, 1)], rooms_beside(held))
    failing = [InFlight(True, True, is_slow)] * 50
    slow = [InFlight(True, False, True)] * 99
    assert allot([DestinationDemand(1, 1, True, 0, 0, 1)], rooms_beside([*failing, *slow]))
    assert not allot([DestinationDemand(1, 1, True, 1, 0, 1)], rooms_beside(failing))
