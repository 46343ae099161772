"""Results whose rows contain the verdict of their window: one verdict for a window, the same
answers as with two rows, and only while every process reads them."""

import random
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
import trio
from uuid_utils.compat import uuid7

from leadline.daemon.loops.janitor import Janitor
from leadline.daemon.loops.result_recorder import Recorder
from leadline.daemon.loops.schedule_ticker import Ticker
from leadline.storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.engine.pools import Tx
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.results.event_bus import Bus
from leadline.storage.results.queries.results import select_ledger
from leadline.storage.results.rules.incoming_result import SHARED_WITHIN_US, IncomingResult
from leadline.storage.results.tables import sealing as seals
from leadline.storage.results.tables.packed_results import pack_results
from leadline.storage.results.transactions.record_results import record_results
from leadline.storage.results.transactions.record_steady import copy_steady, record_steady
from leadline.storage.results.transactions.seal_windows import seal_windows
from leadline.storage.scheduling.tables import presences, work_queues
from tests.bench.rates.checks import LATE_MS
from tests.support.worlds.blocked import until_blocked
from tests.support.worlds.world import START, World

Write = Callable[[Tx, MonitorRow, IncomingResult], Awaitable[object]]
TIMEOUT = 10 * SECOND


async def copied(tx: Tx, row: MonitorRow, arrival: IncomingResult) -> object:
    return await copy_steady(tx, [msgspec.structs.replace(arrival, shares_row=True)])


async def stated(tx: Tx, row: MonitorRow, arrival: IncomingResult) -> object:
    return await record_steady(tx, [msgspec.structs.replace(arrival, shares_row=True)])


async def copied_apart(tx: Tx, row: MonitorRow, arrival: IncomingResult) -> object:
    return await copy_steady(tx, [arrival])


async def stated_apart(tx: Tx, row: MonitorRow, arrival: IncomingResult) -> object:
    return await record_steady(tx, [arrival])


async def locked(tx: Tx, row: MonitorRow, arrival: IncomingResult) -> object:
    return await record_results(tx, [msgspec.structs.replace(arrival, version=0)])


async def sealed(tx: Tx, row: MonitorRow, arrival: IncomingResult) -> object:
    return await seal_windows(tx, row.shard, tx.now, 0)


async def old_sealed(tx: Tx, row: MonitorRow, arrival: IncomingResult) -> object:
    """The statement of a sealer that reads only `expected_runs`."""
    return await tx.execute(
        "insert into expected_runs (org, monitor, due_at, settled_at, verdict, reason)"
        " values (%(org)s, %(m)s, at(%(due)s), at(%(now)s), 'missed', 'never_finished')"
        " on conflict do nothing",
        org=row.org,
        m=row.id,
        due=arrival.dues[0],
        now=tx.now,
    )


async def old_stated(tx: Tx, row: MonitorRow, arrival: IncomingResult) -> object:
    """The statement of a recorder that locks the state FOR KEY SHARE and stores two rows."""
    return await tx.execute(
        "with held as materialized (select org, monitor from monitor_states"
        " where org = %(org)s and monitor = %(m)s for key share), ran as ("
        " insert into expected_runs (org, monitor, due_at, settled_at, verdict)"
        " select org, monitor, at(%(due)s), at(%(now)s), 'covered' from held)"
        " insert into heartbeats (org, monitor, ts, latency_ms, up)"
        " select org, monitor, at(%(ts)s), 1, true from held",
        org=row.org,
        m=row.id,
        due=arrival.dues[0],
        ts=arrival.ts,
        now=tx.now,
    )


SHARING = (copied, stated)
OTHERS = (copied_apart, stated_apart, locked, sealed, old_sealed, old_stated)
PAIRS = [(one, other) for one in SHARING for other in SHARING]
PAIRS += [pair for one in SHARING for other in OTHERS for pair in ((one, other), (other, one))]


async def reserved(world: World) -> tuple[MonitorRow, Instant]:
    """Returns a monitor and its first window, which a sealer settles now if it has no verdict.

    A result that began in time is live for the fence.
    """
    row = await world.monitor(interval_seconds=60, timeout_seconds=TIMEOUT // SECOND)
    world.now = Instant(START + 2 * MINUTE)
    await Ticker(world.pool, lambda: world.now).pass_once()
    ((due,),) = await world.rows(
        "select min(w.due) from run_batches s cross join unnest(s.monitors, s.due_ats)"
        " as w(monitor, due) where w.monitor = %(m)s",
        m=row.id,
    )
    world.now = Instant(due + TIMEOUT + 2 * MINUTE)
    await Ticker(world.pool, lambda: world.now).pass_once()
    async with world.pool.transaction("fence") as tx:
        assert await seals.advance_fence(tx, row.shard, world.now) == world.now
    return row, due


@pytest.mark.parametrize(
    ("first", "second"), PAIRS, ids=[f"{a.__name__}-{b.__name__}" for a, b in PAIRS]
)
async def test_two_writers_at_once_leave_one_verdict(
    world: World, first: Write, second: Write
) -> None:
    row, due = await reserved(world)
    arrivals = [
        world.result(row, Instant(due + n * SECOND), True, dues=(due,), windowed=True, version=1)
        for n in (1, 2)
    ]
    outcomes: list[object] = []

    async def write_second() -> None:
        async with world.pool.transaction("second") as tx:
            outcomes.append(await second(tx, row, arrivals[1]))

    async with trio.open_nursery() as nursery:
        async with world.pool.transaction("first") as tx:
            outcomes.append(await first(tx, row, arrivals[0]))
            if second is sealed:
                # A sealer leaves the window out, because the state is locked.
                async with trio.open_nursery() as beside:
                    beside.start_soon(write_second)
            else:
                nursery.start_soon(write_second)
                await until_blocked(world.pool)
    # A result that the short way leaves takes the locked one, as in the recorder.
    for outcome, arrival in zip(outcomes, arrivals, strict=True):
        if outcome == [False]:
            async with world.pool.transaction("left") as tx:
                await locked(tx, row, arrival)
    seals_first = first in (sealed, old_sealed)
    verdict = "covered_late" if seals_first else "covered"
    assert [(at, said) for at, said, _ in await world.ledger(row)] == [(due, verdict)]
    beats = [ts for ts, _, _ in await world.beats(row)]
    if second is old_stated:
        # A process of an earlier version keeps its result, as a run besides the schedule.
        assert beats == [due + SECOND, due + 2 * SECOND]
    else:
        assert beats == [due + (2 if seals_first else 1) * SECOND]
    await expect_settled(world, row, due)


_BATCHES = "select id from run_batches where at(%(due)s) = any(due_ats)"


async def expect_settled(world: World, row: MonitorRow, due: Instant) -> None:
    """Expects one row of the window in the list of the ledger, and that no claim repeats it."""
    batches = [n for (n,) in await world.rows(_BATCHES, due=due)]
    async with world.pool.transaction("look", read_only=True) as tx:
        listed = await select_ledger(tx, row.key, due, Instant(due + 1), None, 9)
        assert len(listed) == 1
        assert listed[0].verdict != "reserved"
        settled = await work_queues.select_settled(tx, batches)
        assert ((*row.key, due) in settled) is bool(batches)


def windows(rng: random.Random, count: int) -> list[tuple[int, int | None, int, str, str | None]]:
    """Returns (due, distance of the result, settled, verdict, reason), at the ends of days too."""
    starts = [START, START + DAY - 30 * SECOND, START + DAY, START + 2 * DAY - MINUTE]
    dues = sorted(
        {
            start + n * rng.choice([SECOND, 10 * SECOND, MINUTE])
            for start in starts
            for n in range(count)
        }
    )
    found: list[tuple[int, int | None, int, str, str | None]] = []
    used = set[int]()
    for due in dues:
        verdict, reason = rng.choice(
            [("covered", None)] * 6
            + [("covered_late", None), ("missed", "never_claimed"), ("withheld", "maintenance")]
        )
        bounds = [SHARED_WITHIN_US, SHARED_WITHIN_US + 1]
        away = rng.choice([0, 1, 300_000, SECOND, *bounds, 5 * MINUTE])
        has_result = verdict.startswith("covered") and due + away not in used
        if verdict.startswith("covered") and not has_result:
            continue
        used.add(due + away)
        settled = due + rng.choice([0, away + 50_000, HOUR, 2 * DAY])
        found.append((due, away if has_result else None, settled, verdict, reason))
    return found


async def store(
    tx: Tx,
    row: MonitorRow,
    found: list[tuple[int, int | None, int, str, str | None]],
    shares: Callable[[int], bool],
) -> int:
    """Stores windows, those that `shares` chooses in the row of their result if possible."""
    shared = 0
    key = {"org": row.org, "m": row.id}
    for n, (due, away, settled, verdict, reason) in enumerate(found):
        fits = (
            away is not None
            and verdict == "covered"
            and away <= SHARED_WITHIN_US
            and abs(settled - due - away) < 1 << 31
            and shares(n)
        )
        shared += fits
        if away is not None:
            await tx.execute(
                "insert into heartbeats (org, monitor, ts, latency_ms, up, after_due_us,"
                " settled_after_us) values (%(org)s, %(m)s, at(%(ts)s), 7, true, %(a)s, %(s)s)",
                ts=due + away,
                a=away if fits else None,
                s=settled - due - away if fits else None,
                **key,
            )
        if not fits:
            await tx.execute(
                "insert into expected_runs (org, monitor, due_at, settled_at, verdict, reason)"
                " values (%(org)s, %(m)s, at(%(due)s), at(%(settled)s), %(v)s, %(r)s)",
                due=due,
                settled=settled,
                v=verdict,
                r=reason,
                **key,
            )
    return shared


async def answers(tx: Tx, row: MonitorRow, spans: list[TimeSpan]) -> list[Any]:
    found: list[Any] = []
    for span in spans:
        for verdicts in (None, ["covered"], ["missed", "covered_late"]):
            for most in (3, 1_000):
                found.append(
                    await select_ledger(tx, row.key, span.from_, span.until, verdicts, most)
                )
        found.append(
            await tx.rows(
                "select due_at, settled_at, verdict::text, reason"
                " from runs_in(%(org)s::int, %(m)s::int, at(%(a)s), at(%(b)s)) order by 1",
                org=row.org,
                m=row.id,
                a=span.from_,
                b=span.until,
            )
        )
    return found


@pytest.mark.parametrize("seed", range(4))
async def test_mixed_forms_give_the_answers_and_pieces_of_two_rows(world: World, seed: int) -> None:
    rng = random.Random(seed)
    rows = [await world.monitor() for _ in range(3)]
    found = windows(rng, 40)
    edges = [*(due for due, *_ in found), START + DAY, START + 2 * DAY]
    spans = [TimeSpan(START, Instant(START + DAY)), TimeSpan(START, Instant(START + 9 * DAY))]
    spans += [
        TimeSpan(Instant(a), Instant(a + rng.choice([1, MINUTE, HOUR])))
        for a in rng.sample(edges, 8)
    ]
    async with world.pool.transaction("store") as tx:
        choices: list[Callable[[int], bool]] = [
            lambda n: False,
            lambda n: True,
            lambda n: n % 3 > 0,
        ]
        shared = [await store(tx, row, found, of) for row, of in zip(rows, choices, strict=True)]
        assert shared[0] == 0 < shared[2] < shared[1]
        before = [await answers(tx, row, spans) for row in rows]
        assert before[1] == before[0] == before[2]
        for due, *_ in found:
            for row in rows:
                assert await tx.value(
                    "select is_settled(%(org)s::int, %(m)s::int, at(%(due)s)) and not"
                    " is_settled(%(org)s::int, %(m)s::int, at(%(due)s) + interval '3 us')",
                    org=row.org,
                    m=row.id,
                    due=due,
                )
        for day in range(3):
            start = Instant(START + day * DAY)
            keys = [row.key for row in rows]
            await pack_results(tx, keys, TimeSpan(start, Instant(start + DAY)))
        for packed in ("packed_runs", "packed_heartbeats"):
            pieces = [
                await tx.rows(
                    f"select (to_jsonb(p) - 'monitor' - 'checksum')::text from {packed} p"
                    " where monitor = %(m)s order by from_at",
                    m=row.id,
                )
                for row in rows
            ]
            assert pieces[1] == pieces[0] == pieces[2]
            assert len(pieces[0]) >= 2
        await tx.execute("update packing set packed_through = at(%(t)s)", t=START + 2 * DAY)
        assert [await answers(tx, row, spans) for row in rows] == before


async def test_a_row_contains_a_verdict_only_within_the_bounds(world: World) -> None:
    row = await world.monitor()
    at = Instant(START + MINUTE)
    arrival = world.result(row, at, True, dues=(START,), windowed=True)
    bounds: list[tuple[dict[str, Any], bool]] = [
        ({}, True),
        ({"ts": START}, True),
        ({"ts": Instant(at + 1)}, False),
        ({"ts": Instant(START - 1)}, False),
        ({"late": True}, False),
        ({"windowed": False}, False),
    ]
    for changed, fits in bounds:
        assert msgspec.structs.replace(arrival, **changed).can_share_row(at) is fits, changed
    for settled, fits in [(2**31 - 1, True), (2**31, False), (-(2**31), False)]:
        assert arrival.can_share_row(Instant(at + settled)) is fits


async def test_the_delay_of_a_run_is_that_of_either_form(world: World) -> None:
    row, other = await world.monitor(), await world.monitor()
    found: list[tuple[int, int | None, int, str, str | None]] = [
        (START + n * MINUTE, away, START + n * MINUTE + away, "covered", None)
        for n, away in enumerate([0, 5_000, 40 * SECOND, 7_000])
    ]
    delays = f"select ({LATE_MS})::float8 from heartbeats h where monitor = %(m)s order by ts"
    async with world.pool.transaction("store") as tx:
        assert await store(tx, row, found, lambda n: n % 2 == 0) == 2
        assert await store(tx, other, found, lambda n: False) == 0
    for each in (row, other):
        assert await world.rows(delays, m=each.id) == [(0,), (5,), (40_000,), (7,)]


async def begin(world: World, *, knows: bool) -> tuple[Any, Instant]:
    process, since = uuid7(), world.now
    async with world.pool.transaction("begin") as tx:
        await presences.begin_presence(
            tx, process, since, "host", ["all"], ["core"], "0", accepts_pushes=True
        )
        if not knows:
            await tx.execute("update presences set knows = '{}' where process = %(p)s", p=process)
    return process, since


async def test_rows_are_shared_when_no_earlier_version_can_be_present(world: World) -> None:
    world.now = START
    row = await world.monitor()
    recorder = Recorder(world.pool, Bus(), lambda: world.now)
    apart = Recorder(world.pool, Bus(), lambda: world.now, may_share=False)
    old, since = await begin(world, knows=False)
    await begin(world, knows=True)
    shared = "select count(*) from heartbeats where after_due_us is not null"

    async def record(n: int, by: Recorder) -> int:
        due = Instant(START + n * MINUTE)
        world.now = Instant(due + SECOND)
        arrival = world.result(row, world.now, True, dues=(due,), windowed=True)
        with trio.fail_after(30):
            await by.record(arrival)
        ((count,),) = await world.rows(shared)
        return int(count)

    async with trio.open_nursery() as nursery:
        for each in (recorder, apart):
            await nursery.start(each.run)
        # The first result changes the state.
        assert [await record(n, recorder) for n in range(9)] == [0] * 9
        async with world.pool.transaction("end") as tx:
            await presences.end_presence(tx, old, since, world.now)
        assert [await record(n, recorder) for n in range(10, 13)] == [1, 2, 3]
        assert [await record(n, apart) for n in range(13, 15)] == [3, 3]
        # Once none is left, the answer stays.
        world.now = Instant(START + 20 * MINUTE)
        await begin(world, knows=False)
        assert await record(21, recorder) == 4
        # A killed process is waited for.
        other = Recorder(world.pool, Bus(), lambda: world.now)
        await nursery.start(other.run)
        assert [await record(n, other) for n in (25, 26, 31, 32)] == [4, 4, 5, 6]
        nursery.cancel_scope.cancel()
    assert len(await world.ledger(row)) == len(await world.beats(row))


async def test_verdicts_in_results_are_kept_as_long_as_the_ledger(world: World) -> None:
    async with world.pool.transaction("days") as tx:
        for parent in ("heartbeats", "expected_runs"):
            await tx.execute(f"alter table {parent} detach partition {parent}_all")
    world.now = START
    row = await world.monitor()
    janitor = Janitor(world.pool, lambda: world.now, heartbeat_days=4, ledger_days=8, gate_days=90)
    await janitor.make_room()
    async with world.pool.transaction("store") as tx:
        given = (START, 1, START + SECOND, "covered", None)
        assert await store(tx, row, [given], lambda n: True) == 1

    async def left(days: int) -> tuple[int, int]:
        world.now = Instant(START + days * DAY)
        async with world.pool.transaction("settle") as tx:
            await tx.execute(
                "update shards set sealed_through = at(%(t)s), settled_through = at(%(t)s),"
                " rolled_up_through = at(%(t)s)",
                t=world.now,
            )
        await janitor.pass_once()
        return len(await world.ledger(row)), len(await world.beats(row))

    assert [await left(days) for days in (3, 6, 8, 10)] == [(1, 1), (1, 1), (1, 1), (0, 0)]
    async with world.pool.transaction("store") as tx:
        due = Instant(START + 10 * DAY)
        await store(tx, row, [(due, 1, due + SECOND, "covered", None)], lambda n: False)
    assert [await left(days) for days in (13, 16, 20)] == [(1, 1), (1, 0), (0, 0)]
