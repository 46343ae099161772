"""Janitor: creates partitions a week ahead, drops old ones, and deletes expired rows."""

import logging
from collections.abc import Callable
from typing import Final

from ...storage.accounts.tables import operations, sessions
from ...storage.accounts.tables.api_tokens import purge_expired_tokens
from ...storage.accounts.tables.invitations import purge_expired_invitations
from ...storage.accounts.tables.password_resets import purge_expired_resets
from ...storage.accounts.tables.user_identities import purge_expired_flows
from ...storage.agents.tables import agents
from ...storage.core.instant import DAY, HOUR, Instant
from ...storage.core.time_span import TimeSpan
from ...storage.engine.partitions import drop_partitions, make_partitions, partitions
from ...storage.engine.pools import Pool
from ...storage.maintenance.tables import maintenance_series, maintenances
from ...storage.maintenance.transactions.extend_series import announce_ahead
from ...storage.monitors.tables import check_tests as trials
from ...storage.monitors.tables import compositions, monitors
from ...storage.notifications.tables import outbox_settlements as settlements
from ...storage.results.rules.packed_days import WEEK_US, day_of
from ...storage.results.tables import packing, push_bodies, push_events, push_runs
from ...storage.results.tables.results import holds_verdicts
from ...storage.results.transactions.delete_history import delete_history_of, delete_old_history
from ...storage.scheduling.queries import shards as shards_queries
from ...storage.scheduling.tables import presences, schedule_edits
from ...storage.scheduling.tables import work_queues as queues
from ...storage.services.queries.sealing_backlog import select_least_open
from ...storage.services.tables import service_minutes as service_facts
from ...storage.status_pages.tables import subscribers

log = logging.getLogger("leadline.janitor")

PAUSE_SECONDS: Final = 600.0
AHEAD_US: Final = 7 * DAY
GATE_LEDGER: Final = "gate_decisions"
# A result is stored only if the partition of its instant exists. A first start needs yesterday's
# partition, because agents and slow runs bring results that began before midnight.
BEHIND_US: Final = DAY
# Largest age of an open window before the last seal: interval, grace and late arrival of a push.
# A result can also affect the following hours, up to three of the longest intervals.
OPEN_BEHIND_US: Final = 4 * DAY
# Schedulers read the edit log twice a second. One that was away for longer loads its plan again.
EDITS_KEPT_US: Final = HOUR
PRESENCES_KEPT_US: Final = 40 * DAY
OPERATIONS_KEPT_US: Final = 7 * DAY
# Retention of delivered events and their threads. Dead letters stay.
DELIVERED_KEPT_US: Final = 14 * DAY
DELIVERED_AT_ONCE: Final = 10_000
PIECES_AT_ONCE: Final = 1_000
# Archived monitors, each with its pieces.
ARCHIVED_AT_ONCE: Final = 10
# Retention before the seal of a service. The longest window has 90 days, and policies are tested
# on windows that ended up to 31 days ago.
MINUTES_KEPT_DAYS: Final = 125
# Each maintenance occurrence is announced at least this far ahead.
ANNOUNCED_AHEAD_US: Final = 30 * DAY
SERIES_AT_ONCE: Final = 200


class Janitor:
    def __init__(
        self,
        pool: Pool,
        clock: Callable[[], Instant],
        *,
        heartbeat_days: int,
        ledger_days: int,
        gate_days: int,
        history_days: int = 0,
    ) -> None:
        self._pool = pool
        self._clock = clock
        # A late result needs a partition of both tables. It is accepted by the age of heartbeats,
        # so the rows of the ledger are kept for at least that time.
        self._kept = {
            ("heartbeats", "ts"): heartbeat_days,
            ("expected_runs", "due_at"): max(ledger_days, heartbeat_days),
        }
        self._gate_days = gate_days
        self._packs = history_days > 0
        # Pieces replace rows, so they are kept for at least as long as rows.
        self._piece_days = max(history_days, heartbeat_days, ledger_days)
        # Span of the partitions of the gate ledger, from the last pass.
        self.gate_ledger: TimeSpan | None = None

    async def make_room(self) -> None:
        """Creates the partitions from yesterday to a week ahead; required before any write.

        If no process created partitions for some days, it also creates those of the days between,
        because their windows are not settled yet. The ledger covers the days of all heartbeats: a
        database of an earlier version kept it for fewer days.
        """
        now = self._clock()
        from_ = min(Instant(now - BEHIND_US), await self._open_from())
        # Nothing is stored in the tables before this instant.
        packed_through = await self._packed_through()
        for parent, column in self._kept:
            through = Instant(now + AHEAD_US)
            from_ = max(from_, packed_through)
            await make_partitions(self._pool, parent, column, from_=from_, through=through)
            from_ = min(from_, (await partitions(self._pool, parent))[0].from_)
        await self._make_room_for_decisions(now)

    async def _make_room_for_decisions(self, now: Instant) -> None:
        """Creates the gate partitions; decisions carry the current instant, so none are older."""
        from_, through = Instant(now - BEHIND_US), Instant(now + AHEAD_US)
        await make_partitions(self._pool, GATE_LEDGER, "evaluated_at", from_=from_, through=through)
        found = await partitions(self._pool, GATE_LEDGER)
        self.gate_ledger = TimeSpan(found[0].from_, found[-1].until)

    async def _open_from(self) -> Instant:
        """Returns the instant before which windows, hourly figures and services are all sealed."""
        async with self._pool.transaction("list_shards", read_only=True) as tx:
            shards = await shards_queries.select_shards(tx)
            told = await select_least_open(tx)
        ends = [min(shard.settled_through, shard.rolled_up_through) for shard in shards]
        ends += [told] if told is not None else []
        return min(ends, default=self._clock())

    async def _packed_through(self) -> Instant:
        async with self._pool.transaction("read_packing", read_only=True) as tx:
            return (await packing.select_packing(tx)).packed_through

    async def _delete_pieces(self, now: Instant) -> None:
        before = day_of(Instant(now - self._piece_days * DAY)).from_
        deleted = PIECES_AT_ONCE
        while deleted == PIECES_AT_ONCE:
            async with self._pool.transaction("delete_old_pieces") as tx:
                deleted = await delete_old_history(tx, before, PIECES_AT_ONCE)

    async def _forget_compositions(self, before: Instant) -> None:
        forgotten = ARCHIVED_AT_ONCE
        while forgotten == ARCHIVED_AT_ONCE:
            async with self._pool.transaction("forget_compositions") as tx:
                gone = await compositions.forget(tx, before, ARCHIVED_AT_ONCE)
                await delete_history_of(tx, gone)
            forgotten = len(gone)

    async def pass_once(self) -> None:
        await self.make_room()
        now = self._clock()
        open_from = await self._open_from()
        await self._drop_rows(now, Instant(open_from - OPEN_BEHIND_US))
        kept_from = Instant(now - self._gate_days * DAY)
        _log_rows(await drop_partitions(self._pool, GATE_LEDGER, before=kept_from))
        async with self._pool.transaction("record_conditions") as tx:
            await monitors.record_conditions(tx)
        async with self._pool.transaction("purge_expired_rows") as tx:
            await queues.purge_stale_jobs(tx, Instant(now - HOUR))
            await schedule_edits.delete_edits(tx, Instant(now - EDITS_KEPT_US))
            await trials.drop_check_tests(tx, Instant(now - HOUR))
            await agents.purge_agents(tx, Instant(now - agents.KEPT_DAYS * DAY))
            await presences.purge_presences(tx, Instant(now - PRESENCES_KEPT_US))
            raw_from = Instant(now - self._kept["heartbeats", "ts"] * DAY)
            await push_events.drop_push_events(tx, raw_from)
            await push_runs.drop_push_runs(tx, raw_from)
            await push_bodies.drop_push_bodies(tx, raw_from)
            # Figures are computed from results. Composite definitions and archived monitors from
            # before the oldest result that is stored, or not rolled up yet, are no longer needed.
            oldest = Instant(min(raw_from, open_from) - OPEN_BEHIND_US)
            # A partition or a piece is deleted whole, so its oldest results are kept for longer.
            pieces_from = Instant(now - self._piece_days * DAY)
            conditions_from = Instant(min(oldest, pieces_from) - WEEK_US - DAY)
            await monitors.forget_conditions(tx, conditions_from)
            await maintenances.purge_expired_previews(tx)
            await sessions.purge_expired(tx)
            await purge_expired_resets(tx)
            await purge_expired_tokens(tx)
            await purge_expired_invitations(tx)
            await purge_expired_flows(tx)
            await subscribers.purge_unconfirmed(tx)
            await operations.purge_finished(tx, Instant(now - OPERATIONS_KEPT_US))
            await service_facts.delete_minutes(tx, MINUTES_KEPT_DAYS)
        await self._forget_compositions(oldest)
        await self._delete_pieces(now)
        await self._announce_ahead(now)
        await self._purge_delivered(Instant(now - DELIVERED_KEPT_US))

    async def _drop_rows(self, now: Instant, most: Instant) -> None:
        """Drops old partitions of results and of the ledger that end before `most`."""
        heartbeat_days, ledger_days = self._kept.values()
        if ledger_days > heartbeat_days and not self._packs:
            # Rows of results contain verdicts since a time with other settings.
            async with self._pool.transaction("find_verdicts", read_only=True) as tx:
                if await holds_verdicts(tx, Instant(now - heartbeat_days * DAY)):
                    heartbeat_days = ledger_days
        for (parent, _), row_days in zip(self._kept, (heartbeat_days, ledger_days), strict=True):
            # The packer drops the partitions of packed days. The rows of a day that is not packed
            # yet are kept as long as pieces.
            days = self._piece_days if self._packs else row_days
            before = min(Instant(now - days * DAY), most)
            _log_rows(await drop_partitions(self._pool, parent, before=before))

    async def _announce_ahead(self, now: Instant) -> None:
        """Announces the next occurrences of recurring maintenance well before they begin."""
        async with self._pool.transaction("list_series_to_extend", read_only=True) as tx:
            through = Instant(now + ANNOUNCED_AHEAD_US)
            series = await maintenance_series.select_behind(tx, through, SERIES_AT_ONCE)
        for uid in series:
            async with self._pool.transaction("extend_series") as tx:
                await announce_ahead(tx, uid)

    async def _purge_delivered(self, before: Instant) -> None:
        dropped = DELIVERED_AT_ONCE
        while dropped == DELIVERED_AT_ONCE:
            async with self._pool.transaction("purge_delivered") as tx:
                dropped = await settlements.purge_delivered(tx, before, DELIVERED_AT_ONCE)
        async with self._pool.transaction("purge_threads") as tx:
            await settlements.purge_threads(tx, before)


def _log_rows(dropped: list[str]) -> None:
    for name in dropped:
        log.info("retention deleted rows", extra={"partition": name})
