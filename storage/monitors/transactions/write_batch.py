"""Batch of writes at the end of an edit of one or thousands of monitors.

It contains states, audit entries, wakeups, terms, extra runs and the log of edits. Repeated updates
of one row in a transaction leave row versions that each later update must skip, and each statement
costs a round trip; therefore they are gathered.

Locks:
    Rows that schedulers, recorders and sealers wait for are locked late and briefly. An edit locks
    wakeups before states, and states before jobs. The schedule is last.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from uuid_utils.compat import uuid7

from ...accounts.rules.access import Principal
from ...accounts.transactions.authorize import audit_many
from ...core.instant import DAY, MILLISECOND, SECOND, Instant
from ...core.key import MonitorKey
from ...core.refusal import Refused
from ...engine.pools import Conflicted, Tx
from ...oncall.rows import EscalationPolicyRow
from ...oncall.tables.escalation_policies import look_at_incidents_again
from ...scheduling.rows import NewJob, NewTerm
from ...scheduling.rules.run_schedule import ScheduleTerm
from ...scheduling.tables import presences, schedule_edits
from ...scheduling.tables import shards as schedules
from ...scheduling.tables import work_queues as queues
from ..tables import composite_wakeups, monitors
from .organization_use import SEVERAL, UseChanges

# An extra run that was not claimed within this time is dropped.
EXTRA_CLAIM_US: Final = 120 * SECOND
# Terms of a bundle begin this much after the cursor of their shard, plus an amount per term. So
# they can be written before the schedule is locked.
AHEAD_US: Final = 1 * SECOND
AHEAD_OF_EACH_US: Final = 2 * MILLISECOND
# If the cursor is closer than this before the schedule is locked, the terms are moved.
MARGIN_LEAST_US: Final = SECOND // 2
# Provisional delay of a wakeup that is locked before its instant is known.
_UNKNOWN_YET_US: Final = DAY


@dataclass(slots=True)
class MonitorWriteBatch:
    """Gathered writes.

    An edit of one monitor ends with `flush`. A bundle calls `write_ahead`, and `publish` last. A
    plan calls neither, and writes no existing monitors.
    """

    principal: Principal
    is_plan: bool = False
    # Whether the batch edits all parts of a regional monitor, and may so edit each.
    edits_regional: bool = False
    # New dependencies of monitors that a plan does not write.
    planned_dependencies: dict[int, list[int]] = field(default_factory=dict)
    use: UseChanges = field(default_factory=UseChanges)
    _new: list[MonitorKey] = field(default_factory=list)
    _touched: list[MonitorKey] = field(default_factory=list)
    _paused: list[MonitorKey] = field(default_factory=list)
    _audited: list[tuple[int, str, str]] = field(default_factory=list)
    _terms: list[NewTerm] = field(default_factory=list)
    # The shard that a monitor leaves.
    _left: dict[MonitorKey, int] = field(default_factory=dict)
    _edited: dict[int, set[MonitorKey]] = field(default_factory=dict)
    # The flag states whether to wait for the new term. Requested runs need not wait for the next
    # window, but a result from before a resume would describe the pause.
    _runs: list[tuple[MonitorKey, int, bool]] = field(default_factory=list)
    _wakes: dict[MonitorKey, bool] = field(default_factory=dict)
    _begins: dict[MonitorKey, Instant] = field(default_factory=dict)
    _policies: list[EscalationPolicyRow] = field(default_factory=list)
    # Projects with another maintenance, with their monitors.
    _maintained: dict[tuple[int, int], list[MonitorKey]] = field(default_factory=dict)
    _late: list[Callable[[Tx], Awaitable[None]]] = field(default_factory=list)

    def came(self, key: MonitorKey) -> None:
        self._new.append(key)

    def changed(self, key: MonitorKey, *, enabled: bool) -> None:
        """Registers a changed monitor, so that earlier folds start again."""
        self._touched.append(key)
        if not enabled:
            self._paused.append(key)

    def removed(self, key: MonitorKey, shard: int) -> None:
        """Registers a deleted monitor for the log of edits."""
        self._edited.setdefault(shard, set()).add(key)

    def audit(self, org: int, action: str, target: str) -> None:
        self._audited.append((org, action, target))

    def term(
        self, key: MonitorKey, term: ScheduleTerm, from_at: Instant, *, left: int | None = None
    ) -> None:
        """Registers a term that begins at the shard's cursor, and not before `from_at`.

        `left` is the shard that the monitor leaves.
        """
        self._terms.append(NewTerm.of(key, term, from_at))
        self._edited.setdefault(term.shard, set()).add(key)
        if left is not None:
            self._left[key] = left
            self._edited.setdefault(left, set()).add(key)

    def policy(self, row: EscalationPolicyRow) -> None:
        """Registers a changed escalation policy, whose incidents continue with the new steps."""
        self._policies.append(row)

    def maintained(self, org: int, project: int, monitors: list[MonitorKey]) -> None:
        """Registers a project whose schedules must be reloaded, because its maintenance changed."""
        self._maintained[(org, project)] = monitors

    def late(self, write: Callable[[Tx], Awaitable[None]]) -> None:
        """Registers a write of rows that recorders lock after states and before the schedule."""
        self._late.append(write)

    def run(self, key: MonitorKey, shard: int, *, with_term: bool) -> None:
        self._runs.append((key, shard, with_term))

    def wake(self, key: MonitorKey, *, with_term: bool) -> None:
        """Requests an evaluation of a composite, now or when its new term begins."""
        self._wakes[key] = with_term

    async def flush(self, tx: Tx) -> None:
        """Writes the batch of one monitor.

        Raises:
            Refused invalid at a limit of the organization, and for a schedule while a process of
            an earlier version is present.
        """
        await self._expect_schedules(tx)
        await self.use.expect_room(tx)
        await self._write_records(tx)
        await self._write_states(tx)
        await self._write_runs(tx)
        if self._edited:
            await schedule_edits.lock_edits(tx, self._edited)
            self._begins = await self._add_terms(tx, ahead_us=0)
        await self._time_followers(tx)
        await self._write_log(tx)

    async def write_ahead(self, tx: Tx) -> None:
        """Writes new rows, which block no other transaction. The terms begin after the cursor.

        Raises:
            Refused invalid for a schedule while a process of an earlier version is present.
        """
        await self._expect_schedules(tx)
        await self._write_records(tx)
        self._begins = await self._add_terms(tx, ahead_us=self._ahead_us)

    async def publish(self, tx: Tx) -> None:
        """Writes the rest.

        Raises:
            Conflicted if reservation has passed the beginning of a term; Refused invalid at a limit
            of the organization.
        """
        await self.use.expect_room(tx, SEVERAL)
        await self._write_states(tx)
        for row in self._policies:
            await look_at_incidents_again(tx, row)
        if self._edited:
            await self._keep_ahead(tx)
        await self._write_runs(tx)
        await self._time_followers(tx)
        for write in self._late:
            await write(tx)
        if self._new or self._left:
            # At the commit, this check would run under the lock.
            await monitors.check_shards_exist(tx)
        if self._edited:
            await schedule_edits.lock_edits(tx, self._edited)
            reserved = await schedules.select_reserved_of(tx, self._edited)
            if any(begin < self._least(reserved, key) for key, begin in self._begins.items()):
                raise Conflicted("reservation passed the terms of a bundle before its commit")
        await self._write_log(tx)
        for org, project in self._maintained:
            await schedule_edits.edit_everywhere(tx, org, project=project)

    @property
    def _ahead_us(self) -> int:
        return AHEAD_US + AHEAD_OF_EACH_US * len(self._terms)

    async def _expect_schedules(self, tx: Tx) -> None:
        # Such a process would reserve the windows of an interval.
        if any(term.schedule for term in self._terms) and await presences.ignores_schedules(tx):
            rule = "needs this version in all processes, and one of an earlier version is running"
            raise Refused("invalid", "schedule", rule)

    async def _write_records(self, tx: Tx) -> None:
        await monitors.insert_states(tx, self._new)
        await audit_many(tx, self.principal, self._audited)

    async def _write_states(self, tx: Tx) -> None:
        for key, with_term in sorted(self._wakes.items()):
            due = Instant(tx.now + _UNKNOWN_YET_US) if with_term else tx.now
            await composite_wakeups.wake_composites(tx, key, due)
        for keys in self._maintained.values():
            await composite_wakeups.wake_parents_of(tx, keys)
        await monitors.touch_states(tx, self._touched)
        await queues.delete_jobs_of(tx, self._paused)

    async def _add_terms(self, tx: Tx, *, ahead_us: int) -> dict[MonitorKey, Instant]:
        """Writes the terms. If a monitor leaves a shard, its term begins after that cursor too."""
        terms = self._terms
        if self._left:
            reserved = await schedules.select_reserved_of(tx, set(self._left.values()))
            terms = [self._after_leaving(term, reserved, ahead_us) for term in terms]
        return await schedules.add_terms(tx, terms, ahead_us=ahead_us)

    def _after_leaving(
        self, term: NewTerm, reserved: Mapping[int, Instant], ahead_us: int
    ) -> NewTerm:
        left = self._left.get(MonitorKey((term.org, term.monitor)))
        if left is None:
            return term
        return term.not_before(Instant(reserved[left] + ahead_us))

    def _least(self, reserved: Mapping[int, Instant], key: MonitorKey) -> Instant:
        """Returns the first instant at which a term of the monitor can begin."""
        return max(at for shard, at in reserved.items() if key in self._edited[shard])

    async def _keep_ahead(self, tx: Tx) -> None:
        """Moves terms that the cursor is close to, before the schedule is locked."""
        reserved = await schedules.select_reserved_of(tx, self._edited)
        moved = {
            key: (begin, Instant(least + self._ahead_us))
            for key, begin in self._begins.items()
            if begin < (least := self._least(reserved, key)) + MARGIN_LEAST_US
        }
        await schedules.move_terms(tx, moved)
        self._begins.update({key: to for key, (_, to) in moved.items()})

    async def _write_runs(self, tx: Tx) -> None:
        """Writes the extra runs, which locks their rows before the schedule."""
        await queues.add_jobs(tx, [self._job(tx, *run) for run in self._runs])

    async def _time_followers(self, tx: Tx) -> None:
        """Corrects the instants of wakeups and extra runs that begin with a term."""
        for key, with_term in sorted(self._wakes.items()):
            if with_term:
                await composite_wakeups.wake_composites(tx, key, self._begin(tx, key))
        await queues.add_jobs(tx, [self._job(tx, *run) for run in self._runs if run[2]])

    async def _write_log(self, tx: Tx) -> None:
        """Logs the edited monitors for the schedulers, which wait from here to the commit."""
        shards = {MonitorKey((term.org, term.monitor)): term.shard for term in self._terms}
        moves = {(shards[key], left) for key, left in self._left.items()}
        for shard, left in sorted(moves):
            await schedules.take_over_figures(tx, shard, left)
        await schedule_edits.insert_edits(tx, self._edited)

    def _begin(self, tx: Tx, key: MonitorKey) -> Instant:
        return max(self._begins.get(key, tx.now), tx.now)

    def _job(self, tx: Tx, key: MonitorKey, shard: int, with_term: bool) -> NewJob:
        due = self._begin(tx, key) if with_term else tx.now
        until = Instant(due + EXTRA_CLAIM_US)
        return NewJob(uuid7(), key[0], key[1], shard, "extra", due, until)
