"""Stored decisions are insert-only for every role. The janitor creates partitions ahead and drops
old ones.
"""

import pytest

from leadline.daemon.loops.janitor import Janitor
from leadline.storage.core.instant import DAY, Instant
from leadline.storage.engine.partitions import make_partitions, partitions
from leadline.storage.engine.pools import Pool, Rejected
from tests.conftest import FROZEN_NOW

_INSERT = """
insert into gate_decisions (org, project, service, uid, evaluated_at, service_uid, service_slug,
  service_name, state, reasons, actor_label, via_token, evidence)
values (1, 1, 1, gen_random_uuid(), at(%(at)s), gen_random_uuid(), 's', 'S', 'NOT_CONFIGURED', '[]',
  'somebody', false, '{}')
"""
# A row is in the partition of its day.
CHANGES = (
    "update {table} set reasons = '[1]'",
    "update {table} set evaluated_at = evaluated_at + interval '1 day'",
    "delete from {table}",
    "delete from {table} where service = 1",
    "truncate {table}",
    "truncate only {table}",
    "truncate gate_overrides, {table}",
    "insert into {table} select * from gate_decisions on conflict (org, evaluated_at, uid) "
    "do update set reasons = '[1]'",
    "merge into {table} g using (select 1) one on true when matched then delete",
)


def janitor(pool: Pool, now: Instant, gate_days: int = 90) -> Janitor:
    return Janitor(pool, lambda: now, heartbeat_days=4, ledger_days=4, gate_days=gate_days)


async def add(pool: Pool, at: Instant) -> None:
    async with pool.transaction("add") as tx:
        await tx.execute(_INSERT, at=at)


async def kept(pool: Pool) -> list[object]:
    async with pool.transaction("look", read_only=True) as tx:
        return [*await tx.rows("select g::text from gate_decisions g order by 1")]


@pytest.mark.parametrize("by", ["the janitor", "a call of its own"])
@pytest.mark.parametrize("table", ["gate_decisions", "gate_decisions_20260105"])
async def test_the_role_of_the_daemon_can_only_insert(pool: Pool, table: str, by: str) -> None:
    if by == "the janitor":
        await janitor(pool, FROZEN_NOW).make_room()
    else:
        await make_partitions(
            pool, "gate_decisions", "evaluated_at", from_=FROZEN_NOW, through=FROZEN_NOW
        )
    await add(pool, FROZEN_NOW)
    before = await kept(pool)
    assert before
    for change in CHANGES:
        if change.startswith("truncate only") and table == "gate_decisions":
            # PostgreSQL itself refuses TRUNCATE ONLY of a partitioned table.
            expected = "42809"
        else:
            expected = "P0001"
        with pytest.raises(Rejected) as refused:
            async with pool.transaction("change") as tx:
                await tx.execute(change.replace("{table}", table))
        assert refused.value.sqlstate == expected, change
        assert await kept(pool) == before, change


async def test_partitions_are_created_a_week_ahead(pool: Pool) -> None:
    keeper = janitor(pool, FROZEN_NOW)
    assert keeper.gate_ledger is None
    await keeper.make_room()
    found = await partitions(pool, "gate_decisions")
    assert [part.from_ for part in found] == [FROZEN_NOW + days * DAY for days in range(-1, 8)]
    assert keeper.gate_ledger is not None
    assert keeper.gate_ledger.from_ == FROZEN_NOW - DAY
    assert keeper.gate_ledger.until == FROZEN_NOW + 8 * DAY
    await add(pool, Instant(FROZEN_NOW + 7 * DAY))


async def test_whole_days_are_dropped_after_retention(pool: Pool) -> None:
    await janitor(pool, FROZEN_NOW, 3).pass_once()
    await add(pool, Instant(FROZEN_NOW + DAY - 1))
    await add(pool, Instant(FROZEN_NOW + DAY))
    # A day is kept until the retention of its last instant has ended.
    await janitor(pool, Instant(FROZEN_NOW + 4 * DAY - 1), 3).pass_once()
    assert len(await kept(pool)) == 2
    await janitor(pool, Instant(FROZEN_NOW + 4 * DAY), 3).pass_once()
    assert len(await kept(pool)) == 1
    await janitor(pool, Instant(FROZEN_NOW + 5 * DAY), 3).pass_once()
    assert await kept(pool) == []


async def test_decisions_have_no_foreign_keys(pool: Pool) -> None:
    """The rows contain values instead of foreign keys."""
    async with pool.transaction("look", read_only=True) as tx:
        found = await tx.rows(
            "select conname from pg_constraint where conrelid = 'gate_decisions'::regclass "
            "and contype = 'f'"
        )
    assert found == []
