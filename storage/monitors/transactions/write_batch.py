"""What the writing of monitors leaves to be written once, be it of one or of thousands: states, the
audit, terms with the generation of their shards, and extra runs.

A row that one transaction writes again and again is passed version by version by each who writes it
next, and each statement costs a way to the database: so these are gathered, and written at the end.
States come before jobs, as everyone locks them.
"""

from dataclasses import dataclass, field
from typing import Final

from uuid_utils.compat import uuid7

from ...accounts.rules.access import Principal
from ...accounts.transactions.authorize import audit_many
from ...core.instant import SECOND, Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ...scheduling.rows import NewJob, NewTerm
from ...scheduling.rules.run_schedule import ScheduleTerm
from ...scheduling.tables import shards as schedules
from ...scheduling.tables import work_queues as queues
from ..tables import monitors

# An extra run that nobody took up by then says nothing any more.
EXTRA_CLAIM_US: Final = 120 * SECOND


@dataclass(slots=True)
class MonitorWriteBatch:
    """Shards are held by whoever gathers; `write` is the last that is done."""

    principal: Principal
    _new: list[MonitorKey] = field(default_factory=list)
    _touched: list[MonitorKey] = field(default_factory=list)
    _paused: list[MonitorKey] = field(default_factory=list)
    _audited: list[tuple[int, str, str]] = field(default_factory=list)
    _terms: list[NewTerm] = field(default_factory=list)
    _moves: set[tuple[int, int]] = field(default_factory=set)
    _shards: set[int] = field(default_factory=set)
    # With whether they wait for the term that begins: what is asked for is not to wait for the
    # next window, but what comes from before a resume speaks for the pause, and so for nothing.
    _runs: list[tuple[MonitorKey, int, bool]] = field(default_factory=list)

    def came(self, key: MonitorKey) -> None:
        self._new.append(key)

    def changed(self, key: MonitorKey, shard: int, *, enabled: bool) -> None:
        """Every fold that was begun before begins again, and tickers learn that what they know is
        old."""
        self._touched.append(key)
        self._shards.add(shard)
        if not enabled:
            self._paused.append(key)

    def moved(self, shard: int, before: int) -> None:
        self._moves.add((shard, before))
        self._shards.add(before)

    def audit(self, org: int, action: str, target: str) -> None:
        self._audited.append((org, action, target))

    def term(self, key: MonitorKey, term: ScheduleTerm, from_at: Instant) -> None:
        """It begins where reservation stands, and never before `from_at`."""
        self._terms.append(NewTerm.of(key, term, from_at))
        self._shards.add(term.shard)

    def run(self, key: MonitorKey, shard: int, *, with_term: bool) -> None:
        self._runs.append((key, shard, with_term))

    async def flush(self, tx: Tx) -> None:
        await monitors.insert_states(tx, self._new)
        await monitors.touch_states(tx, self._touched)
        await queues.delete_jobs_of(tx, self._paused)
        await audit_many(tx, self.principal, self._audited)
        for shard, before in sorted(self._moves):
            await schedules.take_over_figures(tx, shard, before)
        begins = await schedules.add_terms(tx, self._terms, self._shards)
        await queues.add_jobs(tx, [self._job(tx, begins, *run) for run in self._runs])

    def _job(
        self,
        tx: Tx,
        begins: dict[MonitorKey, Instant],
        key: MonitorKey,
        shard: int,
        with_term: bool,
    ) -> NewJob:
        due = max(begins.get(key, tx.now), tx.now) if with_term else tx.now
        until = Instant(due + EXTRA_CLAIM_US)
        return NewJob(uuid7(), key[0], key[1], shard, "extra", due, until)
