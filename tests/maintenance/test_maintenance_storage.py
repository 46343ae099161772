"""Maintenance that is announced, ended and annulled: withheld windows, excluded time, and changes
of the past after a preview."""

from typing import Any
from uuid import UUID, uuid4

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from leadline.daemon.loops.figure_repairer import Repairer
from leadline.daemon.loops.monitor_sealer import MonitorSealer
from leadline.daemon.loops.schedule_ticker import Ticker
from leadline.storage.accounts.rules.access import CredentialKind, Membership, Principal, Role
from leadline.storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.engine.pools import Tx
from leadline.storage.maintenance.queries.maintenances import select_maintenance
from leadline.storage.maintenance.rows import MaintenanceRow
from leadline.storage.maintenance.rules import Recurrence
from leadline.storage.maintenance.transactions import extend_series, plan_maintenance
from leadline.storage.maintenance.transactions.extend_series import (
    SeriesPlan,
    announce_ahead,
    begin_series,
    end_series,
)
from leadline.storage.maintenance.transactions.plan_maintenance import (
    Plan,
    announce,
    annul,
    end,
    preview_announcement,
    preview_annulment,
)
from leadline.storage.monitors.queries.monitors import select_standings, status_of
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.results.rules.repair_range import earliest_repairable
from leadline.storage.results.transactions.record_results import record_results
from leadline.storage.scheduling.rules.maintenance_window import (
    AHEAD_MOST_US,
    LONGEST_US,
    PREVIEW_US,
    REASON_LONGEST,
    plan_fault,
)
from tests.support.worlds.blocked import until_blocked
from tests.support.worlds.world import START, World

RAW_DAYS = 30


class Works:
    """A world whose scheduler runs, and maintenance in it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.resumed = 0
        self.ticker = Ticker(world.pool, lambda: world.now)
        self.ticker.on_resumed = self._on_resumed
        self.sealer = MonitorSealer(world.pool, lambda: world.now)
        self.repairer = Repairer(world.pool)

    def _on_resumed(self) -> None:
        self.resumed += 1

    async def go(self, until: int, *rows: MonitorRow, up: bool = True) -> None:
        """Every window that is published is answered as it falls due."""
        while self.world.now < until:
            self.world.now = Instant(min(self.world.now + 30 * SECOND, until))
            await self.ticker.pass_once()
            for row in rows:
                await self._answer(row, up=up)
            await self.sealer.pass_once()
        while await self.repairer.pass_once():
            pass

    async def _answer(self, row: MonitorRow, *, up: bool) -> None:
        due = await self.world.rows(
            "select w.due from run_batches s"
            " cross join unnest(s.monitors, s.due_ats) as w(monitor, due)"
            " where s.kind = 'run' and s.published and w.monitor = %(id)s and w.due <= at(%(now)s)"
            " and not exists (select from ledger r where r.monitor = w.monitor"
            " and r.due_at = w.due) order by w.due",
            id=row.id,
            now=self.world.now,
        )
        for (at,) in due:
            result = self.world.result(row, at, up, dues=(at,), windowed=True)
            async with self.world.pool.transaction("record") as tx:
                await record_results(tx, [result])

    async def announce(
        self, from_: int, until: int, row: MonitorRow | None = None, preview: UUID | None = None
    ) -> MaintenanceRow:
        plan = _plan(from_, until, row)
        async with self.world.pool.transaction("announce") as tx:
            return await announce(
                tx, self.world.editor, self.world.project_uid, plan, preview, RAW_DAYS
            )

    async def preview(self, from_: int, until: int, row: MonitorRow | None = None) -> UUID:
        async with self.world.pool.transaction("preview") as tx:
            made = await preview_announcement(
                tx, self.world.editor, self.world.project_uid, _plan(from_, until, row), RAW_DAYS
            )
        return made.uid

    async def preview_annulment(self, row: MaintenanceRow) -> UUID:
        async with self.world.pool.transaction("preview") as tx:
            made = await preview_annulment(
                tx, self.world.editor, self.world.project_uid, row.uid, RAW_DAYS
            )
        return made.uid

    async def end(self, row: MaintenanceRow) -> None:
        async with self.world.pool.transaction("end") as tx:
            await end(tx, self.world.editor, row.uid)

    async def annul(self, row: MaintenanceRow, preview: UUID | None = None) -> None:
        async with self.world.pool.transaction("annul") as tx:
            await annul(tx, self.world.editor, row.uid, preview, RAW_DAYS)

    async def hour(self, row: MonitorRow, hour: int) -> tuple[int, int, int, int]:
        """Minutes that were good, bad, unknown and excluded."""
        ((good, bad, unknown, excluded),) = await self.world.rows(
            "select good_us, bad_us, unknown_us, excluded_us from monitor_hours"
            " where monitor = %(id)s and hour = at(%(hour)s)",
            id=row.id,
            hour=hour,
        )
        return good // MINUTE, bad // MINUTE, unknown // MINUTE, excluded // MINUTE

    async def verdicts(self, row: MonitorRow) -> dict[int, tuple[str, str | None]]:
        """By minutes after the start of the world."""
        ledger = await self.world.ledger(row)
        return {(due - START) // MINUTE: (verdict, reason) for due, verdict, reason in ledger}


def _plan(from_: int, until: int, row: MonitorRow | None) -> Plan:
    return Plan(starts_at=Instant(from_), ends_at=Instant(until), monitor=row.uid if row else None)


async def minutely(world: World, **given_: Any) -> MonitorRow:
    row = await world.monitor(interval_seconds=60, **given_)
    async with world.pool.transaction("anchor") as tx:
        await tx.execute(
            "update monitor_terms set anchor = at(%(at)s) where monitor = %(id)s",
            at=START,
            id=row.id,
        )
    await world.forget_jobs()
    return row


@pytest.fixture
def works(world: World) -> Works:
    return Works(world)


def code_of(caught: pytest.ExceptionInfo[Refused]) -> str:
    return caught.value.code


async def test_announced_maintenance_withholds_windows_and_counts_neither_way(
    works: Works,
) -> None:
    row = await minutely(works.world)
    other = await minutely(works.world)
    await works.go(START + 10 * MINUTE, row, other)
    await works.announce(START + 20 * MINUTE, START + 30 * MINUTE, row)
    await works.go(START + 3 * HOUR, row, other)
    verdicts = await works.verdicts(row)
    for minute in range(1, 60):
        is_withheld = 20 <= minute < 30
        wanted = ("withheld", "maintenance") if is_withheld else ("covered", None)
        assert verdicts[minute] == wanted, minute
    good, bad, _, excluded = await works.hour(row, START)
    assert (bad, excluded) == (0, 10)
    assert good >= 48
    assert {verdict for verdict, _ in (await works.verdicts(other)).values()} == {"covered"}


async def test_a_maintenance_of_the_project_covers_all_its_monitors(works: Works) -> None:
    rows = [await minutely(works.world) for _ in range(2)]
    await works.go(START + MINUTE, *rows)
    await works.announce(START + 5 * MINUTE, START + 8 * MINUTE)
    await works.go(START + 10 * MINUTE, *rows)
    for row in rows:
        verdicts = await works.verdicts(row)
        assert [verdicts[minute][0] for minute in range(4, 9)] == [
            "covered",
            *["withheld"] * 3,
            "covered",
        ]


async def test_covered_monitors_are_checked_immediately_after_a_maintenance(works: Works) -> None:
    row = await works.world.monitor(interval_seconds=3_600)
    push = await works.world.monitor(type="push")
    paused = await works.world.monitor(interval_seconds=3_600, enabled=False)
    await works.world.forget_jobs()
    await works.go(START + MINUTE)
    await works.announce(START + 5 * MINUTE, START + 8 * MINUTE)
    await works.go(START + 7 * MINUTE + 50 * SECOND)
    jobs = "select monitor, reason from jobs order by monitor"
    assert await works.world.rows(jobs) == []
    await works.go(START + 8 * MINUTE)
    assert await works.world.rows(jobs) == [(row.id, "extra")]
    assert works.resumed == 1
    assert push.id not in {monitor for monitor, _ in await works.world.rows(jobs)}
    assert paused.id not in {monitor for monitor, _ in await works.world.rows(jobs)}
    await works.world.forget_jobs()
    await works.go(START + 20 * MINUTE)
    assert works.resumed == 1
    assert await works.world.rows(jobs) == []


async def test_one_that_is_on_ends_now_and_one_to_come_goes(works: Works) -> None:
    row = await minutely(works.world)
    await works.go(START + MINUTE, row)
    on = await works.announce(START + 3 * MINUTE, START + 60 * MINUTE, row)
    to_come = await works.announce(START + 30 * MINUTE, START + 40 * MINUTE, row)
    await works.go(START + 5 * MINUTE + 30 * SECOND, row)
    await works.end(on)
    await works.end(to_come)
    await works.go(START + 3 * HOUR, row)
    verdicts = await works.verdicts(row)
    withheld = [minute for minute in verdicts if verdicts[minute][0] == "withheld"]
    assert withheld == [3, 4, 5]
    assert (await works.hour(row, START))[3] == 2
    with pytest.raises(Refused) as caught:
        await works.end(on)
    assert code_of(caught) == "preview_required"
    with pytest.raises(Refused) as caught:
        await works.end(to_come)
    assert code_of(caught) == "not_found"


async def test_the_past_is_changed_only_with_a_current_preview(works: Works) -> None:
    row = await minutely(works.world)
    await works.go(START + 2 * HOUR, row, up=False)
    await works.go(START + 4 * HOUR, row)
    assert (await works.hour(row, START))[1] >= 55
    span = (START + 10 * MINUTE, START + 50 * MINUTE)
    with pytest.raises(Refused) as caught:
        await works.announce(*span, row)
    assert code_of(caught) == "preview_required"
    shown = await works.preview(*span, row)
    with pytest.raises(Refused) as caught:
        await works.announce(span[0], span[1] + MINUTE, row, shown)
    assert code_of(caught) == "preview_stale"
    shown = await works.preview(*span, row)
    before = await works.verdicts(row)
    made = await works.announce(*span, row, shown)
    await works.go(works.world.now + 30 * SECOND, row)
    good, bad, unknown, excluded = await works.hour(row, START)
    assert (good, excluded) == (0, 40)
    assert bad + unknown == 20
    assert await works.verdicts(row) == before | await works.verdicts(row)
    assert (await works.verdicts(row))[20] == ("covered", None)
    # Shown once is good for once.
    with pytest.raises(Refused) as caught:
        await works.announce(*span, row, shown)
    assert code_of(caught) == "preview_stale"
    with pytest.raises(Refused) as caught:
        await works.annul(made)
    assert code_of(caught) == "preview_required"
    await works.annul(made, await works.preview_annulment(made))
    await works.go(works.world.now + 30 * SECOND, row)
    assert (await works.hour(row, START))[1] >= 55


async def test_annulling_leaves_what_was_withheld_and_the_time_is_unknown(works: Works) -> None:
    row = await minutely(works.world)
    await works.go(START + MINUTE, row)
    made = await works.announce(START + 10 * MINUTE, START + 30 * MINUTE, row)
    await works.go(START + 3 * HOUR, row)
    assert (await works.hour(row, START))[3] == 20
    await works.annul(made, await works.preview_annulment(made))
    await works.go(works.world.now + 30 * SECOND, row)
    _, bad, unknown, excluded = await works.hour(row, START)
    # The earlier result is fresh for three intervals, because no maintenance ends it now.
    assert (bad, excluded) == (0, 0)
    assert 17 <= unknown <= 19
    assert (await works.verdicts(row))[15] == ("withheld", "maintenance")


async def test_a_preview_is_good_for_a_while(works: Works) -> None:
    row = await minutely(works.world)
    await works.go(START + HOUR, row)
    span = (START + 10 * MINUTE, START + 20 * MINUTE)
    shown = await works.preview(*span, row)
    works.world.now = Instant(works.world.now + PREVIEW_US + 1)
    with pytest.raises(Refused) as caught:
        await works.announce(*span, row, shown)
    assert code_of(caught) == "preview_stale"


async def test_time_older_than_the_stored_results_does_not_change(works: Works) -> None:
    await works.world.monitor(slug="daily", interval_seconds=86_400)
    # A result is fresh for three of its intervals.
    earliest = earliest_repairable(works.world.now, RAW_DAYS, 3 * DAY)
    with pytest.raises(Refused) as caught:
        await works.preview(earliest - 1, earliest + HOUR)
    assert code_of(caught) == "older_than_raw_retention"
    assert "2025-12-10T00:00:00.000Z" in caught.value.message
    await works.preview(earliest, earliest + HOUR)


async def test_it_is_of_monitors_of_its_own_project(works: Works) -> None:
    now = works.world.now
    for plan in (
        Plan(starts_at=Instant(now + HOUR), ends_at=Instant(now + 2 * HOUR), monitor=uuid4()),
    ):
        with pytest.raises(Refused) as caught:
            async with works.world.pool.transaction("announce") as tx:
                await announce(
                    tx, works.world.editor, works.world.project_uid, plan, None, RAW_DAYS
                )
        assert (caught.value.code, caught.value.field) == ("invalid", "monitor_id")


async def test_a_viewer_reads_and_another_organization_sees_no_maintenance(works: Works) -> None:
    row = await works.announce(works.world.now + HOUR, works.world.now + 2 * HOUR)
    org = works.world.org
    viewer = Principal(
        CredentialKind.SESSION, (Membership(org, None, Role.VIEWER),), label="viewer"
    )
    stranger = Principal(CredentialKind.SESSION, (), label="stranger")
    for who, code in ((viewer, "forbidden"), (stranger, "not_found")):
        with pytest.raises(Refused) as caught:
            async with works.world.pool.transaction("end") as tx:
                await end(tx, who, row.uid)
        assert code_of(caught) == code
    async with works.world.pool.transaction("look", read_only=True) as tx:
        assert await select_maintenance(tx, row.uid) == row


async def test_the_state_is_unknown_until_a_check_after_the_maintenance(works: Works) -> None:
    row = await minutely(works.world)
    await works.go(START + 10 * MINUTE, row)
    await works.announce(works.world.now, works.world.now + MINUTE, row)
    works.world.now = Instant(works.world.now + 90 * SECOND)
    async with works.world.pool.transaction("look", read_only=True) as tx:
        standing = (await select_standings(tx, [row.key]))[row.key]
    assert status_of(standing, "http", works.world.now) == "up"
    assert row.id in {
        monitor
        for (monitor,) in await works.world.rows(
            "select m.id from maintenances x join monitors m on m.id = x.monitor"
        )
    }


@given(
    st.integers(-2 * DAY, AHEAD_MOST_US + DAY),
    st.integers(-HOUR, LONGEST_US + HOUR),
    st.integers(0, REASON_LONGEST + 2),
)
def test_a_plan_is_taken_exactly_within_its_bounds(starts: int, length: int, many: int) -> None:
    now = Instant(10 * DAY)
    starts_at = Instant(now + starts)
    fault = plan_fault(starts_at, Instant(starts_at + length), "x" * many, now)
    fine = 0 < length <= LONGEST_US and starts <= AHEAD_MOST_US and many <= REASON_LONGEST
    assert (fault is None) is fine


async def test_a_series_is_announced_once_by_concurrent_loops_and_can_be_ended(
    world: World,
) -> None:
    await world.monitor()
    starts = Instant(START + HOUR)
    plan = SeriesPlan(recurrence=Recurrence("FREQ=DAILY;COUNT=80", starts, HOUR))
    async with world.pool.transaction("begin") as tx:
        series = await begin_series(tx, world.editor, world.project_uid, plan)

    async def ahead() -> int:
        async with world.pool.transaction("ahead") as tx:
            return await announce_ahead(tx, series.uid)

    assert await world.rows("select count(*) from maintenances") == [(35,)]
    for day in [*range(1, 21), 70, 72]:
        world.now = Instant(START + day * DAY)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ahead)
            nursery.start_soon(ahead)
    rows = await world.rows("select starts_at from maintenances order by starts_at")
    # No loop ran from day 20 to day 70, and maintenance that began in that time is not announced
    # later.
    assert [(at - starts) // DAY for (at,) in rows] == [*range(55), *range(70, 80)]
    world.now = Instant(START + 78 * DAY + 90 * MINUTE)
    async with world.pool.transaction("end") as tx:
        await end_series(tx, world.editor, series.uid)
    kept = "select count(*) from maintenances where archived_at is null"
    assert await world.rows(kept) == [(len(rows) - 1,)]
    assert await ahead() == 0


async def test_many_series_leave_room_for_another_maintenance(
    world: World,
) -> None:
    for n in range(15):
        starts = Instant(START + n * MINUTE + HOUR)
        repeated = SeriesPlan(recurrence=Recurrence("FREQ=DAILY", starts, HOUR))
        async with world.pool.transaction("begin") as tx:
            await begin_series(tx, world.editor, world.project_uid, repeated)
    assert await world.rows("select count(*) > 500 from maintenances") == [(True,)]
    plan = Plan(starts_at=Instant(START + MINUTE), ends_at=Instant(START + HOUR))
    async with world.pool.transaction("announce") as tx:
        await announce(tx, world.editor, world.project_uid, plan, None, 30)


async def test_a_maintenance_that_was_ended_early_leaves_the_quota(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_maintenance, "TO_COME_MOST", 1)
    works = Works(world)
    first = await works.announce(START, START + DAY)
    world.now = Instant(START + HOUR)
    with pytest.raises(Refused, match="maintenance_quota"):
        await works.announce(START + 2 * HOUR, START + 3 * HOUR)
    async with world.pool.transaction("end") as tx:
        await end(tx, world.editor, first.uid)
    await works.announce(START + 2 * HOUR, START + 3 * HOUR)
    with pytest.raises(Refused, match="maintenance_quota"):
        await works.announce(START + 4 * HOUR, START + 5 * HOUR)


@pytest.mark.parametrize("what", ["maintenance", "series"])
async def test_two_requests_at_once_do_not_exceed_the_quota(
    world: World, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(plan_maintenance, "TO_COME_MOST", 1)
    monkeypatch.setattr(extend_series, "SERIES_MOST", 1)
    refused: list[str] = []

    async def ask(tx: Tx) -> None:
        if what == "maintenance":
            plan = _plan(world.now + HOUR, world.now + 2 * HOUR, None)
            await announce(tx, world.editor, world.project_uid, plan, None, RAW_DAYS)
        else:
            repeated = SeriesPlan(
                recurrence=Recurrence("FREQ=YEARLY", Instant(world.now + DAY), HOUR, "")
            )
            await begin_series(tx, world.editor, world.project_uid, repeated)

    async def second() -> None:
        try:
            async with world.pool.transaction("second") as tx:
                await ask(tx)
        except Refused as error:
            refused.append(error.code)

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            async with world.pool.transaction("first") as tx:
                await ask(tx)
                nursery.start_soon(second)
                await until_blocked(world.pool)
    assert refused == ["maintenance_quota"]
