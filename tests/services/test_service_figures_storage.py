"""The figures of services, compared with a model that evaluates every half second.

Declarations and settings change while results arrive, some of them late or corrected. Maintenance
is announced before, during and after its span, ended and annulled. Monitors are paused, moved and
rescheduled. Every sealed minute, hour and window equals the model of the whole history, also if
passes are interrupted.
"""

import random
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
import trio
from msgspec.structs import asdict
from uuid_utils.compat import uuid7

from leadline.daemon.loops.figure_repairer import Repairer
from leadline.daemon.loops.monitor_sealer import MonitorSealer
from leadline.daemon.loops.service_sealer import ServiceSealer
from leadline.storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.engine.pools import Tx
from leadline.storage.maintenance.transactions.plan_maintenance import (
    MaintenancePreview,
    Plan,
    announce,
    annul,
    end,
    preview_announcement,
    preview_annulment,
)
from leadline.storage.monitors.tables import compositions
from leadline.storage.results.rows import RepairRequest
from leadline.storage.results.rules.incoming_result import StoreOutcome
from leadline.storage.results.tables import packing
from leadline.storage.results.tables.repair_requests import insert_repairs
from leadline.storage.results.transactions.pack_day import PackOutcome, pack_some
from leadline.storage.results.transactions.record_results import record_results
from leadline.storage.retirement.transactions.delete_monitor import delete_monitor
from leadline.storage.services.queries.service_reports import (
    select_burns,
    select_repairing,
    select_series,
    select_sum,
    select_window,
)
from leadline.storage.services.queries.service_time import select_governed
from leadline.storage.services.rows import ServiceRow
from leadline.storage.services.rules.epoch import Revision, next_minute
from leadline.storage.services.rules.service_health import (
    AggregationMode,
    Durations,
    MemberState,
    MissingData,
    Policies,
    RegionMode,
)
from leadline.storage.services.rules.service_minute import MinuteSpan, joined
from leadline.storage.services.rules.service_report import ServiceReportStatus
from leadline.storage.services.tables import (
    service_minutes as service_facts,
)
from leadline.storage.services.tables import (
    service_revisions as declarations,
)
from leadline.storage.services.tables import (
    services,
)
from leadline.storage.services.transactions import seal_services as seal_services_module
from leadline.storage.services.transactions.seal_services import seal_services
from tests.support.run.effort import IS_SOAK, varied
from tests.support.worlds.random_histories import (
    BAD,
    EXCLUDED,
    GOOD,
    TICK,
    UNKNOWN,
    Hold,
    Life,
    Painter,
    within,
)
from tests.support.worlds.service_model import by_hand
from tests.support.worlds.world import START, World

RAW_DAYS = 30
# A shorter history crosses one hour; most of its cost is the 130 statements of each minute.
MATCHED_US = 160 * MINUTE if IS_SOAK else 80 * MINUTE
CROWDED_US = 3 * HOUR if IS_SOAK else 85 * MINUTE
CROWDED_FROM_US = 65 * MINUTE if IS_SOAK else 40 * MINUTE


class Served(Life):
    """A random history with services."""

    def __init__(self, world: World, seed: int) -> None:
        super().__init__(world, seed)
        self.policy = random.Random(seed + 1)
        self.services: list[UUID] = []
        self.revisions: dict[UUID, list[Revision]] = {}
        self.regions: dict[UUID, list[tuple[int, str]]] = {}
        self.planned: list[tuple[UUID, UUID, tuple[int, int]]] = []
        self.declares = True
        self.service_sealer = ServiceSealer(world.pool)

    async def serve(self, count: int = 2) -> None:
        for n in range(count):
            uid = uuid7()
            async with self.world.pool.transaction("make_service") as tx:
                await tx.execute(
                    "insert into services (org, uid, project, slug, name, created_at, updated_at)"
                    " values (%(org)s, %(uid)s, %(project)s, %(slug)s, %(slug)s, at(%(now)s),"
                    " at(%(now)s))",
                    org=self.world.org,
                    uid=uid,
                    project=self.world.project,
                    slug=f"s{n}",
                    now=tx.now,
                )
            self.services.append(uid)
            self.revisions[uid] = []
            await self.declare(uid)

    async def declare(self, uid: UUID, count: int | None = None, **policies: Any) -> None:
        """Declares a revision as the API does: effective from the next minute."""
        revisions = self.revisions[uid]
        here = [u for u in (*self.leaves, *self.composites) if u not in self.gone]
        count = count or self.policy.randint(1, min(4, len(here)))
        members = self.policy.sample(here, count)
        sli = tuple(self.known[u].row.id for u in members)
        async with self.world.pool.transaction("declare") as tx:
            row = await services.lock_service(tx, uid)
            assert row is not None
            at = next_minute(tx.now)
            revision = Revision(
                revision=len(revisions) + 1,
                uid=uuid7(),
                effective_at=at,
                governs_from=at,
                monitors=sli,
                sli=sli,
                policies=self.policies(**policies),
            )
            await declarations.insert_revision(tx, row.key, revision, None, "test")
            if not revisions:
                await _begin(tx, row, at)
        revisions.append(revision)

    async def reach_back(self, uid: UUID, from_: Instant) -> None:
        """Sets the start of the revision into the past, like a first declaration with backfill."""
        async with self.world.pool.transaction("reach_back") as tx:
            row = await services.lock_service(tx, uid)
            assert row is not None
            await tx.execute(
                "update service_revisions set governs_from = at(%(at)s) where service = %(id)s",
                at=from_,
                id=row.id,
            )
            await tx.execute(
                "update services set backfill_from = at(%(at)s) where id = %(id)s",
                at=from_,
                id=row.id,
            )
        self.revisions[uid][0] = replace(self.revisions[uid][0], governs_from=from_)

    def policies(self, **given: Any) -> Policies:
        of = self.policy
        values: dict[str, Any] = {
            "mode": of.choice(list(AggregationMode)),
            "healthy_min": of.randint(2, 3),
            "degraded_min": of.randint(1, 2),
            "region_mode": of.choice(list(RegionMode)),
            "missing_data": of.choice(list(MissingData)),
            "active_multiplier": of.choice([2, 3]),
            "active_floor_us": of.choice([90, 90, 200]) * SECOND,
        }
        return Policies(**(values | given))

    async def _know(self, row: Any) -> None:
        await super()._know(row)
        self.regions[row.uid] = await self.world.rows(
            "select t.from_at, s.region from monitor_terms t join shards s on s.id = t.shard"
            " where t.monitor = %(m)s order by t.from_at",
            m=row.id,
        )

    async def _happen(self) -> None:
        if self.declares and self.services and self.chance.random() < 0.4:
            await self.chance.choice([self._declare_anew, self._plan, self._unplan])()
        else:
            await super()._happen()
        await self.service_sealer.pass_once()
        if self.chance.random() < 0.3:
            await Repairer(self.world.pool).pass_once()

    def in_use(self) -> set[UUID]:
        declared = {m for each in self.revisions.values() for m in each[-1].monitors}
        return super().in_use() | {u for u, one in self.known.items() if one.row.id in declared}

    async def _declare_anew(self) -> None:
        await self.declare(self.chance.choice(self.services))

    async def _plan(self) -> None:
        """Announces maintenance of a monitor: in the future, current or in the past."""
        uid = self.chance.choice([u for u in self.known if u not in self.gone])
        starts = Instant(self.world.now + self.chance.randint(-90, 10) * MINUTE)
        ends = Instant(starts + self.chance.randint(1, 40) * MINUTE)
        plan = Plan(starts_at=starts, ends_at=ends, monitor=uid)
        before = await self._totals()
        async with self.world.pool.transaction("plan") as tx:
            seen = await preview_announcement(
                tx, self.world.editor, self.world.project_uid, plan, RAW_DAYS
            )
        async with self.world.pool.transaction("announce") as tx:
            row = await announce(
                tx, self.world.editor, self.world.project_uid, plan, seen.uid, RAW_DAYS
            )
        self.planned.append((uid, row.uid, (starts, ends)))
        self.known[uid].maintenance.append((starts, ends))
        await self._expect_as_shown(seen, before)

    async def _totals(self) -> dict[UUID, Durations]:
        """Returns the figures of the whole sealed time of each service, after all repairs."""
        while await Repairer(self.world.pool).pass_once():
            pass
        totals = {}
        for uid in self.services:
            row = await read_service(self.world, uid)
            start, sealed = row.materialization_start, row.sealed_through
            assert start is not None
            assert sealed is not None
            totals[uid] = (await sum_of(self.world, row, start, sealed))[1]
        return totals

    async def _expect_as_shown(
        self, seen: MaintenancePreview, before: dict[UUID, Durations]
    ) -> None:
        """The previewed change is the whole change, and no other service changes."""
        shown = {each.service: each for each in seen.services}
        for uid, after in (await self._totals()).items():
            if uid in shown:
                assert shown[uid].reason is None
                assert _less(after, before[uid]) == _less(shown[uid].after, shown[uid].before)
            else:
                assert after == before[uid]

    async def _unplan(self) -> None:
        if not self.planned:
            return
        uid, maintenance, (starts, ends) = self.planned.pop(
            self.chance.randrange(len(self.planned))
        )
        now = self.world.now
        spans = self.known[uid].maintenance
        if starts <= now < ends and self.chance.random() < 0.5:
            async with self.world.pool.transaction("end") as tx:
                await end(tx, self.world.editor, maintenance)
            spans[spans.index((starts, ends))] = (starts, now)
            return
        before = await self._totals()
        async with self.world.pool.transaction("preview") as tx:
            seen = await preview_annulment(
                tx, self.world.editor, self.world.project_uid, maintenance, RAW_DAYS
            )
        async with self.world.pool.transaction("annul") as tx:
            await annul(tx, self.world.editor, maintenance, seen.uid, RAW_DAYS)
        spans.remove((starts, ends))
        await self._expect_as_shown(seen, before)

    async def end(self) -> None:
        await super().end()
        while await self.service_sealer.pass_once():
            pass


def _less(one: Durations, other: Durations) -> dict[str, int]:
    return {name: value - asdict(other)[name] for name, value in asdict(one).items()}


async def _begin(tx: Tx, row: ServiceRow, at: Instant) -> None:
    await tx.execute(
        "update services set materialization_start = at(%(at)s), sealed_through = at(%(at)s)"
        " where id = %(id)s",
        at=at,
        id=row.id,
    )


@cache
def _by_hand(
    policies: Policies, sum_of: tuple[tuple[str, MemberState], ...]
) -> tuple[str, str | None]:
    return by_hand(policies, list(sum_of))


class ServicePainter(Painter):
    """The state of a service at an instant, computed from the specification."""

    def __init__(self, life: Served) -> None:
        super().__init__(life.known, life.world.now)
        self._life = life
        self._by_id = {one.row.id: uid for uid, one in life.known.items()}
        self._begun = {uid: one.terms[0][0] for uid, one in life.known.items()}
        self._pauses = {uid: one.pauses for uid, one in life.known.items()}

    def seen(self, uid: UUID, instant: int, hold: Hold) -> MemberState:
        known = self.at(uid, instant, hold)
        if known == UNKNOWN and instant < self._begun[uid]:
            return MemberState.NOT_BEGUN
        if known == UNKNOWN:
            return MemberState.PAUSED if within(instant, self._pauses[uid]) else MemberState.MISSING
        return {GOOD: MemberState.UP, BAD: MemberState.DOWN, EXCLUDED: MemberState.MAINTENANCE}[
            known
        ]

    def region(self, uid: UUID, instant: int) -> str:
        """Returns the region of the monitor at the last whole minute."""
        minute = instant - instant % MINUTE
        known = [name for from_, name in self._life.regions[uid] if from_ <= minute]
        return known[-1] if known else ""

    def state(self, service: UUID, instant: int) -> tuple[str, str | None]:
        governing = [r for r in self._life.revisions[service] if r.governs_from <= instant][-1]
        if not governing.sli:
            return "unknown", "unknown"
        policies = governing.policies
        hold = (policies.active_multiplier, policies.active_floor_us // SECOND)
        members = [self._by_id[member] for member in governing.sli]
        sum_of = ((self.region(uid, instant), self.seen(uid, instant, hold)) for uid in members)
        return _by_hand(policies, tuple(sum_of))

    def durations(self, service: UUID, from_: int, until: int) -> Durations:
        sums: dict[str, int] = {}
        for instant in range(from_, until, TICK):
            condition, health = self.state(service, instant)
            for name in (condition, {None: None, "unknown": "health_unknown"}.get(health, health)):
                if name is not None:
                    sums[f"{name}_us"] = sums.get(f"{name}_us", 0) + TICK
        return Durations(**sums)


async def read_service(world: World, uid: UUID) -> ServiceRow:
    async with world.pool.transaction("look", read_only=True) as tx:
        row = await services.select_service(tx, uid)
    assert row is not None
    return row


async def sum_of(world: World, row: ServiceRow, from_: int, until: int) -> tuple[int, Durations]:
    async with world.pool.transaction("sum", read_only=True) as tx:
        found = await select_sum(tx, row.key, TimeSpan(Instant(from_), Instant(until)))
    return found.minutes, found.durations


async def expect_all_as_painted(life: Served) -> None:
    world, painter = life.world, ServicePainter(life)
    for uid in life.services:
        row = await read_service(world, uid)
        start, sealed = row.materialization_start, row.sealed_through
        assert start is not None
        assert sealed is not None
        assert world.now - 5 * MINUTE < sealed <= world.now - 2 * MINUTE
        painted = {
            at: painter.durations(uid, at, at + MINUTE) for at in range(start, sealed, MINUTE)
        }
        for at, wanted in painted.items():
            assert await sum_of(world, row, at, at + MINUTE) == (1, wanted), (at - START) / MINUTE
        await _expect_windows(life, row, painted)


async def _expect_windows(life: Served, row: ServiceRow, painted: dict[int, Durations]) -> None:
    world = life.world
    start, sealed = min(painted), max(painted) + MINUTE

    def between(from_: int, until: int) -> Durations:
        return sum((painted[at] for at in range(from_, until, MINUTE)), Durations())

    async with world.pool.transaction("figures", read_only=True) as tx:
        window = await select_window(tx, row, "24h")
        lengths = [5 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR]
        burns = (await select_burns(tx, [(row, 990_000, lengths)]))[row.key]
        hours = await select_series(tx, row, Instant(START), Instant(sealed), "hour")
        assert await select_repairing(tx, row) == []
    assert window.status is ServiceReportStatus.INSUFFICIENT_HISTORY
    assert (window.from_, window.to) == (start, sealed)
    assert window.durations == between(start, sealed)
    assert window.is_continuous
    for before, after in pairwise(window.segments):
        assert before.to == after.from_
    for segment in window.segments:
        assert segment.durations == between(segment.from_, segment.to)
    for length, burn in zip(lengths, burns, strict=True):
        split = between(max(start, sealed - length), sealed).split
        measured = split.good_us + split.bad_us
        if measured and 2 * measured >= split.range_us - split.excluded_us:
            assert burn.rate == pytest.approx(split.bad_us / measured / 0.01)
        else:
            assert burn.rate is None
    for hour in {point.start for point in hours}:
        found = sum((p.durations for p in hours if p.start == hour), Durations())
        assert found == between(max(hour, start), min(hour + HOUR, sealed))
    assert sum(point.minutes for point in hours) == len(painted)


# In the last case the maintenance of a deleted member was annulled.
@pytest.mark.parametrize("seed", varied([0], range(60)))
async def test_every_figure_matches_the_model_of_the_whole_history(world: World, seed: int) -> None:
    life = Served(world, seed)
    await life.begin()
    await life.live(START + 5 * MINUTE)
    await life.serve()
    await life.live(START + MATCHED_US)
    await life.end()
    await expect_all_as_painted(life)


class Crowded(Served):
    """Several processes seal, repair and reconstruct concurrently, while late results and
    declarations arrive.
    """

    def __init__(self, world: World, seed: int) -> None:
        super().__init__(world, seed)
        self._processes = [
            *(ServiceSealer(world.pool).pass_once for _ in range(2)),
            *(Repairer(world.pool).pass_once for _ in range(2)),
            MonitorSealer(world.pool, lambda: world.now).pass_once,
        ]

    async def _happen(self) -> None:
        await super()._happen()
        async with trio.open_nursery() as nursery:
            for pass_once in self._processes:
                nursery.start_soon(pass_once)
            nursery.start_soon(self._learn_late_again)
            if self.services and self.chance.random() < 0.3:
                nursery.start_soon(self._declare_anew)

    async def _learn_late_again(self) -> None:
        for _ in range(4):
            await self._learn_late()


@pytest.mark.parametrize("seed", varied([100], range(100, 130)))
async def test_concurrent_processes_give_the_figures_of_the_model(world: World, seed: int) -> None:
    life = Crowded(world, seed)
    await life.begin()
    await life.live(START + CROWDED_FROM_US)
    await life.serve()
    await life.reach_back(life.services[0], Instant(START + 10 * MINUTE))
    await life.live(START + CROWDED_US)
    await life.end()
    assert await world.rows("select count(*) from services where backfill_from is not null") == [
        (0,)
    ]
    await expect_all_as_painted(life)


async def test_interrupted_passes_neither_repeat_nor_skip_time(
    world: World,
) -> None:
    """Each pass is interrupted at a random statement, and the next pass continues from there."""
    life = Served(world, 77)
    await life.begin()
    await life.serve(1)
    await life.live(START + 20 * MINUTE)
    chance = random.Random(7)
    broken = 0
    for _ in range(12):
        world.now = Instant(world.now + 3 * MINUTE)
        await life.ticker.pass_once()
        await life.sealer.pass_once()
        row = await read_service(world, life.services[0])
        left = chance.randint(1, 25)
        try:
            async with world.pool.transaction("seal_services") as tx:
                await seal_services(_Mortal(tx, left), [row.key])  # type: ignore[arg-type]
        except Killed:
            broken += 1
    assert broken > 6
    await life.end()
    await expect_all_as_painted(life)


class Killed(Exception):
    pass


class _Mortal:
    """A transaction that fails at its nth statement."""

    def __init__(self, tx: Tx, left: int) -> None:
        self._tx = tx
        self._left = left

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._tx, name)
        if name in ("rows", "row", "value", "structs", "one", "execute"):
            self._left -= 1
            if not self._left:
                raise Killed
        return found


async def test_backfilled_time_is_marked_as_reconstructed(world: World) -> None:
    life = Served(world, 5)
    await life.begin()
    await life.live(START + 35 * MINUTE)
    await life.serve(1)
    (uid,) = life.services
    from_ = Instant(START + 10 * MINUTE)
    await life.reach_back(uid, from_)
    first = life.revisions[uid][0]
    async with world.pool.transaction("repairing", read_only=True) as tx:
        row = await services.select_service(tx, uid)
        assert row is not None
        (repair,) = await select_repairing(tx, row)
    assert (repair.from_, repair.to, repair.reason) == (
        from_,
        first.effective_at,
        "declared_backfill",
    )
    await life.live(START + 65 * MINUTE)
    await life.end()
    await life.service_sealer.pass_once()
    row = await read_service(world, uid)
    assert (row.materialization_start, row.backfill_from) == (from_, None)
    await expect_all_as_painted(life)
    async with world.pool.transaction("window", read_only=True) as tx:
        window = await select_window(tx, row, "24h")
    assert [s.is_reconstruction for s in window.segments] == [
        s.to <= first.effective_at for s in window.segments
    ]
    assert window.segments[0].is_reconstruction


async def test_backfilled_hours_are_complete_after_minutes_are_deleted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results can be kept for longer than minutes."""
    monkeypatch.setattr(seal_services_module, "STRETCH_MOST_US", 25 * MINUTE)
    life = Served(world, 8)
    await life.begin()
    await life.live(START + 90 * MINUTE)
    life.declares = False
    await life.serve(1)
    await life.reach_back(life.services[0], Instant(START + 10 * MINUTE))
    await life.end()
    while (row := await read_service(world, life.services[0])).backfill_from is not None:
        await life.service_sealer.pass_once()
        async with world.pool.transaction("forget") as tx:
            await tx.execute(
                "delete from service_minutes where until_at <= at(%(at)s)", at=START + HOUR
            )
    async with world.pool.transaction("series", read_only=True) as tx:
        points = await select_series(tx, row, Instant(START), Instant(START + HOUR), "hour")
    assert {point.start for point in points} == {START}
    assert sum(point.minutes for point in points) == 50


async def test_a_service_without_sli_members_is_not_sealed(
    world: World,
) -> None:
    life = Served(world, 6)
    await life.begin()
    await life.serve(1)
    (uid,) = life.services
    async with world.pool.transaction("empty") as tx:
        await tx.execute("update service_revisions set sli = '{}', monitors = '{}'")
    life.declares = False
    first = life.revisions[uid][0]
    life.revisions[uid][0] = replace(first, sli=(), monitors=())
    await life.live(START + 20 * MINUTE)
    row = await read_service(world, uid)
    assert row.sealed_through == row.materialization_start == first.effective_at
    async with world.pool.transaction("window", read_only=True) as tx:
        window = await select_window(tx, row, "30d")
    assert (window.status, window.reason) == (ServiceReportStatus.UNAVAILABLE, "no_sli")
    await life.declare(uid)
    await life.live(START + 40 * MINUTE)
    await life.end()
    await expect_all_as_painted(life)


async def test_adding_a_member_does_not_move_the_watermark_back(world: World) -> None:
    life = Served(world, 9)
    await life.begin()
    await life.serve(1)
    sealed = START
    for _ in range(10):
        await life.live(world.now + 3 * MINUTE)
        late = await world.monitor(interval_seconds=60, timeout_seconds=30)
        await life._know(late)
        life.leaves.append(late.uid)
        await life.declare(life.services[0])
        await life.service_sealer.pass_once()
        row = await read_service(world, life.services[0])
        assert row.sealed_through is not None
        assert row.sealed_through >= sealed
        sealed = row.sealed_through
    assert sealed > START + 10 * MINUTE


async def test_a_window_uses_hours_and_days_after_minutes_are_deleted(
    world: World,
) -> None:
    life = Served(world, 11)
    await life.begin()
    await life.serve(1)
    row = await read_service(world, life.services[0])
    start, until = START + HOUR, START + 95 * DAY
    each = Durations(good_us=MINUTE, healthy_us=MINUTE)
    async with world.pool.transaction("long ago") as tx:
        await _begin(tx, row, Instant(start))
        numbers = await declarations.put_epochs(
            tx, {row.key: (await select_governed(tx, [row.key], Instant(until)))[row.key].epochs}
        )
        (number,) = set(numbers[row.key].values())
        await services.advance_seals(tx, {row.key: Instant(until)})
        span = TimeSpan(Instant(start), Instant(until))
        runs = joined([MinuteSpan(span.from_, span.until, number, each)])
        await service_facts.replace_minutes(tx, {row.key: span}, {row.key: runs})
        await service_facts.put_sums(tx, {row.key: span}, {row.key: Instant(until)})
    row = await read_service(world, row.uid)
    async with world.pool.transaction("forget") as tx:
        assert await service_facts.delete_minutes(tx, 1) == 94
        window = await select_window(tx, row, "90d")
    assert window.is_continuous
    assert window.durations == each.times(90 * 24 * 60)
    async with world.pool.transaction("gone") as tx:
        await tx.execute("delete from services")
    for table in ("service_minutes", "service_hours", "service_days"):
        assert await world.rows(f"select count(*) from {table}") == [(0,)]


async def test_a_late_result_stays_fresh_into_the_next_hour(
    world: World,
) -> None:
    life = await _of_one_member(world, active_floor_us=20 * MINUTE)
    (leaf,) = life.leaves
    await _results(life, leaf, (50, True), (100, True))
    await _results(life, leaf, (55, False))
    while await Repairer(world.pool).pass_once():
        pass
    row = await read_service(world, life.services[0])
    _, durations = await sum_of(world, row, START + HOUR, START + HOUR + 15 * MINUTE)
    assert durations.bad_us == 15 * MINUTE
    await expect_all_as_painted(life)


async def test_a_result_before_maintenance_does_not_apply_after_it(
    world: World,
) -> None:
    life = await _of_one_member(world, active_floor_us=20 * MINUTE)
    (leaf,) = life.leaves
    await _results(life, leaf, (50, True), (100, True))
    plan = Plan(
        starts_at=Instant(START + 52 * MINUTE), ends_at=Instant(START + 58 * MINUTE), monitor=leaf
    )
    async with world.pool.transaction("preview") as tx:
        seen = await preview_announcement(tx, world.editor, world.project_uid, plan, RAW_DAYS)
    async with world.pool.transaction("announce") as tx:
        await announce(tx, world.editor, world.project_uid, plan, seen.uid, RAW_DAYS)
    life.known[leaf].maintenance.append((plan.starts_at, plan.ends_at))
    while await Repairer(world.pool).pass_once():
        pass
    row = await read_service(world, life.services[0])
    _, durations = await sum_of(world, row, START + HOUR, START + HOUR + 10 * MINUTE)
    assert durations.unknown_us == 10 * MINUTE
    await expect_all_as_painted(life)


async def _pack_first_days(life: Served) -> None:
    """Packs all days before the fourth one, as if every sealer was up to date."""
    world = life.world
    world.now = Instant(START + 4 * DAY)
    async with world.pool.transaction("seal") as tx:
        await tx.execute("delete from run_batches")
        await tx.execute(
            "update shards set sealed_through = at(%(t)s), settled_through = at(%(t)s),"
            " reserved_through = at(%(t)s)",
            t=world.now,
        )
    outcome = None
    while outcome is not PackOutcome.NOTHING:
        async with world.pool.transaction("pack") as tx:
            outcome = (await pack_some(tx, [START], 100)).outcome


@pytest.mark.parametrize("packs_first", [True, False])
async def test_a_late_result_keeps_the_part_of_a_deleted_member_in_a_packed_day(
    world: World, packs_first: bool
) -> None:
    life = await _of_members(world, 2, active_floor_us=20 * MINUTE)
    (uid,) = life.services
    stays, leaves = life.leaves
    for minute in range(5, 60, 5):
        await _results(life, leaves, (minute, minute < 30))
        await _results(life, stays, (minute, True))
    life.gone.add(leaves)
    await life.declare(uid)
    await _results(life, stays, (70, True), (80, True))
    if packs_first:
        await _pack_first_days(life)
    async with world.pool.transaction("delete") as tx:
        await delete_monitor(tx, world.editor, leaves)
    if not packs_first:
        await _pack_first_days(life)
    row = await read_service(world, uid)
    minutes = range(START + 5 * MINUTE, START + HOUR, MINUTE)
    before = [await sum_of(world, row, at, at + MINUTE) for at in minutes]
    assert sum((each.good_us for _, each in before), 0) > 0
    assert sum((each.bad_us for _, each in before), 0) > 0
    late = world.result(life.known[stays].row, Instant(START + 27 * MINUTE), True)
    async with world.pool.transaction("record") as tx:
        (answer,), _ = await record_results(tx, [late], patient=False)
    assert answer.fate is StoreOutcome.HISTORY
    assert await Repairer(world.pool).pass_once()
    while await Repairer(world.pool).pass_once():
        pass
    assert [await sum_of(world, row, at, at + MINUTE) for at in minutes] == before
    for packed in ("packed_heartbeats", "packed_runs"):
        assert len(await world.rows(f"select distinct monitor from {packed}")) == 2
    async with world.pool.transaction("forget") as tx:
        gone = await compositions.forget(tx, Instant(world.now + 1), 10)
        assert gone == [life.known[leaves].row.key]
        await packing.delete_pieces_of(tx, gone)
    for packed in ("packed_heartbeats", "packed_runs"):
        assert await world.rows(f"select distinct monitor from {packed}") == [
            (life.known[stays].row.id,)
        ]


async def test_a_process_with_a_late_clock_uses_the_governing_revision(
    world: World,
) -> None:
    life = await _of_one_member(world)
    (leaf,) = life.leaves
    await _results(life, leaf, *((minute, True) for minute in range(5, 60, 5)))
    (uid,) = life.services
    await life.declare(uid, missing_data=MissingData.BAD)
    late, began = world.now, life.revisions[uid][-1].governs_from
    await _results(life, leaf, (200, True))
    # Another process has sealed up to this instant; the clock of this one is still before the new
    # revision.
    async with world.pool.transaction("not yet") as tx:
        row = await services.lock_service(tx, uid)
        assert row is not None
        await services.advance_seals(tx, {row.key: began})
        await service_facts.replace_minutes(
            tx, {row.key: TimeSpan(began, Instant(began + DAY))}, {row.key: []}
        )
    ahead, world.now = world.now, late
    await ServiceSealer(world.pool).pass_once()
    world.now = ahead
    await ServiceSealer(world.pool).pass_once()
    await expect_all_as_painted(life)
    world.now = late
    again = RepairRequest(*_place(life, leaf), began, Instant(began + HOUR), "late_result")
    async with world.pool.transaction("late") as tx:
        await insert_repairs(tx, [again])
    assert await Repairer(world.pool).pass_once()
    world.now = ahead
    await expect_all_as_painted(life)


def _place(life: Served, uid: UUID) -> tuple[int, int, int]:
    row = life.known[uid].row
    return row.org, row.shard, row.id


async def test_an_hour_that_ends_during_a_read_is_counted_once(world: World) -> None:
    life = Served(world, 3)
    await life.begin()
    life.declares = False
    await life.serve(1)
    await life.live(START + 50 * MINUTE)
    await life.end()
    read = await read_service(world, life.services[0])
    await life.live(START + 80 * MINUTE)
    await life.end()
    async with world.pool.transaction("series", read_only=True) as tx:
        points = await select_series(tx, read, Instant(START), Instant(START + DAY), "hour")
    assert read.materialization_start is not None
    assert read.sealed_through is not None
    told_minutes = sum(point.minutes for point in points)
    assert told_minutes == (read.sealed_through - read.materialization_start) // MINUTE


async def test_every_hour_under_repair_is_marked(world: World) -> None:
    life = await _of_one_member(world)
    (leaf,) = life.leaves
    await _results(life, leaf, *((minute, True) for minute in range(5, 200, 5)))
    row = life.known[leaf].row
    late = [
        RepairRequest(row.org, row.shard, row.id, Instant(START + at), Instant(START + at + SECOND))
        for at in (*(HOUR + n * SECOND for n in range(150)), 2 * HOUR)
    ]
    async with world.pool.transaction("late") as tx:
        await insert_repairs(tx, late)
        service = await services.select_service(tx, life.services[0])
        assert service is not None
        points = await select_series(tx, service, Instant(START), Instant(START + DAY), "hour")
        assert len(await select_repairing(tx, service)) == 100
    assert [point.provisional for point in points] == [False, True, True, True]


_NUMBERED = (("service_epochs", "seq"), ("service_minutes", "epoch"), ("service_hours", "epoch"))


async def test_epochs_written_out_of_order_are_read_in_order(world: World) -> None:
    """The transaction of an edit commits after a later declaration."""
    life = await _of_one_member(world)
    (leaf,) = life.leaves
    await _results(life, leaf, *((minute, True) for minute in range(5, 60, 5)))
    await life._edit(leaf, interval_seconds=120)
    await _results(life, leaf, *((minute, True) for minute in range(61, 120, 5)))
    async with world.pool.transaction("swap") as tx:
        for table, name in _NUMBERED:
            await tx.execute(f"update {table} set {name} = {name} + 100")
        rows = await tx.rows("select seq from service_epochs order by effective_at")
        for n, (seq,) in enumerate(reversed(rows)):
            for table, name in _NUMBERED:
                await tx.execute(
                    f"update {table} set {name} = %(to)s where {name} = %(seq)s", to=n, seq=seq
                )
    await expect_all_as_painted(life)


async def _of_one_member(world: World, **policies: Any) -> Served:
    return await _of_members(world, 1, **policies)


async def _of_members(world: World, count: int, **policies: Any) -> Served:
    life = Served(world, 1)
    for _ in range(count):
        row = await world.monitor(interval_seconds=60)
        await life._know(row)
        life.leaves.append(row.uid)
    await life.serve(0)
    life.declares = False
    await life.serve(1)
    (uid,) = life.services
    wanted = {"missing_data": MissingData.UNKNOWN, "mode": AggregationMode.ALL, **policies}
    await life.declare(uid, count, **wanted)
    return life


async def _results(life: Served, uid: UUID, *results: tuple[int, bool]) -> None:
    """Records the results, in minutes after the start, and then seals everything that can be
    sealed.
    """
    world = life.world
    for minute, up in results:
        world.now = Instant(max(world.now, START + minute * MINUTE))
        await life.ticker.pass_once()
        arrival = world.result(life.known[uid].row, Instant(START + minute * MINUTE), up)
        async with world.pool.transaction("record") as tx:
            await record_results(tx, [arrival], patient=False)
        life.known[uid].results[START + minute * MINUTE] = up
    await life.end()
