"""Settlement of deliveries: delivered, to be retried, or dead.

An event whose lease has expired stays unchanged.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from ...core.key import DestinationKey, EventKey
from ...engine.pools import Tx
from ..rows import HeldEvent
from ..rules.delivery_retry import (
    DeliveryDecision,
    DeliveryOutcome,
    DeliveryStatus,
    DestinationState,
    RetryLimit,
    decide_delivery,
    has_recovered,
    retry_limit,
    shared_failure,
    standing_after,
)
from ..rules.notification import Topic
from ..tables import outbox_settlements as settlements
from .lease_deliveries import LeasedDelivery


@dataclass(slots=True)
class Settled:
    """Result of a settlement. `busy` events were locked elsewhere and must be settled again."""

    became: dict[EventKey, DeliveryStatus] = field(default_factory=dict)
    busy: set[EventKey] = field(default_factory=set)
    # Number of later events that became ready.
    readied: int = 0
    # Further events of the destination that became dead letters, by the event that was sent.
    dead_beside: Counter[EventKey] = field(default_factory=Counter)


async def settle_deliveries(
    tx: Tx,
    ended: Sequence[tuple[LeasedDelivery, DeliveryOutcome]],
    max_attempts: int,
    random: Callable[[], float],
) -> Settled:
    """Settles sends that ended. `random` returns numbers in [0, 1)."""
    outcomes = {one.event.key: outcome for one, outcome in ended}
    limits = {one.event.key: _limit(one, outcome, max_attempts) for one, outcome in ended}
    seen = await settlements.lock_shared_destinations(
        tx, {one.event.destination_key for one, _ in ended}
    )
    held, busy = await settlements.lock_held(tx, [(one.event, one.lease) for one, _ in ended])
    if not held:
        return Settled(busy=busy)
    sent: list[tuple[HeldEvent, DeliveryDecision, str]] = [
        (
            item,
            decide_delivery(outcome, item.attempts, limits[item.key], tx.now, random()),
            outcome.reason,
        )
        for item in held
        for outcome in [outcomes[item.key]]
    ]
    ended_by = _by_destination(held, outcomes)
    beside, dead_beside = await _count_beside(tx, ended, ended_by, seen, max_attempts, random)
    settled = sent + beside
    readied = await settlements.settle(tx, settled)
    dead = [item for item, judged, _ in settled if judged.status is DeliveryStatus.DEAD]
    readied += await settlements.set_aside(tx, dead)
    # Only for sent events: the other events of the destination have no outcome.
    named = [(item, outcomes[item.key].external_id) for item in held]
    named = [(item, external_id) for item, external_id in named if external_id]
    if named:
        await settlements.name_threads(tx, named)
    recovered = [key for key in ended_by if has_recovered(seen[key], ended_by[key])]
    if recovered:
        readied += await settlements.make_due(tx, recovered)
    await _record_states(tx, ended_by, seen, random)
    became = {item.key: judged.status for item, judged, _ in settled}
    return Settled(became, busy, readied, dead_beside)


def _by_destination(
    held: Sequence[HeldEvent], outcomes: Mapping[EventKey, DeliveryOutcome]
) -> dict[DestinationKey, list[DeliveryOutcome]]:
    ended: dict[DestinationKey, list[DeliveryOutcome]] = {}
    for item in held:
        ended.setdefault(item.destination_key, []).append(outcomes[item.key])
    return ended


async def _count_beside(
    tx: Tx,
    ended: Sequence[tuple[LeasedDelivery, DeliveryOutcome]],
    ended_by: Mapping[DestinationKey, Sequence[DeliveryOutcome]],
    seen: Mapping[DestinationKey, DestinationState],
    max_attempts: int,
    random: Callable[[], float],
) -> tuple[list[tuple[HeldEvent, DeliveryDecision, str]], Counter[EventKey]]:
    """Counts a repeated failure of a destination as an attempt of its waiting events.

    Returns their decisions, and the number of new dead letters by the event that was sent.
    """
    failures = {key: shared_failure(seen[key], ended_by[key], tx.now) for key in ended_by}
    shared = {key: failure for key, failure in failures.items() if failure is not None}
    dead: Counter[EventKey] = Counter()
    if not shared:
        return [], dead
    sent = {one.event.destination_key: one for one, _ in ended}
    decided = []
    for item in await settlements.lock_waiting(tx, shared):
        key = item.destination_key
        one, failure = sent[key], shared[key]
        limit = retry_limit(
            max_attempts,
            is_question=item.is_question,
            is_visitors_webhook=_is_visitors_webhook(one),
        )
        counted = replace(item, attempts=item.attempts + 1)
        decision = decide_delivery(failure, counted.attempts, limit, tx.now, random())
        decided.append((counted, decision, failure.reason))
        if decision.status is DeliveryStatus.DEAD:
            dead[one.event.key] += 1
    return list(decided), dead


def _limit(delivery: LeasedDelivery, outcome: DeliveryOutcome, max_attempts: int) -> RetryLimit:
    return retry_limit(
        max_attempts,
        is_question=delivery.event.topic == Topic.SUBSCRIPTION,
        is_visitors_webhook=_is_visitors_webhook(delivery),
        is_ours=outcome.is_ours,
    )


def _is_visitors_webhook(delivery: LeasedDelivery) -> bool:
    return delivery.subscriber is not None and delivery.subscriber.kind != "mail"


async def _record_states(
    tx: Tx,
    ended: Mapping[DestinationKey, Sequence[DeliveryOutcome]],
    seen: Mapping[DestinationKey, DestinationState],
    random: Callable[[], float],
) -> None:
    """Stores changed states. A healthy destination that was reached is not locked."""
    moved = [key for key in ended if standing_after(seen[key], ended[key], tx.now, 0) != seen[key]]
    if not moved:
        return
    before = await settlements.lock_standings(tx, moved)
    after = {
        key: standing_after(standing, ended[key], tx.now, random())
        for key, standing in before.items()
    }
    await settlements.set_standings(tx, after)
