"""Notifier of certificates that end soon: begins and ends their warnings.

The database returns the monitors with a certificate that ends soon, and those with a warning.
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

# Monitors that one statement reads, statements of a pass, and warnings that it decides.
BATCH_MOST: Final = 100
PAGES_MOST: Final = 20
DECISIONS_MOST: Final = 200

_START: Final = MonitorKey((0, 0))


class CertificateTeller:
    def __init__(self, pool: Pool, clock: Callable[[], Instant]) -> None:
        self._pool = pool
        self._clock = clock
        self._after = _START
        # For the watchdog, within a pass.
        self.beat: Callable[[], None] = lambda: None
        self.told: Counter[CertificateOutcome] = Counter()

    async def pass_once(self) -> int:
        """Begins and ends the warnings that are due; returns their number.

        A pass has bounds, and the next one continues after it. So a certificate of thousands of
        monitors delays no other warning for long, and no failing monitor stops those after it.
        """
        now, changes, decisions = self._clock(), 0, 0
        for _ in range(PAGES_MOST):
            async with self._pool.statement("certificate_candidates") as tx:
                batch = await select_candidates(tx, self._after, now, BATCH_MOST)
            if not batch:
                self._after = _START
                break
            due = [one for one in batch if one.is_due(now)]
            waiting = await self._quiet([one.key for one in due if one.since is None])
            for one in due:
                if one.key in waiting:
                    continue
                if decisions == DECISIONS_MOST:
                    return changes
                changes += await self._decide(one.key)
                decisions += 1
                self._after = one.key
                self.beat()
            self._after = batch[-1].key
            self.beat()
            await trio.lowlevel.checkpoint()
        return changes

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
