"""Late results of agents at the bounds of retention, on the partitions that the janitor keeps."""

from collections.abc import AsyncIterator
from itertools import product
from typing import Any, cast

import pytest
import trio

from leadline.daemon.loops.janitor import Janitor
from leadline.daemon.loops.result_recorder import Recorder
from leadline.http.agents.routes import agent as agent_route
from leadline.http.auth.passwords import Passwords
from leadline.storage.core.instant import DAY, MINUTE, SECOND, Instant, to_text
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.scheduling.tables import shards
from tests.support.app.edge import Edge, open_edge, result
from tests.support.run.effort import varied
from tests.support.worlds.local_failures import FlakyPool

HEARTBEAT_DAYS = 30
TOO_OLD = "ts: is older than the results that are kept (30 days)"


@pytest.fixture
async def edge(dsn: str, passwords: Passwords) -> AsyncIterator[Edge]:
    async with open_edge(dsn, passwords) as made:
        async with made.api.pool.transaction("drop_partition") as tx:
            for parent in ("heartbeats", "expected_runs"):
                await tx.execute(f"drop table {parent}_all")
        yield made


class Installation:
    """Days of an installation whose janitor and sealer are up to date."""

    def __init__(self, edge: Edge, *, ledger_days: int = 14) -> None:
        self.edge = edge
        self.janitor = Janitor(
            edge.api.pool,
            edge.clock,
            heartbeat_days=HEARTBEAT_DAYS,
            ledger_days=ledger_days,
            gate_days=90,
        )

    async def live(self, days: int) -> None:
        for _ in range(days):
            self.edge.clock.now = Instant(self.edge.clock.now + DAY)
            async with self.edge.api.pool.transaction("seal") as tx:
                await tx.execute(
                    "update shards set sealed_through = at(%(now)s),"
                    " settled_through = at(%(now)s), rolled_up_through = at(%(now)s)",
                    now=self.edge.clock.now,
                )
            await self.janitor.pass_once()

    async def first_window(self, row: MonitorRow, days_ago: int) -> Instant:
        """The first window within that many days."""
        async with self.edge.api.pool.transaction("terms", read_only=True) as tx:
            (term,) = (await shards.select_terms_of(tx, [row.key]))[row.key]
        since = Instant(self.edge.clock.now - days_ago * DAY)
        return Instant(since + (term.anchor - since) % term.interval_us)

    async def bring(self, row: MonitorRow, *dues: Instant, route: str = "backfill") -> Any:
        return await self.edge.bring(*(result(row, due) for due in dues), route=route)


@pytest.mark.parametrize(
    ("ledger_days", "route"),
    varied([(14, "results"), (4, "backfill")], product([4, 14, 90], ["results", "backfill"])),
)
async def test_one_bound_decides_whether_a_late_result_is_stored(
    edge: Edge, ledger_days: int, route: str
) -> None:
    home = Installation(edge, ledger_days=ledger_days)
    await home.janitor.make_room()
    row = await edge.monitor()
    await home.live(34)
    dues = [await home.first_window(row, days) for days in (13, 15, 29, 31)]
    assert await home.bring(row, *dues, route=route) == {
        "accepted": 3,
        "duplicate": 0,
        "ignored": 0,
        "refused": [{"index": 3, "reason": TOO_OLD}],
    }
    stored = sorted(dues[:3])
    assert await edge.ledger(row) == [(due, "covered_late") for due in stored]
    assert [ts for ts, _, _ in await edge.beats(row)] == stored
    again = await home.bring(row, *dues[:3], route=route)
    assert again == {"accepted": 0, "duplicate": 3, "ignored": 0}


async def test_the_size_limit_leaves_room_for_the_results_that_a_repair_reads(edge: Edge) -> None:
    home = Installation(edge)
    await home.janitor.make_room()
    row = await edge.monitor()
    await home.live(34)
    first = await home.first_window(row, HEARTBEAT_DAYS)
    # A result of a minutely monitor applies for three minutes.
    dues = [Instant(first + minutes * MINUTE) for minutes in range(6)]
    found = await home.bring(row, *dues)
    assert [item["index"] for item in found["refused"]] == [0, 1, 2]
    assert found["accepted"] == 3


async def test_a_ledger_that_was_kept_for_fewer_days_is_extended(edge: Edge) -> None:
    home = Installation(edge)
    await home.janitor.make_room()
    row = await edge.monitor()
    await home.live(34)
    # As an earlier version left it.
    async with edge.api.pool.transaction("drop old") as tx:
        for (name,) in await tx.rows(
            "select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid"
            " where i.inhparent = 'expected_runs'::regclass"
        ):
            if name < f"expected_runs_{to_text(Instant(tx.now - 14 * DAY))[:10].replace('-', '')}":
                await tx.execute(f"drop table {name}")
    await home.janitor.make_room()
    assert (await home.bring(row, await home.first_window(row, 29)))["accepted"] == 1


async def test_a_result_that_has_no_partition_is_refused_alone_with_a_reason(edge: Edge) -> None:
    home = Installation(edge)
    await home.janitor.make_room()
    row = await edge.monitor()
    await home.live(34)
    dues = [await home.first_window(row, days) for days in (2, 20, 3)]
    async with edge.api.pool.transaction("lose one") as tx:
        day = to_text(dues[1])[:10].replace("-", "")
        await tx.execute(f"drop table expected_runs_{day}")
    assert await home.bring(row, *dues) == {
        "accepted": 2,
        "duplicate": 0,
        "ignored": 0,
        "refused": [{"index": 1, "reason": "cannot be stored at its instant"}],
    }


async def test_a_batch_beyond_its_time_limit_is_500_and_stored_once_on_repetition(
    edge: Edge, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await Installation(edge).janitor.make_room()
    row = await edge.monitor()
    due = await edge.due(row)
    monkeypatch.setattr(agent_route, "CONNECTION_SECONDS", 0.05)
    recorder = cast("Recorder", edge.api.context.recorder)
    flaky = FlakyPool(edge.api.pool)
    monkeypatch.setattr(recorder, "_pool", flaky)
    flaky.fail_before.add("record_results")
    with trio.fail_after(30):
        assert await edge.bring(result(row, due), status=500) == {"error": "internal_error"}
        flaky.fail_before.clear()
        monkeypatch.setattr(agent_route, "CONNECTION_SECONDS", 30.0)
        assert "database failure during a request" in caplog.text
        again = await edge.bring(result(row, due))
        # The first batch is stored too; of the two, the later one is the duplicate.
        assert again["accepted"] + again["duplicate"] == 1
        third = await edge.bring(result(row, due))
    assert third == {"accepted": 0, "duplicate": 1, "ignored": 0}
    assert await edge.beats(row) == [(due, True, None)]


async def test_an_instant_ahead_of_the_server_is_refused_alone(edge: Edge) -> None:
    home = Installation(edge)
    await home.janitor.make_room()
    row = await edge.monitor()
    due = await edge.due(row)
    ahead = result(row, due, ts=to_text(Instant(edge.clock.now + 61 * SECOND)))
    assert await edge.bring(ahead, result(row, due)) == {
        "accepted": 1,
        "duplicate": 0,
        "ignored": 0,
        "refused": [{"index": 0, "reason": "ts: is over 60 s ahead of the server's time"}],
    }
