"""The failed condition of a stored result: the text at the time of the run, for each way in."""

import trio

from leadline.daemon.loops.result_recorder import Recorder
from leadline.storage.core.instant import DAY, MINUTE, Instant
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.tables.monitors import forget_conditions, record_conditions
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.results.event_bus import Bus
from leadline.storage.results.queries.results import select_failures
from leadline.storage.results.transactions.record_results import record_results
from tests.support.worlds.world import REGIONS, START, World

STATUS, QUICK = "[STATUS] == 200", "[RESPONSE_TIME] < 800"


async def texts(world: World, row: MonitorRow) -> list[str | None]:
    """The failed conditions of the stored failures, oldest first."""
    async with world.pool.transaction("read", read_only=True) as tx:
        found = await select_failures(tx, row.key, 100)
    return [beat.failed.text if beat.failed else None for beat in reversed(found)]


async def record(world: World, row: MonitorRow, minute: int, text: str, value: str | None) -> None:
    arrival = world.result(
        row,
        Instant(START + minute * MINUTE),
        False,
        msg="condition_failed shop.example",
        condition=text,
        measured=value,
    )
    async with world.pool.transaction("record") as tx:
        await record_results(tx, [arrival])


async def edit(world: World, row: MonitorRow, *conditions: str) -> None:
    async with world.pool.transaction("edit") as tx:
        await edit_monitor(
            tx, world.editor, row.uid, {"conditions": list(conditions)}, world.keyring, REGIONS
        )


async def monitor(world: World, *conditions: str) -> MonitorRow:
    return await world.monitor(type="http", target="https://a.b", conditions=list(conditions))


async def test_an_edit_does_not_change_what_earlier_results_say(world: World) -> None:
    row = await monitor(world, STATUS, QUICK)
    await record(world, row, 0, QUICK, "1 204 ms")
    await edit(world, row, "[STATUS] == 201")
    # A late result of the earlier definition.
    await record(world, row, 1, STATUS, "503")
    await record(world, row, 2, "[STATUS] == 201", "500")
    await edit(world, row, STATUS)
    await record(world, row, 3, STATUS, None)
    assert await texts(world, row) == [
        "[RESPONSE_TIME] < 800 (1 204 ms)",
        "[STATUS] == 200 (503)",
        "[STATUS] == 201 (500)",
        "[STATUS] == 200",
    ]


async def test_a_condition_that_the_monitor_never_had_is_not_stored(world: World) -> None:
    row = await monitor(world, STATUS)
    await record(world, row, 0, "[BODY] == secret", '"x"')
    assert await texts(world, row) == [None]
    assert await world.rows("select measured from heartbeats") == [(None,)]


async def test_a_steady_failure_has_its_condition_and_a_success_has_none(world: World) -> None:
    row = await monitor(world, STATUS)
    async with trio.open_nursery() as nursery:
        recorder = Recorder(world.pool, Bus(), lambda: world.now)
        await nursery.start(recorder.run)
        with trio.fail_after(30):
            for minute in range(3):
                await recorder.record(
                    world.result(
                        row,
                        Instant(START + minute * MINUTE),
                        False,
                        msg="condition_failed shop.example",
                        condition=STATUS,
                        measured=str(500 + minute),
                    )
                )
            await recorder.record(world.result(row, Instant(START + 5 * MINUTE), True))
        recorder.close()
    assert await texts(world, row) == [f"{STATUS} ({500 + n})" for n in range(3)]
    stored = await world.rows(
        "select failed_condition is null and measured is null from heartbeats where up"
    )
    assert stored == [(True,)]


async def test_a_replaced_condition_is_kept_as_long_as_results_can_refer_to_it(
    world: World,
) -> None:
    row = await monitor(world, STATUS, QUICK)
    await edit(world, row, QUICK)
    kept = "select text from monitor_conditions order by id"

    async def forget(before: int) -> list[tuple[str]]:
        async with world.pool.transaction("forget") as tx:
            await forget_conditions(tx, Instant(before))
        return await world.rows(kept)

    assert await forget(START - DAY) == [(STATUS,), (QUICK,)]
    assert await forget(START + 400 * DAY) == [(QUICK,)]
    # A condition that comes back after that has a row again.
    await edit(world, row, QUICK, STATUS)
    assert await world.rows(kept) == [(QUICK,), (STATUS,)]


async def test_a_condition_that_an_earlier_version_wrote_is_recorded_later(world: World) -> None:
    row = await monitor(world, STATUS, QUICK)
    async with world.pool.transaction("as an earlier version") as tx:
        await tx.execute("delete from monitor_conditions where text = %(text)s", text=QUICK)
    async with world.pool.transaction("record") as tx:
        assert await record_conditions(tx) == 1
        assert await record_conditions(tx) == 0
    await record(world, row, 0, QUICK, "900 ms")
    assert await texts(world, row) == ["[RESPONSE_TIME] < 800 (900 ms)"]


async def test_a_condition_that_a_monitor_has_is_never_deleted(world: World) -> None:
    await monitor(world, STATUS)
    async with world.pool.transaction("forget") as tx:
        await tx.execute("update monitor_conditions set replaced_at = at(%(now)s)", now=START)
        assert await forget_conditions(tx, Instant(START + DAY)) == 0
