"""Runs of a push monitor for people."""

import msgspec

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ..rules.push_run import RunOutcome

_SELECT = """
select run, started_at, deadline_at, ended_at, outcome, code, judged
from push_runs where org = %(org)s and monitor = %(monitor)s
order by started_at desc, run desc limit %(most)s
"""


class PushRunRow(msgspec.Struct, frozen=True):
    run: str
    started_at: Instant
    deadline_at: Instant | None
    ended_at: Instant | None
    outcome: str | None
    code: int | None
    judged: str | None

    @property
    def duration_ms(self) -> int | None:
        """Returns the duration of a run with a result. A replaced run has none."""
        if self.ended_at is None or self.outcome == RunOutcome.REPLACED:
            return None
        return (self.ended_at - self.started_at) // 1_000


async def select_push_runs(tx: Tx, key: MonitorKey, most: int) -> list[PushRunRow]:
    """Returns the newest runs first."""
    return await tx.structs(PushRunRow, _SELECT, org=key[0], monitor=key[1], most=most)
