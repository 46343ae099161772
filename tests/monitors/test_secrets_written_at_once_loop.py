"""Values that are written concurrently reach the probes in the order of their commits."""

from leadline.daemon.loops.check_cache import OVERLAP_US
from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.monitors.transactions.edit_secrets import create_secret
from tests.monitors.test_secrets_reach_probes_loop import (
    catalogue_of,
    redis_with,
    replace,
    secrets_in,
)
from tests.support.worlds.world import World


async def test_the_committed_value_is_used_although_its_write_began_first(
    world: World,
) -> None:
    # The timestamp is the begin of a write, but the last commit decides the value.
    row = await redis_with(world, "cache", "hunter2")
    catalogue = catalogue_of(world)
    world.now = Instant(world.now + OVERLAP_US)
    await replace(world, "cache", "first to end")
    await catalogue.refresh([row.shard])
    assert await secrets_in(catalogue, row) == {"password": "first to end"}
    world.now = Instant(world.now - SECOND)
    await replace(world, "cache", "last to end")
    world.now = Instant(world.now + 2 * SECOND)
    await catalogue.refresh([row.shard])
    assert await secrets_in(catalogue, row) == {"password": "last to end"}


async def test_of_two_secrets_each_change_counts(world: World) -> None:
    for name in ("one", "two"):
        async with world.pool.transaction("create_secret") as tx:
            await create_secret(tx, world.editor, world.project_uid, name, "old", world.keyring)
    scenario = {
        "steps": [
            {
                "url": "http://127.0.0.1/",
                "headers": {"x-one": "{{secret:one}}", "x-two": "{{secret:two}}"},
            }
        ]
    }
    refs = {f"scenario_secret_{name}_ref": name for name in ("one", "two")}
    row = await world.monitor(type="synthetic", target="", config={"scenario": scenario, **refs})
    catalogue = catalogue_of(world)
    world.now = Instant(world.now + OVERLAP_US)
    await replace(world, "two", "new")
    await catalogue.refresh([row.shard])
    assert await secrets_in(catalogue, row) == {
        "scenario_secret_one": "old",
        "scenario_secret_two": "new",
    }
    world.now = Instant(world.now - SECOND)
    await replace(world, "one", "new")
    world.now = Instant(world.now + 2 * SECOND)
    await catalogue.refresh([row.shard])
    assert set((await secrets_in(catalogue, row)).values()) == {"new"}
