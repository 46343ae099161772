"""An address that refuses for good is counted, and after too many refusals left alone."""

from ...engine.pools import Tx
from ...notifications.queries.delivery_addresses import SubscriberRow
from ..tables import subscribers


async def record_bounce(tx: Tx, subscriber: SubscriberRow) -> bool:
    """Whether nothing more is sent to it from now on, until it is confirmed anew."""
    found = await subscribers.record_bounce(tx, subscriber.org, subscriber.id)
    return found is not None and found[1]


async def record_reached(tx: Tx, subscriber: SubscriberRow) -> None:
    """Refusals before this one were not for good."""
    await subscribers.record_reached(tx, subscriber.org, subscriber.id)
