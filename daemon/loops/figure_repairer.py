"""Repairer of figures after late data.

Each repair has its own transaction, so that a failure does not delay the others.
"""

import logging
from collections.abc import Sequence
from typing import Final

from ...storage.core.refusal import Unavailable
from ...storage.engine.pools import Pool, Rejected
from ...storage.figures import tables as figures
from ...storage.figures.rows import DueRepair
from ...storage.scheduling.queries import shards as shards_queries
from ...storage.services.transactions.repair_figures import restate

log = logging.getLogger("leadline.figure_repairer")

PAUSE_SECONDS: Final = 2.0
AT_ONCE: Final = 50


class Repairer:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.repaired = 0

    async def pass_once(self) -> int:
        """Repairs up to AT_ONCE ranges; returns their number, with failures."""
        for count in range(AT_ONCE):
            if not await self._repair_one():
                return count
        return AT_ONCE

    async def _repair_one(self) -> bool:
        leased: list[DueRepair] = []
        failed: Rejected | Unavailable | None = None
        try:
            async with self._pool.transaction("repair_figures") as tx:
                shards = {shard.id: shard for shard in await shards_queries.select_shards(tx)}
                leased = await figures.lease_repairs(tx, list(shards), 1)
                for item in leased:
                    await restate(tx, item)
        except (Rejected, Unavailable) as error:
            failed = error
        if failed is None:
            self.repaired += len(leased)
        else:
            await self._put_off(leased, failed)
        return bool(leased)

    async def _put_off(self, leased: Sequence[DueRepair], failed: Rejected | Unavailable) -> None:
        """Postpones a failed repair, or one that timed out, so that others come first."""
        for item in leased:
            async with self._pool.transaction("postpone_repair") as tx:
                await figures.postpone_repair(tx, item.org, item.id, str(failed)[:200])
        if isinstance(failed, Unavailable):
            raise failed
        log.error("figure repair failed", extra={"cause": str(failed)})
