"""What became of deliveries: delivered and what waited for them may go, to be tried again, or dead.

Nothing changes of what the caller's lease is gone of.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ...core.key import Key
from ...engine.pools import Tx
from ..rules.delivery_retry import (
    DeliveryOutcome,
    DeliveryStatus,
    DestinationState,
    RetryLimit,
    decide_delivery,
    retry_limit,
    standing_after,
)
from ..rules.notification import Topic
from ..tables import outbox_deliveries as deliveries
from ..tables.outbox_deliveries import Held
from .lease_deliveries import LeasedDelivery


@dataclass(slots=True)
class Settled:
    """`busy`: held by somebody else just now, and to be settled again."""

    became: dict[Key, DeliveryStatus] = field(default_factory=dict)
    busy: set[Key] = field(default_factory=set)
    # How many may go by this.
    readied: int = 0


async def settle_deliveries(
    tx: Tx,
    ended: Sequence[tuple[LeasedDelivery, DeliveryOutcome]],
    max_attempts: int,
    random: Callable[[], float],
) -> Settled:
    """`random` gives numbers in [0, 1)."""
    outcomes = {(one.event.org, one.event.id): outcome for one, outcome in ended}
    limits = {
        (one.event.org, one.event.id): _limit(one, outcome, max_attempts) for one, outcome in ended
    }
    seen = await deliveries.lock_shared_destinations(
        tx, {(one.event.org, one.event.destination) for one, _ in ended}
    )
    held, busy = await deliveries.lock_held(tx, [(one.event, one.lease) for one, _ in ended])
    if not held:
        return Settled(busy=busy)
    settled = [
        (
            item,
            decide_delivery(outcome, item.attempts, limits[item.org, item.id], tx.now, random()),
            outcome.reason,
        )
        for item in held
        for outcome in [outcomes[item.org, item.id]]
    ]
    readied = await deliveries.settle(tx, settled)
    dead = [item for item, judged, _ in settled if judged.status is DeliveryStatus.DEAD]
    readied += await deliveries.set_aside(tx, dead)
    delivered = [item for item, judged, _ in settled if judged.status is DeliveryStatus.DELIVERED]
    named = [(item, outcomes[item.org, item.id].external_id) for item in delivered]
    named = [(item, external_id) for item, external_id in named if external_id]
    if named:
        await deliveries.name_threads(tx, named)
    await _record_states(tx, held, outcomes, seen, random)
    became = {(item.org, item.id): judged.status for item, judged, _ in settled}
    return Settled(became, busy, readied)


def _limit(delivery: LeasedDelivery, outcome: DeliveryOutcome, max_attempts: int) -> RetryLimit:
    to = delivery.subscriber
    return retry_limit(
        max_attempts,
        is_question=delivery.event.topic == Topic.SUBSCRIPTION,
        is_visitors_webhook=to is not None and to.kind == "webhook",
        is_ours=outcome.is_ours,
    )


async def _record_states(
    tx: Tx,
    held: Sequence[Held],
    outcomes: Mapping[Key, DeliveryOutcome],
    seen: Mapping[Key, DestinationState],
    random: Callable[[], float],
) -> None:
    """Who is well and was reached stays as it is, and is not even locked."""
    ended: dict[Key, list[DeliveryOutcome]] = {}
    for item in held:
        key = (item.org, item.destination)
        ended.setdefault(key, []).append(outcomes[item.org, item.id])
    moved = [key for key in ended if standing_after(seen[key], ended[key], tx.now, 0) != seen[key]]
    if not moved:
        return
    before = await deliveries.lock_standings(tx, moved)
    after = {
        key: standing_after(standing, ended[key], tx.now, random())
        for key, standing in before.items()
    }
    await deliveries.set_standings(tx, after)
