"""Recovery after several successes, through the recorder with its cached states."""

from random import Random

import pytest
import trio

from leadline.daemon.loops.result_recorder import Recorder
from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.monitors.rules.monitor_state import NOTHING_YET, fold
from leadline.storage.results.event_bus import Bus
from tests.support.run.effort import varied
from tests.support.worlds.world import World

HANGS_SECONDS = 60


@pytest.mark.parametrize("seed", varied(range(4), range(40)))
async def test_the_stored_state_is_that_of_the_rule(world: World, seed: int) -> None:
    """Steady results take a path without a fold, which must not skip the end of a recovery."""
    chance = Random(seed)
    failures, recovery = chance.randint(1, 3), chance.randint(2, 4)
    row = await world.monitor(failure_threshold=failures, recovery_threshold=recovery)
    recorder, state = Recorder(world.pool, Bus(), lambda: world.now), NOTHING_YET
    async with trio.open_nursery() as nursery:
        await nursery.start(recorder.run)
        with trio.fail_after(HANGS_SECONDS):
            for _ in range(25):
                world.now = Instant(world.now + 60 * SECOND)
                up = chance.random() < 0.5
                await recorder.record(world.result(row, world.now, up))
                state = fold(state, up, world.now, failures, recovery)
                found = await world.rows(
                    "select status, failures, successes from monitor_states where monitor = %(m)s",
                    m=row.id,
                )
                assert found == [(state.status, state.failures, state.successes)]
        nursery.cancel_scope.cancel()
    changes = await world.rows("select count(*) from status_changes")
    assert changes[0][0] >= 1
