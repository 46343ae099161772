"""Bounces: permanent refusals of an address, which suspend it after a number of them."""

from ...engine.pools import Tx
from ...notifications.queries.delivery_addresses import SubscriberRow
from ..tables import subscribers


async def record_bounce(tx: Tx, subscriber: SubscriberRow) -> bool:
    """Returns whether sending stops until the address is confirmed again."""
    found = await subscribers.record_bounce(tx, subscriber.org, subscriber.id)
    return found is not None and found[1]


async def record_reached(tx: Tx, subscriber: SubscriberRow) -> None:
    """Resets the bounces after a successful delivery."""
    await subscribers.record_reached(tx, subscriber.org, subscriber.id)
