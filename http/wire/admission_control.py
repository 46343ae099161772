"""How often and how many at once may ask: buckets that hold one minute's worth, and permits.

A bucket is one instant, the moment at which it would be full again (the generic cell rate
algorithm, ITU-T I.371): so a refused try costs nothing, and a full bucket need not be kept. Who is
refused for one bound is not charged at another.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import trio

from ...storage.core.instant import HOUR, MINUTE, SECOND, Instant
from .errors import Problem

CLIENTS_MOST: Final = 10_000


class ClientBuckets:
    """Counts by the client's address, as `client_address` gives it: IPv6 by /64. A bucket holds
    what `span` µs are worth; where that is no minute, "a minute" below is that long."""

    def __init__(self, clients_most: int = CLIENTS_MOST, *, span: int = MINUTE) -> None:
        self._span = span
        # Client → when its bucket is full again; the client that tried last is at the end.
        self._full_at: OrderedDict[str, Instant] = OrderedDict()
        self._clients_most = clients_most

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, client: str, per_minute: int, now: Instant) -> int:
        """0 where the client may try; else after how many whole seconds it may, at least 1."""
        wait_seconds = self.wait(client, per_minute, now)
        if wait_seconds == 0:
            self._full_at[client] = self._full_after(client, per_minute, now)
            self._full_at.move_to_end(client)
            self._keep_bound(now)
        return wait_seconds

    def wait(self, client: str, per_minute: int, now: Instant) -> int:
        """As `take`, and takes nothing."""
        wait_us = self._full_after(client, per_minute, now) - now - self._span
        return max(-(-wait_us // SECOND), 0)

    def _full_after(self, client: str, per_minute: int, now: Instant) -> Instant:
        # Rounded down, so that exactly `per_minute` fit into the minute.
        return Instant(max(self._full_at.get(client, now), now) + self._span // per_minute)

    def _keep_bound(self, now: Instant) -> None:
        if len(self._full_at) <= self._clients_most:
            return
        for client in [c for c, full_at in self._full_at.items() if full_at <= now]:
            del self._full_at[client]
        # Many clients at once: who has been quiet for longest is forgotten.
        while len(self._full_at) > self._clients_most:
            self._full_at.popitem(last=False)


class LoginAttempts:
    """So many a minute and so many an hour, of one client; who may not for one is not charged for
    the other."""

    def __init__(self, per_minute: int, per_hour: int) -> None:
        self._per_minute = per_minute
        self._per_hour = per_hour
        self._minutes = ClientBuckets()
        self._hours = ClientBuckets(span=HOUR)

    def take(self, client: str, now: Instant) -> int:
        """0 where the client may; else after how many whole seconds it may, at least 1."""
        wait_seconds = max(
            self._minutes.wait(client, self._per_minute, now),
            self._hours.wait(client, self._per_hour, now),
        )
        if wait_seconds == 0:
            self._minutes.take(client, self._per_minute, now)
            self._hours.take(client, self._per_hour, now)
        return wait_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """How many at once, in this process and of one principal, and how many a minute; None is any
    number. `busy` is what is said where the process has as many as it may."""

    inflight_process: int
    busy: str = "process_inflight"
    inflight_principal: int | None = None
    principal_per_minute: int | None = None
    process_per_minute: int | None = None


class AdmissionControl:
    """Who may come in now, by its bounds: nobody waits, and who is refused has cost nothing."""

    def __init__(self, bounds: RateLimits) -> None:
        self._bounds = bounds
        self._process = trio.CapacityLimiter(bounds.inflight_process)
        self._inside: Counter[str] = Counter()
        self._principals = ClientBuckets()
        self._all = ClientBuckets()

    @contextmanager
    def permit(self, principal: str, now: Instant, *, takes_token: bool = True) -> Iterator[None]:
        """Held while the work is done. Problem process_inflight (or what the bounds call it),
        principal_inflight, principal_rate or process_rate, each with its Retry-After in whole
        seconds."""
        permit = object()
        try:
            self._process.acquire_on_behalf_of_nowait(permit)
        except trio.WouldBlock:
            raise _refused(self._bounds.busy, 1) from None
        try:
            most = self._bounds.inflight_principal
            if most is not None and self._inside[principal] >= most:
                raise _refused("principal_inflight", 1)
            if takes_token:
                self._take(principal, now)
            self._inside[principal] += 1
            try:
                yield
            finally:
                self._inside[principal] -= 1
                if not self._inside[principal]:
                    del self._inside[principal]
        finally:
            self._process.release_on_behalf_of(permit)

    def _take(self, principal: str, now: Instant) -> None:
        """A token of both buckets, or of neither."""
        asked = (
            ("principal_rate", self._principals, principal, self._bounds.principal_per_minute),
            ("process_rate", self._all, "", self._bounds.process_per_minute),
        )
        for code, buckets, whose, per_minute in asked:
            wait_seconds = buckets.wait(whose, per_minute, now) if per_minute else 0
            if wait_seconds:
                raise _refused(code, wait_seconds)
        for _, buckets, whose, per_minute in asked:
            if per_minute:
                buckets.take(whose, per_minute, now)


def _refused(code: str, seconds: int) -> Problem:
    return Problem(code, headers={"Retry-After": str(seconds)})
