"""Makes figures again where something about them was learnt late; one at a time, so that what
cannot be repaired delays nothing else."""

import logging
from typing import Final

from ...storage.pools import Pool, Rejected
from ...storage.tables import figures, schedules
from ...storage.tables.figures import DueRestatement
from ...storage.transactions.sealing.roll_up import restate

log = logging.getLogger(__name__)

PAUSE_SECONDS: Final = 2.0
AT_ONCE: Final = 50


class Repairer:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.repaired = 0

    async def pass_once(self) -> int:
        """How many ranges were restated."""
        for count in range(AT_ONCE):
            if not await self._repair_one():
                return count
        return AT_ONCE

    async def _repair_one(self) -> bool:
        leased: list[DueRestatement] = []
        try:
            async with self._pool.transaction("restate") as tx:
                shards = {shard.id: shard for shard in await schedules.select_shards(tx)}
                leased = await figures.lease_restatements(tx, list(shards), 1)
                for item in leased:
                    await restate(tx, item, shards[item.shard])
        except Rejected as error:
            log.error("figures could not be restated", extra={"cause": str(error)})
            for item in leased:
                async with self._pool.transaction("put_off_restatement") as tx:
                    await figures.put_off_restatement(tx, item.org, item.id, str(error)[:200])
        self.repaired += len(leased)
        return bool(leased)
