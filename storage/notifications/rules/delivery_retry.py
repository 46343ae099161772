"""When a delivery is tried again, when it is given up, and how many may be on their way at once.

Pure: `now` and what is random come as arguments; `chance` is in [0, 1). An attempt is counted when
it is leased, so that one of which nothing was ever heard counts too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from ...core.instant import HOUR, MINUTE, SECOND, Instant

# To one destination, by all processes together.
DESTINATION_HELD_MOST: Final = 5
FAILING_HELD_MOST: Final = 1

# Longer than a send may take and be settled; what it is not settled by is anybody's.
LEASE_US: Final = 30 * SECOND
RETRY_FIRST_US: Final = 5 * SECOND
RETRY_LONGEST_US: Final = HOUR
# A destination that fails rests as a whole. It is tried again sooner than one event would be: one
# attempt says whether all that waits for it may go.
REST_LONGEST_US: Final = 5 * MINUTE
# Beyond this a power of two is longer than anything that is waited for.
_DOUBLINGS_MOST: Final = 32

# Attempts of the question to a webhook whether it subscribes: anybody can name its address.
QUESTION_ATTEMPTS_MOST: Final = 5

# Events of a destination whose attempt is counted, or that become due, with one delivery to it.
SHARED_MOST: Final = 1_000

LEASE_LOST: Final = "lease_lost"


class DeliveryStatus(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class DeliveryOutcome:
    """How a send ended: `reason` is empty where it was delivered, else a bounded word or two.
    `retry_after_us` is what the destination asked for. `is_ours`: it says nothing of the
    destination. `is_over`: it was refused for good by who need not take it, and is not kept for
    anybody to look at."""

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
    """What an event becomes; `due` matters while it is pending."""

    status: DeliveryStatus
    due: Instant


@dataclass(frozen=True, slots=True)
class DestinationState:
    """Of a destination: failures in a row, and until when it rests, None where it does not."""

    failures: int = 0
    backoff_until: Instant | None = None

    def rests(self, now: Instant) -> bool:
        return self.backoff_until is not None and self.backoff_until > now


def backoff_us(failed: int, longest_us: int, chance: float) -> int:
    """After so many failures, at least one: 5 s, doubled each time, with full jitter."""
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
    """Returns the last attempt of an event, and what follows it.

    A dead letter is work for the operator, so the server of a visitor of a status page cannot cause
    one. A notice by mail goes to the mail server of the operator, and can become one.

    `is_question` is the question whether an address subscribes. `is_visitors_webhook` is a webhook
    that a visitor named, confirmed or not. `is_ours` is a failure that says nothing of it.
    """
    if is_question:
        most = min(max_attempts, QUESTION_ATTEMPTS_MOST) if is_visitors_webhook else max_attempts
        return RetryLimit(most, is_dead_letter=False)
    return RetryLimit(max_attempts, is_dead_letter=is_ours or not is_visitors_webhook)


def decide_delivery(
    outcome: DeliveryOutcome, attempts: int, limit: RetryLimit, now: Instant, chance: float
) -> DeliveryDecision:
    """`attempts` counts the one that ended thus."""
    if outcome.is_delivered or outcome.is_over:
        return DeliveryDecision(DeliveryStatus.DELIVERED, now)
    if attempts >= limit.attempts:
        return lost_delivery(limit, now)
    wait = max(backoff_us(attempts, RETRY_LONGEST_US, chance), outcome.retry_after_us)
    return DeliveryDecision(DeliveryStatus.PENDING, Instant(now + wait))


def lost_delivery(limit: RetryLimit, now: Instant) -> DeliveryDecision:
    """What an event becomes that was not delivered by its last attempt."""
    status = DeliveryStatus.DEAD if limit.is_dead_letter else DeliveryStatus.DELIVERED
    return DeliveryDecision(status, now)


def is_lost(attempts: int, max_attempts: int, *, was_leased: bool) -> bool:
    """Of what is due: its last attempt ended without anybody saying how."""
    return was_leased and attempts >= max_attempts


def standing_after(
    before: DestinationState, outcomes: Sequence[DeliveryOutcome], now: Instant, chance: float
) -> DestinationState:
    """One that was reached is well. What fails while it rests began before it did, and tells
    nothing new but how long it wants to be left alone."""
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
    """The failure that counts as an attempt of every event that is due for the destination.

    A destination that fails is sent one event after each rest, on behalf of all that wait for it:
    otherwise each would have an attempt only when its turn comes, and would be given up after days.
    None if the destination did not fail before, since the failure can be that of the event alone.
    """
    if not before.failures or before.rests(now):
        return None
    if any(outcome.is_delivered or outcome.is_over for outcome in outcomes):
        return None
    return next((outcome for outcome in outcomes if not outcome.is_ours), None)


def has_recovered(before: DestinationState, outcomes: Sequence[DeliveryOutcome]) -> bool:
    """Whether a destination was reached whose failures were counted for all of its events, which
    are due then."""
    return before.failures > 1 and any(outcome.is_delivered for outcome in outcomes)


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many more may be begun: to who is well, to who has just failed, of both together."""

    well: int
    failing: int
    both: int

    def of(self, *, is_failing: bool) -> int:
        return max(min(self.failing if is_failing else self.well, self.both), 0)

    def less(self, count: int, *, is_failing: bool, is_slow: bool = False) -> "Capacity":
        """What is slow takes no place of those that are not; who has failed has its own anyway."""
        well = 0 if is_failing or is_slow else count
        failing = count if is_failing else 0
        return Capacity(self.well - well, self.failing - failing, self.both - count)


@dataclass(frozen=True, slots=True)
class CapacityLimits:
    """Of one process: in all, and of it for webhooks."""

    whole: Capacity
    webhooks: Capacity

    def of(self, *, is_page: bool, is_failing: bool) -> int:
        whole = self.whole.of(is_failing=is_failing)
        return whole if is_page else min(whole, self.webhooks.of(is_failing=is_failing))

    def less(
        self, count: int, *, is_page: bool, is_failing: bool, is_slow: bool = False
    ) -> "CapacityLimits":
        whole = self.whole.less(count, is_failing=is_failing, is_slow=is_slow)
        if is_page:
            return replace(self, whole=whole)
        return CapacityLimits(
            whole, self.webhooks.less(count, is_failing=is_failing, is_slow=is_slow)
        )


# What one process may hold: so many that it has just begun, and as many again that are slow or go
# to who has just failed. So whoever hangs holds a place of the quick for as long as it takes to be
# called slow, gets no second one meanwhile, and once it has failed none. Webhooks have a share of
# each, so that pages find room whatever webhooks do.
ROOMS: Final = CapacityLimits(Capacity(50, 50, 150), Capacity(30, 30, 90))
SLOW_AFTER_US: Final = SECOND


@dataclass(frozen=True, slots=True)
class InFlight:
    """Something in hand, as it was when it was leased, and whether it is slow by now."""

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
    """A destination for which something is due: how much, and how much of it all hold already."""

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
    """How many to lease of each: pages first, of them those to who is well; then whoever has the
    least on its way, and else in the order given."""
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
