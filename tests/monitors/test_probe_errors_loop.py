"""A probe error is recorded again when it returns, and after a failed transaction."""

import pytest

from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.core.refusal import Unavailable
from leadline.storage.monitors.rows import ProbeErrorReason
from leadline.storage.monitors.tables.probe_errors import record_probe_errors
from leadline.storage.results.transactions.record_results import record_results
from tests.monitors.test_secrets_reach_probes_loop import redis_with, shown_error
from tests.scheduling.test_prober_loop import probing
from tests.support.worlds.local_failures import FlakyPool
from tests.support.worlds.world import World


async def test_a_probe_error_that_returns_after_a_result_is_recorded_immediately(
    world: World,
) -> None:
    row = await redis_with(world, "cache", "hunter2")
    key, began = row.key, world.now

    async def note() -> None:
        async with world.pool.transaction("note") as tx:
            await record_probe_errors(tx, {key: (ProbeErrorReason.MISSING_REFERENCE, world.now)})

    await note()
    world.now = Instant(began + 10 * SECOND)
    async with world.pool.transaction("record") as tx:
        await record_results(tx, [world.result(row, world.now, True)])
    assert await shown_error(world, row) is None
    world.now = Instant(began + 20 * SECOND)
    await note()
    assert await shown_error(world, row) == "missing_reference"


async def test_a_probe_error_that_was_not_stored_is_recorded_in_the_next_pass(world: World) -> None:
    row = await redis_with(world, "cache", "hunter2")
    await world.forget_jobs()
    async with probing(world, row.uid) as prober:
        prober._record_probe_error(row.key, "decrypt_failed")
        flaky = FlakyPool(world.pool)
        flaky.fail_before.add("record_probe_errors")
        prober._pool = flaky  # type: ignore[assignment]
        with pytest.raises(Unavailable):
            await prober.pass_once()
        flaky.fail_before.clear()
        await prober.pass_once()
        assert await shown_error(world, row) == "decrypt_failed"
