"""Leases due events within the limits of the process and of each destination, pages first."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from uuid_utils.compat import uuid7

from ...core.key import ChannelKey, DestinationKey, SubscriberKey, WebhookKey
from ...engine.pools import Tx
from ..queries import delivery_addresses
from ..queries.delivery_addresses import SubscriberRow
from ..rows import ChannelRow, DueEvent, Leased, WebhookRow
from ..rules.delivery_retry import (
    LEASE_LOST,
    CapacityLimits,
    DeliveryStatus,
    RetryLimit,
    allot,
    is_lost,
    lost_delivery,
    retry_limit,
)
from ..tables import channels, webhooks
from ..tables import outbox_claims as claims
from ..tables import outbox_settlements as settlements


@dataclass(frozen=True, slots=True, eq=False)
class LeasedDelivery:
    """A leased event with its recipient: a channel, a webhook or a subscriber.

    It has no recipient if that was deleted, or if the event of a status page must be passed on.
    """

    event: Leased
    lease: UUID
    channel: ChannelRow | None
    webhook: WebhookRow | None
    subscriber: SubscriberRow | None = None
    # The destination had just failed at the time of the lease.
    is_failing: bool = False

    @property
    def is_page(self) -> bool:
        return self.event.channel is not None


@dataclass(frozen=True, slots=True)
class LeasedDeliveries:
    deliveries: Sequence[LeasedDelivery]
    # Dead letters whose last attempt was leased and never settled.
    lost: int


async def lease_deliveries(tx: Tx, rooms: CapacityLimits, max_attempts: int) -> LeasedDeliveries:
    """Leases up to the free capacity `rooms`, at most CLAIM_MOST. Leases end LEASE_US after now."""
    rooms = rooms.of_claim()
    if rooms.whole.both <= 0:
        return LeasedDeliveries((), 0)
    wanted = allot(await claims.lock_wanting(tx, rooms), rooms)
    due = await claims.lock_due(tx, wanted) if wanted else []
    lost = [
        item for item in due if is_lost(item.attempts, max_attempts, was_leased=item.was_leased)
    ]
    dead = await _give_up(tx, lost, max_attempts) if lost else 0
    kept = [item for item in due if item not in lost]
    if not kept:
        return LeasedDeliveries((), dead)
    name = uuid7()
    failing = {
        DestinationKey((demand.org, demand.destination))
        for demand, _ in wanted
        if demand.is_failing
    }
    events = await claims.lease(tx, kept, name)
    return LeasedDeliveries(await _addressed(tx, events, name, failing), dead)


async def _give_up(tx: Tx, lost: Sequence[DueEvent], max_attempts: int) -> int:
    """Returns how many became dead letters."""
    decided = [(item, lost_delivery(_limit(item, max_attempts), tx.now)) for item in lost]
    await settlements.settle(tx, [(item, decision, LEASE_LOST) for item, decision in decided])
    dead = [item for item, decision in decided if decision.status is DeliveryStatus.DEAD]
    await settlements.set_aside(tx, dead)
    return len(dead)


def _limit(item: DueEvent, max_attempts: int) -> RetryLimit:
    return retry_limit(
        max_attempts,
        is_question=item.is_question,
        is_visitors_webhook=item.is_visitors_webhook,
    )


async def _addressed(
    tx: Tx, events: Sequence[Leased], lease: UUID, failing: Collection[DestinationKey]
) -> list[LeasedDelivery]:
    to_channels = {ChannelKey((e.org, e.channel)) for e in events if e.channel is not None}
    to_webhooks = {WebhookKey((e.org, e.webhook)) for e in events if e.webhook is not None}
    to_subscribers = {
        SubscriberKey((e.org, e.subscriber)) for e in events if e.subscriber is not None
    }
    channel_rows = await channels.select_channels_by_key(tx, sorted(to_channels))
    webhook_rows = await webhooks.select_webhooks_by_key(tx, sorted(to_webhooks))
    subscriber_rows = await delivery_addresses.select_subscribers_by_key(tx, sorted(to_subscribers))
    by_subscriber = {(row.org, row.id): row for row in subscriber_rows}
    by_channel = {(row.org, row.id): row for row in channel_rows}
    by_webhook = {(row.org, row.id): row for row in webhook_rows}
    # Longest waiting first: ids rise with time.
    return [
        LeasedDelivery(
            event,
            lease,
            by_channel.get((event.org, event.channel or 0)),
            by_webhook.get((event.org, event.webhook or 0)),
            by_subscriber.get((event.org, event.subscriber or 0)),
            event.destination_key in failing,
        )
        for event in sorted(events, key=lambda event: (event.channel is None, event.id))
    ]
