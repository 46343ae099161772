"""Worker for check tests, which try a check before it is saved.

Processes that do not probe the region of the check hand the test over. The process that leases a
test runs it once, under the same permits as any run. If the test cannot be decrypted or prepared
here, the answer is a local failure.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import msgspec
import trio

from ...probes.check.check import make_check, target_host
from ...probes.check.condition import BadCondition
from ...probes.check.result import Result, UnknownReason, unobtained
from ...probes.net.egress import Egress
from ...probes.runner import run
from ...storage.core.instant import Instant
from ...storage.core.refusal import Unavailable
from ...storage.engine.keyring import CannotOpen, Keyring
from ...storage.engine.pools import Pool
from ...storage.monitors.rows import CheckTest
from ...storage.monitors.tables.check_tests import answer_check_test, lease_check_tests
from ...storage.monitors.transactions.check_test_document import CheckTestDocument, open_document

log = logging.getLogger("leadline.check_test_worker")

AT_ONCE: Final = 5


@dataclass(slots=True)
class CheckTestWorker:
    pool: Pool
    process: UUID
    regions: tuple[str, ...]
    keyring: Keyring
    reach: Egress
    permits: trio.CapacityLimiter
    clock: Callable[[], Instant]

    async def lease(self) -> list[CheckTest]:
        """Leases waiting tests of its regions, up to AT_ONCE and the free permits, for `answer`."""
        most = min(AT_ONCE, int(self.permits.available_tokens))
        if most <= 0:
            return []
        async with self.pool.statement("lease_check_tests") as tx:
            return await lease_check_tests(tx, self.process, self.regions, most)

    async def answer(self, trial: CheckTest) -> None:
        """Runs a test and stores its result."""
        async with self.permits:
            result = await self._run(trial)
        try:
            async with self.pool.statement("answer_check_test") as tx:
                await answer_check_test(tx, trial.uid, msgspec.json.encode(result).decode())
        except Unavailable:
            log.warning("check test not answered: database unavailable")

    async def _run(self, trial: CheckTest) -> Result:
        try:
            document = open_document(trial, self.keyring)
        except CannotOpen:
            return unobtained(self.clock(), "", UnknownReason.DECRYPT_FAILED)
        try:
            check = make_check(
                document.type,
                document.target,
                document.method,
                document.config,
                document.conditions,
                retries=document.retries,
                timeout_seconds=document.timeout_seconds,
                interval_seconds=document.interval_seconds,
                secrets=document.values,
                show_values=document.show_values,
            )
        except BadCondition:
            return unobtained(self.clock(), _host(document), UnknownReason.BAD_DEFINITION)
        return await run(check, self.reach, self.clock, document.org)


def _host(document: CheckTestDocument) -> str:
    return target_host(document.type, document.target)
