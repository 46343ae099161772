"""The newest result of a monitor is the first of an ordered scan of its results."""

from typing import Any

from leadline.storage.core.instant import DAY, SECOND, Instant
from leadline.storage.engine.partitions import make_partitions
from leadline.storage.monitors.queries import monitors
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
