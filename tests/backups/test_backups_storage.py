"""The verified backups in the database, and the sampler of the metrics."""

import pytest

from leadline.daemon.loops.metric_samplers import InstallationSampler
from leadline.storage.backups.queries import select_newest_backup
from leadline.storage.backups.tables import KEPT, insert_backup
from leadline.storage.core.instant import DAY, HOUR, SECOND, Instant
from leadline.storage.engine.pools import Pool, Rejected
from tests.conftest import FROZEN_NOW


async def record(pool: Pool, *instants: Instant) -> None:
    for at in instants:
        async with pool.transaction("record_backup") as tx:
            await insert_backup(tx, at, file="b", size=1, row_count=0)


async def newest(pool: Pool) -> Instant | None:
    async with pool.transaction("newest_backup", read_only=True) as tx:
        return await select_newest_backup(tx)


async def test_without_a_backup_there_is_no_newest(pool: Pool) -> None:
    assert await newest(pool) is None


async def test_the_newest_is_the_one_with_the_latest_content(pool: Pool) -> None:
    """Two backups can end in another order than they began."""
    await record(pool, FROZEN_NOW, Instant(FROZEN_NOW - DAY))
    assert await newest(pool) == FROZEN_NOW


async def test_rows_of_old_backups_are_deleted(pool: Pool) -> None:
    await record(pool, *(Instant(FROZEN_NOW + n * HOUR) for n in range(KEPT + 3)))
    async with pool.transaction("count", read_only=True) as tx:
        rows = await tx.rows("select count(*), min(created_at) from backups")
    assert rows == [(KEPT, FROZEN_NOW + 3 * HOUR)]


async def test_rows_of_a_clock_that_was_ahead_are_no_age_and_are_deleted(pool: Pool) -> None:
    async with pool.transaction("clock", read_only=True) as tx:
        ahead = Instant(await tx.value("select clock_timestamp()") + 400 * DAY)
    await record(pool, ahead)
    assert await newest(pool) is None
    await record(pool, FROZEN_NOW)
    assert await newest(pool) == FROZEN_NOW
    await record(pool, *(Instant(FROZEN_NOW + n * SECOND) for n in range(KEPT)))
    async with pool.transaction("count", read_only=True) as tx:
        assert await tx.value("select max(created_at) from backups") < ahead


async def test_a_pass_that_fails_leaves_the_newest_as_it_was(pool: Pool) -> None:
    """Its age rises, so an alert fires also if the table cannot be read."""
    sampler = InstallationSampler(pool, lambda: FROZEN_NOW)
    await sampler.pass_once()
    assert sampler.newest_backup is None
    await record(pool, FROZEN_NOW)
    await sampler.pass_once()
    async with pool.transaction("rename") as tx:
        await tx.execute("alter table backups rename to elsewhere")
    with pytest.raises(Rejected):
        await sampler.pass_once()
    assert sampler.newest_backup == FROZEN_NOW
