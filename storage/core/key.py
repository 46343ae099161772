"""The key of a row, and how a statement takes many keys."""

from collections.abc import Iterable
from typing import NewType

# (organization, id)
Key = tuple[int, int]
MonitorKey = NewType("MonitorKey", Key)
ServiceKey = NewType("ServiceKey", Key)
ProjectKey = NewType("ProjectKey", Key)
ChannelKey = NewType("ChannelKey", Key)
WebhookKey = NewType("WebhookKey", Key)
SubscriberKey = NewType("SubscriberKey", Key)
DestinationKey = NewType("DestinationKey", Key)
# Event of the outbox.
EventKey = NewType("EventKey", Key)


def key_arrays(keys: Iterable[Key], ids: str) -> dict[str, list[int]]:
    """Returns the parameters of `unnest(%(orgs)s::int[], %(ids)s::int[])`, where `ids` is the name
    of the second one."""
    found = list(keys)
    return {"orgs": [key[0] for key in found], ids: [key[1] for key in found]}
