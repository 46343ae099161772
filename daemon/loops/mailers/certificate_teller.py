"""Notifier of certificates that end soon: begins and ends their warnings.

The database returns only the monitors whose warning changes, or waits for the end of a silence.
"""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import trio

from ....storage.alerting.queries.certificate_warnings import select_candidates
from ....storage.alerting.queries.quiet_monitors import select_quiet
from ....storage.alerting.transactions.tell_certificate import (
    CertificateOutcome,
    tell_certificate,
)
from ....storage.core.instant import Instant
from ....storage.core.key import MonitorKey
from ....storage.core.refusal import Unavailable
from ....storage.engine.pools import Pool

log = logging.getLogger("leadline.certificate_teller")

BATCH_MOST: Final = 100


class CertificateTeller:
    def __init__(self, pool: Pool, clock: Callable[[], Instant]) -> None:
        self._pool = pool
        self._clock = clock
        self.told: Counter[CertificateOutcome] = Counter()

    async def pass_once(self) -> int:
        """Begins and ends the warnings that are due; returns their number."""
        now, after, changes = self._clock(), MonitorKey((0, 0)), 0
        while True:
            async with self._pool.statement("certificate_candidates") as tx:
                batch = await select_candidates(tx, after, now, BATCH_MOST)
            if not batch:
                return changes
            waiting = await self._quiet([one.key for one in batch if one.since is None])
            for one in batch:
                if one.key not in waiting:
                    changes += await self._decide(one.key)
            await trio.lowlevel.checkpoint()
            after = batch[-1].key

    async def _quiet(self, begins: Sequence[MonitorKey]) -> set[MonitorKey]:
        """Returns the monitors that must not begin a warning, in one read for all of them."""
        if not begins:
            return set()
        async with self._pool.transaction("quiet_certificates", read_only=True) as tx:
            return await select_quiet(tx, begins)

    async def _decide(self, key: MonitorKey) -> int:
        """Decides about one monitor. A failure does not stop the monitors of other tenants."""
        extra = {"org": key[0], "monitor": key[1]}
        try:
            told = await self._pool.transact("tell_certificate", partial(tell_certificate, key=key))
        except Unavailable as error:
            log.warning("certificate warning postponed", extra=extra | {"cause": str(error)})
            return 0
        except Exception:
            log.exception("certificate warning failed", extra=extra)
            return 0
        self.told[told] += 1
        return int(told is not CertificateOutcome.LATER)
