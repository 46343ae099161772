"""A probe is given the values that its monitor's settings refer to, and learns when they change."""

from collections.abc import Callable
from typing import Any

import pytest
import trio
from uuid_utils.compat import uuid7

from leadline.daemon.loops import prober as prober_module
from leadline.daemon.loops.check_cache import BY_NUMBER_US, OVERLAP_US, CheckCache
from leadline.probes.check.check import Check
from leadline.probes.check.result import Phases, Result, RunOutcome, UnknownReason
from leadline.probes.net.egress import Egress
from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.core.key import MonitorKey
from leadline.storage.engine.keyring import Keyring
from leadline.storage.monitors.queries.monitors import select_standings, still_troubled
from leadline.storage.monitors.queries.probe_errors import select_probe_errors
from leadline.storage.monitors.rows import MonitorRow, ProbeErrorReason
from leadline.storage.monitors.tables.probe_errors import record_probe_errors
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.monitors.transactions.edit_secrets import create_secret, edit_secret
from leadline.storage.monitors.transactions.run_now import run_now
from tests.scheduling.test_prober_loop import probing
from tests.support.worlds.world import World


async def redis_with(world: World, name: str, value: str) -> MonitorRow:
    async with world.pool.transaction("create_secret") as tx:
        await create_secret(tx, world.editor, world.project_uid, name, value, world.keyring)
    return await world.monitor(
        type="redis", target="127.0.0.1:1", config={"password_ref": name, "key": "k"}
    )


def catalogue_of(world: World, keyring: Keyring | None = None) -> CheckCache:
    return CheckCache(world.pool, keyring or world.keyring, lambda: world.now)


async def secrets_in(catalogue: CheckCache, row: MonitorRow) -> Any:
    check = (await catalogue.find([row.key]))[row.key].check
    return None if check is None else dict(check.secrets)


async def replace(world: World, name: str, value: str) -> None:
    async with world.pool.transaction("edit_secret") as tx:
        await edit_secret(tx, world.editor, world.project_uid, name, None, value, world.keyring)


async def test_a_check_contains_the_value_under_the_name_of_its_setting(world: World) -> None:
    row = await redis_with(world, "cache", "hunter2")
    assert await secrets_in(catalogue_of(world), row) == {"password": "hunter2"}


async def test_a_replaced_value_reaches_only_the_checks_that_reference_it(world: World) -> None:
    row = await redis_with(world, "cache", "hunter2")
    other = await redis_with(world, "other", "same")
    plain = await world.monitor()
    catalogue = catalogue_of(world)
    for known in (row, other, plain):
        await secrets_in(catalogue, known)
    world.now = Instant(world.now + 2 * OVERLAP_US)
    await catalogue.refresh([row.shard])
    world.now = Instant(world.now + 2 * OVERLAP_US)
    await replace(world, "cache", "rotated")
    assert await secrets_in(catalogue, row) == {"password": "hunter2"}
    assert await catalogue.refresh([row.shard]) == 1
    assert await secrets_in(catalogue, row) == {"password": "rotated"}
    assert await secrets_in(catalogue, other) == {"password": "same"}


async def test_a_value_is_not_put_back_by_an_older_reading(world: World) -> None:
    row = await redis_with(world, "cache", "hunter2")
    catalogue = catalogue_of(world)
    await secrets_in(catalogue, row)
    world.now = Instant(world.now + SECOND)
    await replace(world, "cache", "rotated")
    await catalogue.refresh([row.shard])
    for _ in range(2):
        await catalogue.refresh([row.shard])
        assert await secrets_in(catalogue, row) == {"password": "rotated"}


@pytest.mark.parametrize("edited", ["secret", "monitor"])
async def test_an_edit_that_commits_late_reaches_the_checks(world: World, edited: str) -> None:
    """The transaction began long before the refreshes, and the last one does not see it."""
    row = await redis_with(world, "cache", "hunter2")
    catalogue = catalogue_of(world)
    await catalogue.refresh([row.shard])
    began, may_commit = trio.Event(), trio.Event()

    async def edit() -> None:
        async with world.pool.transaction("edit") as tx:
            if edited == "secret":
                name = (world.project_uid, "cache", None, "rotated")
                await edit_secret(tx, world.editor, *name, world.keyring)
            else:
                given = {"config": {"key": "other"}}
                regions = frozenset({row.region})
                await edit_monitor(tx, world.editor, row.uid, given, world.keyring, regions)
            began.set()
            await may_commit.wait()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(edit)
        await began.wait()
        for _ in range(2):
            world.now = Instant(world.now + 2 * OVERLAP_US)
            await catalogue.refresh([row.shard])
        may_commit.set()
    before = (await catalogue.find([row.key]))[row.key]
    if edited == "monitor":
        # A result under the earlier definition is refused until then.
        assert await catalogue.refresh([row.shard]) == 0
        world.now = Instant(world.now + BY_NUMBER_US)
    assert await catalogue.refresh([row.shard]) == 1
    after = (await catalogue.find([row.key]))[row.key]
    assert after.check != before.check
    assert await catalogue.refresh([row.shard]) == 0


async def test_a_secret_that_is_gone_leaves_the_check_to_miss_it(world: World) -> None:
    row = await redis_with(world, "cache", "hunter2")
    async with world.pool.transaction("lose") as tx:
        await tx.execute("delete from project_secrets")
    assert await secrets_in(catalogue_of(world), row) == {}


async def test_one_that_no_key_opens_makes_no_check(world: World) -> None:
    row = await redis_with(world, "cache", "hunter2")
    assert await secrets_in(catalogue_of(world, Keyring(b"x" * 32)), row) is None


# The reason that a check cannot be built is shown at the monitor until a result arrives.


async def shown_error(world: World, row: MonitorRow) -> str | None:
    key = row.key
    async with world.pool.transaction("look", read_only=True) as tx:
        found = (await select_probe_errors(tx, [key])).get(key)
        standing = (await select_standings(tx, [key])).get(key)
    trouble = still_troubled(found, standing)
    return trouble.reason if trouble is not None else None


async def needing_its_secret(
    check: Check, _reach: Egress, clock: Callable[[], Instant], _org: int
) -> Result:
    """A run whose probe misses what is not there."""
    await trio.lowlevel.checkpoint()
    if check.secrets:
        return Result(clock(), RunOutcome.UP, 1, None, "", Phases())
    reason = UnknownReason.MISSING_REFERENCE
    return Result(clock(), RunOutcome.UNKNOWN, 1, None, "", Phases(), unknown_reason=reason)


async def run_a_window(world: World) -> None:
    """Runs the due windows, and records their results in a second pass."""
    async with probing(world, uuid7()) as prober:
        await prober.pass_once()
        with trio.fail_after(30):
            while not prober.counts.unknown and not prober.counts.stored:  # noqa: ASYNC110
                await trio.sleep(0.01)
        await prober.pass_once()


async def test_a_deleted_secret_is_reported_until_a_result_arrives(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prober_module, "run", needing_its_secret)
    row = await redis_with(world, "cache", "hunter2")
    assert await shown_error(world, row) is None
    async with world.pool.transaction("lose") as tx:
        await tx.execute("delete from project_secrets")
    await run_a_window(world)
    assert await shown_error(world, row) == "missing_reference"
    async with world.pool.transaction("create_secret") as tx:
        await create_secret(tx, world.editor, world.project_uid, "cache", "again", world.keyring)
    world.now = Instant(world.now + 60 * SECOND)
    async with world.pool.transaction("ask") as tx:
        await run_now(tx, world.editor, row.uid)
    await run_a_window(world)
    assert await shown_error(world, row) is None


async def test_secrets_that_no_key_decrypts_are_reported(world: World) -> None:
    row = await redis_with(world, "cache", "hunter2")
    world.keyring = Keyring(b"x" * 32)
    await run_a_window(world)
    assert await shown_error(world, row) == "decrypt_failed"


async def test_a_repetition_is_written_once_a_minute(world: World) -> None:
    row = await redis_with(world, "cache", "hunter2")
    key = row.key
    written = []
    for seconds in (0, 20, 59, 61, 100):
        at = Instant(world.now + seconds * SECOND)
        async with world.pool.transaction("note") as tx:
            await record_probe_errors(tx, {key: (ProbeErrorReason.DECRYPT_FAILED, at)})
        written.append((await world.rows("select at from probe_errors"))[0][0])
    assert written[0] == written[1] == written[2] != written[3] == written[4]
    async with world.pool.transaction("note") as tx:
        other = {MonitorKey((9, 9)): (ProbeErrorReason.DECRYPT_FAILED, world.now)}
        await record_probe_errors(
            tx, {key: (ProbeErrorReason.MISSING_REFERENCE, world.now), **other}
        )
    assert await world.rows("select reason from probe_errors") == [("missing_reference",)]
