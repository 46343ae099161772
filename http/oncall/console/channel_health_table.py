"""Health of each on-call channel, by its latest delivery.

A channel without a delivery is not shown as healthy.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ....storage.core.instant import Instant
from ....storage.notifications.queries.channel_health import ChannelHealth
from ...ui.formatting import Moment, count, moment


@dataclass(frozen=True, slots=True)
class ChannelHealthItem:
    name: str
    type: str
    last: Moment | None
    mark: str
    word: str


def reach_lines(found: Sequence[ChannelHealth], now: Instant) -> list[ChannelHealthItem]:
    return [_item(one, now) for one in found]


def _item(one: ChannelHealth, now: Instant) -> ChannelHealthItem:
    last = None if one.delivered_at is None else moment(one.delivered_at, now)
    if not one.enabled:
        mark, word = "paused", "disabled"
    elif one.failures:
        mark, word = "down", count(one.failures, "consecutive failure")
    elif last is not None:
        mark, word = "up", "delivered"
    else:
        mark, word = "unknown", "no recent delivery"
    return ChannelHealthItem(one.name, one.type, last, mark, word)
