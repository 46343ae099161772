"""Retry, final failure and concurrency of deliveries.

Pure: `now` and random numbers are arguments; `chance` is in [0, 1). An attempt is counted at its
lease, so that an attempt without a known outcome counts too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from ...core.instant import HOUR, MINUTE, SECOND, Instant

# Leased events per destination, in all processes together: usually, and of a failing destination.
DESTINATION_HELD_MOST: Final = 5
FAILING_HELD_MOST: Final = 1

# Longer than a send and its settlement can take. Afterwards any process can lease the event.
LEASE_US: Final = 30 * SECOND
RETRY_FIRST_US: Final = 5 * SECOND
RETRY_LONGEST_US: Final = HOUR
# A failing destination backs off as a whole. It is retried sooner than one event would be, since
# one attempt decides for all waiting events.
REST_LONGEST_US: Final = 5 * MINUTE
# Beyond this, a power of two exceeds every delay.
_DOUBLINGS_MOST: Final = 32

# Attempts of the subscription question to a webhook: any visitor can enter its URL.
QUESTION_ATTEMPTS_MOST: Final = 5

# Waiting events of a destination that one delivery updates at most: their attempts or due instants.
SHARED_MOST: Final = 1_000

LEASE_LOST: Final = "lease_lost"


class DeliveryStatus(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class DeliveryOutcome:
    """Outcome of a send. `reason` is empty if it was delivered, else a bounded text.

    `retry_after_us` is the delay that the destination requested. `is_ours`: the failure is local
    and does not concern the destination. `is_over`: an optional recipient refused permanently, so
    no dead letter is kept.
    """

    reason: str = ""
    retry_after_us: int = 0
    external_id: str = ""
    is_ours: bool = False
    is_over: bool = False

    @property
    def is_delivered(self) -> bool:
        return not self.reason


@dataclass(frozen=True, slots=True)
class DeliveryDecision:
    """Next status of an event. `due` is relevant only while it is pending."""

    status: DeliveryStatus
    due: Instant


@dataclass(frozen=True, slots=True)
class DestinationState:
    """Backoff state of a destination: consecutive failures and the end of the backoff, if any."""

    failures: int = 0
    backoff_until: Instant | None = None

    def rests(self, now: Instant) -> bool:
        return self.backoff_until is not None and self.backoff_until > now


def backoff_us(failed: int, longest_us: int, chance: float) -> int:
    """Returns the backoff after `failed` ≥ 1 failures: 5 s, doubled each time, full jitter."""
    doublings = min(failed - 1, _DOUBLINGS_MOST)
    return int(min(RETRY_FIRST_US << doublings, longest_us) * chance)


@dataclass(frozen=True, slots=True)
class RetryLimit:
    """The last attempt of an event, and whether the event is a dead letter after it."""

    attempts: int
    is_dead_letter: bool = True


def retry_limit(
    max_attempts: int,
    *,
    is_question: bool = False,
    is_visitors_webhook: bool = False,
    is_ours: bool = False,
) -> RetryLimit:
    """Returns the last attempt of an event, and its fate after that attempt.

    A dead letter is work for the operator, so the server of a visitor of a status page cannot cause
    one. A notice by mail depends on the operator's mail server, and can become one.

    `is_question` is the question whether an address subscribes. `is_visitors_webhook` is a webhook
    that a visitor entered, confirmed or not. `is_ours` is a local failure.
    """
    if is_question:
        most = min(max_attempts, QUESTION_ATTEMPTS_MOST) if is_visitors_webhook else max_attempts
        return RetryLimit(most, is_dead_letter=False)
    return RetryLimit(max_attempts, is_dead_letter=is_ours or not is_visitors_webhook)


def decide_delivery(
    outcome: DeliveryOutcome, attempts: int, limit: RetryLimit, now: Instant, chance: float
) -> DeliveryDecision:
    """Decides the next status of an event. `attempts` includes the attempt that just ended."""
    if outcome.is_delivered or outcome.is_over:
        return DeliveryDecision(DeliveryStatus.DELIVERED, now)
    if attempts >= limit.attempts:
        return lost_delivery(limit, now)
    wait = max(backoff_us(attempts, RETRY_LONGEST_US, chance), outcome.retry_after_us)
    return DeliveryDecision(DeliveryStatus.PENDING, Instant(now + wait))


def lost_delivery(limit: RetryLimit, now: Instant) -> DeliveryDecision:
    """Returns the final status of an event that its last attempt did not deliver."""
    status = DeliveryStatus.DEAD if limit.is_dead_letter else DeliveryStatus.DELIVERED
    return DeliveryDecision(status, now)


def is_lost(attempts: int, max_attempts: int, *, was_leased: bool) -> bool:
    """Returns whether a due event's last attempt ended without a known outcome."""
    return was_leased and attempts >= max_attempts


def standing_after(
    before: DestinationState, outcomes: Sequence[DeliveryOutcome], now: Instant, chance: float
) -> DestinationState:
    """Returns the state of a destination after sends to it.

    A delivery resets the state. A failure during the backoff belongs to an earlier send: it can
    only extend the backoff by its requested delay.
    """
    if any(outcome.is_delivered or outcome.is_over for outcome in outcomes):
        return DestinationState()
    failed = [outcome for outcome in outcomes if not outcome.is_ours]
    if not failed:
        return before
    asked = Instant(now + max(outcome.retry_after_us for outcome in failed))
    if before.rests(now):
        assert before.backoff_until is not None, "it rests"
        return replace(before, backoff_until=max(before.backoff_until, asked))
    failures = before.failures + 1
    until = Instant(now + backoff_us(failures, REST_LONGEST_US, chance))
    return DestinationState(failures, max(until, asked))


def shared_failure(
    before: DestinationState, outcomes: Sequence[DeliveryOutcome], now: Instant
) -> DeliveryOutcome | None:
    """Returns the failure that counts as an attempt of every due event of the destination.

    A failing destination gets one event after each backoff, on behalf of all waiting events.
    Otherwise each event would have an attempt only at its turn, and would fail after days. None if
    the destination did not fail before, since the failure can concern the event alone.
    """
    if not before.failures or before.rests(now):
        return None
    if any(outcome.is_delivered or outcome.is_over for outcome in outcomes):
        return None
    return next((outcome for outcome in outcomes if not outcome.is_ours), None)


def has_recovered(before: DestinationState, outcomes: Sequence[DeliveryOutcome]) -> bool:
    """Returns whether a destination with shared failures was reached; its events are due then."""
    return before.failures > 1 and any(outcome.is_delivered for outcome in outcomes)


@dataclass(frozen=True, slots=True)
class Capacity:
    """Number of further sends: to healthy destinations, to failing ones, and in total."""

    well: int
    failing: int
    both: int

    def of(self, *, is_failing: bool) -> int:
        return max(min(self.failing if is_failing else self.well, self.both), 0)

    def less(self, count: int, *, is_failing: bool, is_slow: bool = False) -> "Capacity":
        """Returns the capacity after `count` sends.

        A slow send occupies no place of the healthy destinations. A failing destination has places
        of its own.
        """
        well = 0 if is_failing or is_slow else count
        failing = count if is_failing else 0
        return Capacity(self.well - well, self.failing - failing, self.both - count)


@dataclass(frozen=True, slots=True)
class CapacityLimits:
    """Capacity of one process: in total, and the share of webhooks."""

    whole: Capacity
    webhooks: Capacity

    def of(self, *, is_page: bool, is_failing: bool) -> int:
        whole = self.whole.of(is_failing=is_failing)
        return whole if is_page else min(whole, self.webhooks.of(is_failing=is_failing))

    def of_claim(self) -> "CapacityLimits":
        """Returns the capacity of the next claim."""
        return replace(self, whole=replace(self.whole, both=min(self.whole.both, CLAIM_MOST)))

    def less(
        self, count: int, *, is_page: bool, is_failing: bool, is_slow: bool = False
    ) -> "CapacityLimits":
        whole = self.whole.less(count, is_failing=is_failing, is_slow=is_slow)
        if is_page:
            return replace(self, whole=whole)
        return CapacityLimits(
            whole, self.webhooks.less(count, is_failing=is_failing, is_slow=is_slow)
        )


# Events of one claim, so that a process that ends leaves few leases to expire.
CLAIM_MOST: Final = 50
# Limits of one process: fast sends to healthy destinations, sends to failing ones, and all sends,
# which also include the slow ones. A hanging destination occupies a fast place only until its send
# counts as slow, and gets no other in that time. After its failure it loses the fast place.
# Webhooks have a share of each, so that pages always find places.
ROOMS: Final = CapacityLimits(Capacity(50, 50, 150), Capacity(30, 30, 90))
SLOW_AFTER_US: Final = SECOND


@dataclass(frozen=True, slots=True)
class InFlight:
    """A send in progress, as it was at its lease, and whether it is slow now."""

    is_page: bool
    is_failing: bool
    is_slow: bool


def rooms_beside(held: Iterable[InFlight]) -> CapacityLimits:
    rooms = ROOMS
    for one in held:
        rooms = rooms.less(1, is_page=one.is_page, is_failing=one.is_failing, is_slow=one.is_slow)
    return rooms


@dataclass(frozen=True, slots=True)
class DestinationDemand:
    """A destination with due events. `held` counts the events that all processes have leased."""

    org: int
    destination: int
    is_page: bool
    failures: int
    held: int
    due: int

    @property
    def is_failing(self) -> bool:
        return self.failures > 0


def destination_room(failures: int) -> int:
    return FAILING_HELD_MOST if failures else DESTINATION_HELD_MOST


def allot(
    demands: Sequence[DestinationDemand], rooms: CapacityLimits
) -> list[tuple[DestinationDemand, int]]:
    """Returns how many events to lease for each destination.

    Pages have priority, first to healthy destinations. Then the destination with the fewest sends
    in progress comes first, in the given order.
    """
    counts = [0] * len(demands)
    for is_page, is_failing in ((True, False), (True, True), (False, False), (False, True)):
        left = room = rooms.of(is_page=is_page, is_failing=is_failing)
        for level in range(DESTINATION_HELD_MOST):
            for n, demand in enumerate(demands):
                if (demand.is_page, demand.is_failing) != (is_page, is_failing):
                    continue
                most = min(demand.held + demand.due, destination_room(demand.failures))
                if left and demand.held <= level < most:
                    counts[n] += 1
                    left -= 1
        rooms = rooms.less(room - left, is_page=is_page, is_failing=is_failing)
    found = zip(demands, counts, strict=True)
    return [(demand, count) for demand, count in found if count]
