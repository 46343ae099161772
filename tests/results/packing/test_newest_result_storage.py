"""The newest result of a monitor is the first of an ordered scan of its results, and the failures
since the last success are the rows before it."""

from collections.abc import Sequence
from itertools import takewhile
from random import Random
from typing import Any

import pytest

from leadline.storage.core.instant import DAY, SECOND, Instant
from leadline.storage.engine.partitions import make_partitions
from leadline.storage.monitors.queries import monitors
from tests.support.run.effort import varied
from tests.support.worlds.world import START, World

RESULTS = 50

_MANY = """
insert into heartbeats (org, monitor, ts, latency_ms, code, up)
select m.org, m.id, at(%(from)s) + n * interval '1 minute', n, 200, true
from monitors m, generate_series(1, %(count)s) n
"""
_NEWEST = """
select h.ts, h.latency_ms from monitors m
  cross join lateral newest_heartbeat(m.org, m.id, at(%(now)s) + interval '1 day') h
"""
_ONE_BY_ONE = """
insert into heartbeats (org, monitor, ts, latency_ms, code, up)
select %(org)s, %(monitor)s, at(%(from)s) + u.n * interval '1 second', 1, 200, u.up
from unnest(%(ups)s::bool[]) with ordinality as u(up, n)
"""
_RUN = "select failures, first_at from failure_run(%(org)s::int, %(monitor)s::int)"
MOST_FAILURES = 1_000


async def test_the_newest_results_are_read_without_the_older_ones(world: World) -> None:
    rows = [await world.monitor() for _ in range(20)]
    async with world.pool.transaction("divide") as tx:
        await tx.execute("drop table heartbeats_all")
    days = {"from_": Instant(START - DAY), "through": Instant(START + 7 * DAY)}
    await make_partitions(world.pool, "heartbeats", "ts", **days)
    async with world.pool.transaction("fill") as tx:
        await tx.execute(_MANY.replace("%(from)s", str(START)), count=RESULTS)
        await tx.execute("analyze")
        newest = await tx.rows(_NEWEST, now=START)
        assert [latency for _, latency in newest] == [RESULTS] * len(rows)
        # A bound in the past excludes the newest results.
        half = START + 25 * 60 * SECOND - 24 * 3_600 * SECOND
        assert {row[1] for row in await tx.rows(_NEWEST, now=half)} == {24}
        statement = f"explain (analyze, format json) {monitors._COUNTED}"
        keys = {"orgs": [row.org for row in rows], "monitors": [row.id for row in rows]}
        (plan,) = await tx.row(statement, **keys, now=START) or ()
    assert results_read(plan[0]["Plan"]) == len(rows)


def results_read(node: dict[str, Any]) -> int:
    """Returns the rows that the plan reads from partitions of results."""
    is_scan = node.get("Relation Name", "").startswith("heartbeats")
    own = round(node["Actual Rows"] * node["Actual Loops"]) if is_scan else 0
    return own + sum(results_read(part) for part in node.get("Plans", []))


@pytest.mark.parametrize("seed", varied(range(3), range(40)))
async def test_failures_since_the_last_success(world: World, seed: int) -> None:
    random = Random(seed)
    # The fence lies before, within and behind the results.
    for length in (0, 1, 60, 1_000, 1_001, 1_300):
        row = await world.monitor()
        given = {"org": row.org, "monitor": row.id}
        ups = [random.random() < random.choice([0, 0.001, 0.1]) for _ in range(length)]
        fence = random.choice([0, length // 2, length + 1])
        async with world.pool.transaction("fill") as tx:
            await tx.execute(_ONE_BY_ONE.replace("%(from)s", str(START)), ups=ups, **given)
            await tx.execute(
                "update packing set packed_through = at(%(at)s)", at=START + fence * SECOND
            )
            assert await tx.row(_RUN, **given) == failures(ups, fence)


def failures(ups: Sequence[bool], fence: int) -> tuple[int, int | None]:
    """Result n, counted from 1, came n seconds after START. None lies in a piece."""
    newest_first = [(n, up) for n, up in enumerate(ups, 1) if n >= fence][::-1]
    run = [n for n, _ in takewhile(lambda result: not result[1], newest_first)][:MOST_FAILURES]
    return len(run), START + run[-1] * SECOND if run else None
