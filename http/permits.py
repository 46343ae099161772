"""How often a client may try: a bucket for each, bounded in number, that holds one minute's worth.

A bucket is one instant, the moment at which it would be full again (the generic cell rate
algorithm, ITU-T I.371): so a refused try costs nothing, and a full bucket need not be kept.
"""

from collections import OrderedDict
from typing import Final

from ..storage.rules.instant import MINUTE, SECOND, Instant

CLIENTS_MOST: Final = 10_000


class ClientBuckets:
    """Counts by the client's address, as `client_address` gives it: IPv6 by /64."""

    def __init__(self, clients_most: int = CLIENTS_MOST) -> None:
        # Client → when its bucket is full again; the client that tried last is at the end.
        self._full_at: OrderedDict[str, Instant] = OrderedDict()
        self._clients_most = clients_most

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, client: str, per_minute: int, now: Instant) -> int:
        """0 where the client may try; else after how many whole seconds it may, at least 1."""
        # Rounded down, so that exactly `per_minute` fit into the minute.
        full_at = Instant(max(self._full_at.get(client, now), now) + MINUTE // per_minute)
        wait_us = full_at - now - MINUTE
        if wait_us > 0:
            return -(-wait_us // SECOND)
        self._full_at[client] = full_at
        self._full_at.move_to_end(client)
        self._keep_bound(now)
        return 0

    def _keep_bound(self, now: Instant) -> None:
        if len(self._full_at) <= self._clients_most:
            return
        for client in [c for c, full_at in self._full_at.items() if full_at <= now]:
            del self._full_at[client]
        # Many clients at once: who has been quiet for longest is forgotten.
        while len(self._full_at) > self._clients_most:
            self._full_at.popitem(last=False)
