"""How often a client may try: a bucket for each, bounded in number, that holds one minute's worth.

A bucket is one instant, the moment at which it would be full again (the generic cell rate
algorithm, ITU-T I.371): so a refused try costs nothing, and a full bucket need not be kept.
"""

from collections import OrderedDict
from math import ceil
from typing import Final

MINUTE_SECONDS: Final = 60.0
CLIENTS_MOST: Final = 10_000


class ClientBuckets:
    """Counts by the client's address, as `client_address` gives it: IPv6 by /64."""

    def __init__(self, clients_most: int = CLIENTS_MOST) -> None:
        # Client → when its bucket is full again, in seconds of the caller's clock; the client that
        # tried last is at the end.
        self._full_at: OrderedDict[str, float] = OrderedDict()
        self._clients_most = clients_most

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, client: str, per_minute: int, now_seconds: float) -> int:
        """0 where the client may try; else after how many whole seconds it may, at least 1."""
        full_at = max(self._full_at.get(client, now_seconds), now_seconds)
        full_at += MINUTE_SECONDS / per_minute
        # A nanosecond of mercy: sums of fractions are not exact.
        wait_seconds = full_at - now_seconds - MINUTE_SECONDS - 1e-9
        if wait_seconds > 0:
            return max(ceil(wait_seconds), 1)
        self._full_at[client] = full_at
        self._full_at.move_to_end(client)
        self._keep_bound(now_seconds)
        return 0

    def _keep_bound(self, now_seconds: float) -> None:
        if len(self._full_at) <= self._clients_most:
            return
        for client in [c for c, full_at in self._full_at.items() if full_at <= now_seconds]:
            del self._full_at[client]
        # Many clients at once: who has been quiet for longest is forgotten.
        while len(self._full_at) > self._clients_most:
            self._full_at.popitem(last=False)
