"""Subscribers of a status page are told each step of a planned maintenance once."""

from typing import Any

import pytest
import trio

from leadline.daemon.loops.mailers import maintenance_teller
from leadline.daemon.loops.mailers.maintenance_teller import MaintenanceTeller
from leadline.storage.core.instant import HOUR, Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.maintenance.transactions.plan_maintenance import Plan, announce, end
from leadline.storage.retirement.transactions.delete_monitor import delete_monitor
from leadline.storage.status_pages.queries import announced_maintenance
from leadline.storage.status_pages.tables.maintenance_notices import select_open_notices
from leadline.storage.status_pages.transactions import tell_maintenance
from leadline.storage.status_pages.transactions.tell_maintenance import pass_on_notice
from tests.support.peers.mail_server import Box, serving_mail
from tests.support.worlds.subscribing import BASE, Readers, readers_of, text_of
from tests.support.worlds.world import World

ADA, BOB = "ada@example.com", "bob@example.com"


async def planned(readers: Readers, hours: int, **given: Any) -> None:
    world = readers.world
    starts, ends = Instant(world.now + hours * HOUR), Instant(world.now + (hours + 1) * HOUR)
    plan = Plan(starts_at=starts, ends_at=ends, reason="VACUUM on db-7", **given)
    async with world.pool.transaction("announce") as tx:
        await announce(tx, readers.owner, world.project_uid, plan, None, 30)


async def test_each_step_is_told_once_to_those_whom_it_concerns(world: World) -> None:
    with serving_mail(Box()) as server:
        readers = await readers_of(world, server)
        shop = await world.monitor(name="shop")
        other = await world.monitor(name="other")
        await readers.component(shop, "Shop")
        back = await readers.component(other, "Back office")
        await readers.subscribe(ADA, BOB)
        await readers.rows(
            "update subscribers set components = %(only)s::uuid[] where address = %(to)s"
            " returning id",
            only=[back],
            to=BOB,
        )
        await planned(readers, 5, monitor=shop.uid)
        await planned(readers, 2, monitor=shop.uid, public_title="Move of the shop")
        teller = MaintenanceTeller(world.pool)
        async with readers.delivering():
            for _ in range(3):
                await teller.pass_once()
            await readers.until_letters(1)
            for _ in range(2):
                await readers.until_quiet()
                world.now = Instant(world.now + 2 * HOUR)
                for _ in range(2):
                    await teller.pass_once()
            await readers.until_letters(3)
            await readers.until_quiet()
    letters = [text_of(one) for one in readers.letters()]
    assert {one["To"] for one in readers.letters()} == {ADA}
    assert [text.splitlines()[0] for text in letters] == [
        "Scheduled: Move of the shop",
        "In progress: Move of the shop",
        "Completed: Move of the shop",
    ]
    assert all("Affects: Shop." in text for text in letters)
    assert all(f"{BASE}/status/shop" in text for text in letters)
    assert "db-7" not in "".join(letters)
    references = {str(one["References"]) for one in readers.letters()}
    assert len(references) == 1


async def test_a_cancelled_one_and_two_processes_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers = await readers_of(world)
    shop = await world.monitor(name="shop")
    await readers.component(shop, "Shop")
    await readers.subscribe(*(f"reader{n}@example.com" for n in range(7)))
    await planned(readers, 2, public_title="Move")
    teller = MaintenanceTeller(world.pool)
    with monkeypatch.context() as patched:
        patched.setattr(tell_maintenance, "TOLD_AT_ONCE", 2)
        # One process dies between two batches; two others continue.
        async with world.pool.transaction("note") as tx:
            (page,) = await tell_maintenance.find_telling_pages(tx)
            assert await tell_maintenance.note_due_steps(tx, page) == 1
        async with world.pool.transaction("first") as tx:
            (key,) = await select_open_notices(tx, 10)
            assert await pass_on_notice(tx, key)
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(teller.pass_once)
    sent = "select destination, payload ->> 'step' from outbox order by 2, 1"
    assert [row[1] for row in await readers.rows(sent)] == ["scheduled"] * 7
    assert len({row[0] for row in await readers.rows(sent)}) == 7
    ((uid,),) = await readers.rows("select uid from maintenances")
    async with world.pool.transaction("end") as tx:
        await end(tx, readers.owner, uid)
    await teller.pass_once()
    await teller.pass_once()
    steps = [row[1] for row in await readers.rows(sent)]
    assert (steps.count("cancelled"), len(steps)) == (7, 14)


async def test_an_older_reading_of_the_steps_notes_none_after_the_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers = await readers_of(world)
    shop = await world.monitor(name="shop")
    await readers.component(shop, "Shop")
    await readers.subscribe(ADA)
    await planned(readers, 1, public_title="Move")
    teller = MaintenanceTeller(world.pool)
    await teller.pass_once()
    world.now = Instant(world.now + HOUR + 1)
    read = announced_maintenance.select_told

    async def tell_end() -> None:
        ((uid,),) = await readers.rows("select uid from maintenances")
        async with world.pool.transaction("end") as tx:
            await end(tx, readers.owner, uid)
        await teller.pass_once()

    async def held(*given: Any) -> Any:
        """Lets a second process tell the end before the first one inserts a step."""
        found = await read(*given)
        monkeypatch.setattr(tell_maintenance, "select_told", read)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tell_end)
        return found

    monkeypatch.setattr(tell_maintenance, "select_told", held)
    for _ in range(3):
        await teller.pass_once()
    steps = await readers.rows("select payload ->> 'step' from outbox order by id")
    assert [step for (step,) in steps] == ["scheduled", "in_progress", "completed"]


@pytest.mark.parametrize(("deleted_after_us", "last"), [(1, "cancelled"), (HOUR, "completed")])
async def test_the_deletion_of_the_monitor_ends_its_maintenance(
    world: World, deleted_after_us: int, last: str
) -> None:
    readers = await readers_of(world)
    shop, never = await world.monitor(name="shop"), await world.monitor(name="never")
    for monitor in (shop, never):
        await readers.component(monitor, monitor.name)
    await readers.subscribe(ADA)
    await planned(readers, 1, public_title="Move", monitor=shop.uid)
    teller = MaintenanceTeller(world.pool)
    world.now = Instant(world.now + HOUR)
    await teller.pass_once()
    await planned(readers, 1, public_title="Never told", monitor=never.uid)
    world.now = Instant(world.now + deleted_after_us)
    for monitor in (shop, never):
        async with world.pool.transaction("delete") as tx:
            await delete_monitor(tx, readers.owner, monitor.uid)
    for _ in range(3):
        await teller.pass_once()
    steps = await readers.rows("select payload ->> 'step' from outbox order by id")
    assert [step for (step,) in steps] == ["in_progress", last]


@pytest.mark.parametrize("failing", ["note_due_steps", "pass_on_notice"])
async def test_a_page_that_fails_does_not_stop_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    shop = await world.monitor(name="shop")
    for slug, reader in (("first", ADA), ("second", BOB)):
        readers = await readers_of(world, slug=slug)
        await readers.component(shop, "Shop")
        await readers.subscribe(reader)
    await planned(readers, 1, public_title="Move")
    work, left = getattr(maintenance_teller, failing), [RuntimeError("bad page")]

    async def fails_once(*args: Any, **given: Any) -> Any:
        if left:
            raise left.pop()
        return await work(*args, **given)

    monkeypatch.setattr(maintenance_teller, failing, fails_once)
    teller = MaintenanceTeller(world.pool)
    for told in (1, 2):
        await teller.pass_once()
        assert await readers.rows("select count(*) from outbox") == [(told,)]


async def test_a_public_title_is_one_line(world: World) -> None:
    readers = await readers_of(world)
    with pytest.raises(Refused, match="control characters"):
        await planned(readers, 2, public_title="Move\nnow")
