"""Service sealer: seals the minutes of services after those of their member monitors.

Several processes can run it: each transaction locks its services and skips those that another
process has locked. A service whose next minute cannot be sealed yet is skipped until it can.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from ...storage.core.instant import MINUTE, Instant
from ...storage.core.key import ServiceKey
from ...storage.core.refusal import Unavailable
from ...storage.engine.pools import Pool, Rejected
from ...storage.services.queries.sealing_backlog import (
    UnsealedService,
    select_behind,
    select_to_reconstruct,
)
from ...storage.services.transactions.seal_services import SealedService, reconstruct, seal_services

log = logging.getLogger("leadline.service_sealer")

PAUSE_SECONDS: Final = 2.0
# Limit on the services that a transaction locks.
AT_ONCE: Final = 50
# Limit on the rounds of one pass after downtime, which share the time between the services.
ROUNDS_MOST: Final = 8
PUT_OFF_US: Final = MINUTE
# Number of passes for which a failed reconstruction is postponed.
PASSES_PUT_OFF: Final = 30


class ServiceSealer:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        # Fence from which the next minute of a service can be sealed, or a failed seal retried.
        self._not_before: dict[ServiceKey, Instant] = {}
        self._passes = 0
        # Postponed reconstructions, with the number of the pass that retries them.
        self._pasts_put_off: dict[ServiceKey, int] = {}
        self.sealed = 0

    async def pass_once(self) -> int:
        """Seals all services that are behind; returns the number of advances."""
        count = 0
        for _ in range(ROUNDS_MOST):
            async with self._pool.transaction("list_unsealed_services", read_only=True) as tx:
                behind = await select_behind(tx)
            self._clear_gone(behind)
            due = [one for one in behind if self._not_before.get(one.key, 0) <= one.fence]
            moved = 0
            for part in _batches(due):
                moved += await self._seal(part)
            count += moved
            if not moved:
                break
        self.sealed += count
        await self._reconstruct()
        return count

    async def _seal(self, part: Sequence[UnsealedService]) -> int:
        """Seals services; halves a rejected or timed-out batch until the failure is isolated."""
        keys = [one.key for one in part]
        failed: Rejected | Unavailable | None = None
        done: dict[ServiceKey, SealedService] = {}
        try:
            done = await self._pool.transact("seal_services", lambda tx: seal_services(tx, keys))
        except (Rejected, Unavailable) as error:
            failed = error
        if failed is not None and len(part) > 1:
            middle = len(part) // 2
            return await self._seal(part[:middle]) + await self._seal(part[middle:])
        if failed is not None:
            self._not_before[keys[0]] = Instant(part[0].fence + PUT_OFF_US)
            if isinstance(failed, Unavailable):
                raise failed
            log.error("service cannot be sealed", extra={"cause": str(failed), "key": keys[0]})
        return self._moved(part, done)

    def _moved(
        self, part: Sequence[UnsealedService], done: Mapping[ServiceKey, SealedService]
    ) -> int:
        moved = 0
        for one in part:
            if one.key in done:
                sealed = done[one.key]
                moved += sealed.to > one.sealed_through
                # Marks advance with the fence: this much is missing to the next whole minute.
                ahead_us = max(sealed.to + MINUTE - sealed.mark, 0)
                self._not_before[one.key] = Instant(one.fence + ahead_us)
        return moved

    async def _reconstruct(self) -> None:
        self._passes += 1
        put_off = {key for key, until in self._pasts_put_off.items() if until > self._passes}
        async with self._pool.transaction("list_reconstructions", read_only=True) as tx:
            keys = await select_to_reconstruct(tx, AT_ONCE + len(put_off))
        self._pasts_put_off = {key: self._pasts_put_off[key] for key in put_off.intersection(keys)}
        for key in keys:
            if key not in put_off:
                await self._reconstruct_one(key)

    async def _reconstruct_one(self, key: ServiceKey) -> None:
        try:
            async with self._pool.transaction("reconstruct") as tx:
                await reconstruct(tx, key)
        except (Rejected, Unavailable) as error:
            self._pasts_put_off[key] = self._passes + PASSES_PUT_OFF
            if isinstance(error, Unavailable):
                raise
            log.error("service history cannot be computed", extra={"cause": str(error), "key": key})

    def _clear_gone(self, behind: Sequence[UnsealedService]) -> None:
        known = {one.key for one in behind}
        self._not_before = {k: at for k, at in self._not_before.items() if k in known}


def _batches(behind: Sequence[UnsealedService]) -> Iterator[Sequence[UnsealedService]]:
    """Yields batches of one organization each."""
    for _, group in groupby(sorted(behind, key=lambda one: one.key), key=lambda one: one.key[0]):
        own = list(group)
        yield from (own[start : start + AT_ONCE] for start in range(0, len(own), AT_ONCE))
