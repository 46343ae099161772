"""Rate limits and concurrency limits: token buckets and permits.

A bucket is one instant: the moment at which it is full again (generic cell rate algorithm, ITU-T
I.371). A refused attempt therefore takes no token, and a full bucket needs no entry. A request that
one limit refuses is not charged to another limit.
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
    """Token buckets by client address, as `client_address` returns it: IPv6 by /64.

    A bucket contains the tokens of `span` µs. For another span than a minute, "per minute" below
    means "per span".
    """

    def __init__(self, clients_most: int = CLIENTS_MOST, *, span: int = MINUTE) -> None:
        self._span = span
        # Client → when its bucket is full again; the client that tried last is at the end.
        self._full_at: OrderedDict[str, Instant] = OrderedDict()
        self._clients_most = clients_most

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, client: str, per_minute: int, now: Instant) -> int:
        """Takes a token and returns 0, or returns the whole seconds to wait, at least 1."""
        wait_seconds = self.wait(client, per_minute, now)
        if wait_seconds == 0:
            self._full_at[client] = self._full_after(client, per_minute, now)
            self._full_at.move_to_end(client)
            self._keep_bound(now)
        return wait_seconds

    def wait(self, client: str, per_minute: int, now: Instant) -> int:
        """Returns the same as `take`, but takes no token."""
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
        # With many clients at once, the client that was idle for longest is forgotten.
        while len(self._full_at) > self._clients_most:
            self._full_at.popitem(last=False)


class LoginAttempts:
    """Limits per minute and per hour of each client. A refused attempt is charged to neither."""

    def __init__(self, per_minute: int, per_hour: int) -> None:
        self._per_minute = per_minute
        self._per_hour = per_hour
        self._minutes = ClientBuckets()
        self._hours = ClientBuckets(span=HOUR)

    def take(self, client: str, now: Instant) -> int:
        """Takes a token of both limits; returns 0 or the whole seconds to wait, at least 1."""
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
    """Limits on concurrency, per process and per principal, and on requests per minute.

    None is no limit. `busy` is the error code at the concurrency limit of the process.
    """

    inflight_process: int
    busy: str = "process_inflight"
    inflight_principal: int | None = None
    principal_per_minute: int | None = None
    process_per_minute: int | None = None


class AdmissionControl:
    """Grants permits within the limits. Requests never wait; a refused one takes no token."""

    def __init__(self, bounds: RateLimits) -> None:
        self._bounds = bounds
        self._process = trio.CapacityLimiter(bounds.inflight_process)
        self._inside: Counter[str] = Counter()
        self._principals = ClientBuckets()
        self._all = ClientBuckets()

    @contextmanager
    def permit(self, principal: str, now: Instant, *, takes_token: bool = True) -> Iterator[None]:
        """Occupies one permit until the context exits.

        Raises: Problem process_inflight (or `busy` of the limits), principal_inflight,
        principal_rate or process_rate, each with Retry-After in whole seconds.
        """
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
        """Takes a token of both buckets, or of neither."""
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
