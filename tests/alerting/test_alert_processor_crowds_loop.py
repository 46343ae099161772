"""If all monitors go down together, the cost of a pass is proportional to their number, also with
outdated statistics in the database.
"""

from typing import Any

from leadline.storage.alerting.queries import monitor_dependencies as upstreams
from tests.support.worlds.world import World

MANY = 2_000

_MORE = """
insert into monitors (org, uid, project, shard, slug, name, description, type, target, method,
  interval_seconds, timeout_seconds, retries, failure_threshold, confirm_interval_seconds,
  renotify_seconds, grace_seconds, conditions, tags, depends_on, config, enabled, auto_incident,
  created_at, updated_at)
select org, gen_random_uuid(), project, shard, 'x' || n, 'x' || n, '', type, target, method,
  interval_seconds, timeout_seconds, retries, failure_threshold, confirm_interval_seconds,
  renotify_seconds, grace_seconds, conditions, tags, depends_on, config, enabled, auto_incident,
  created_at, updated_at
from monitors, generate_series(1, %(many)s) n
"""
_STATES = """
insert into monitor_states (org, monitor, since)
select org, id, created_at from monitors where slug like 'x%%'
"""
# Every monitor had one outage and has recovered.
_PAST = """
insert into outages (org, uid, monitor, began_at, ended_at, why)
select org, gen_random_uuid(), id, at(%(now)s) - interval '2 days', at(%(now)s), '' from monitors
"""
_ALL_DOWN = "update monitor_states set status = 'down'"
_ALL_OUT = """
insert into outages (org, uid, monitor, began_at, why, suppressed_by, next_check_at)
select org, gen_random_uuid(), id, at(%(now)s), '', 'unknown', at(%(now)s) from monitors
"""


async def test_the_scan_for_missed_outages_is_not_quadratic(world: World) -> None:
    await world.monitor()
    async with world.pool.transaction("crowd") as tx:
        await tx.execute(_MORE, many=MANY)
        await tx.execute(_STATES)
        # The statistics of states can be newer than those of outages.
        await tx.execute(_ALL_DOWN)
        await tx.execute(_PAST, now=world.now)
    async with world.pool.statement("statistics") as tx:
        await tx.execute("vacuum analyze")
    async with world.pool.transaction("all_out") as tx:
        await tx.execute(_ALL_OUT, now=world.now)
    async with world.pool.transaction("explain", read_only=True) as tx:
        query = f"explain (analyze, format json) {upstreams._ASTRAY}"
        found = await tx.value(query, now=world.now, most=500)
        assert await upstreams.select_astray_subjects(tx, world.now, 500) == []
    (plan,) = found
    assert 0 < _rows_touched(plan["Plan"]) < 20 * MANY


def _rows_touched(node: dict[str, Any]) -> float:
    """Returns the rows that were read, joined or filtered out, over all loops of the plan."""
    each: float = sum(
        value
        for name, value in node.items()
        if name == "Actual Rows" or name.startswith("Rows Removed")
    )
    total: float = each * node["Actual Loops"] + sum(map(_rows_touched, node.get("Plans", [])))
    return total
