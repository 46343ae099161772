"""Edits of one process invalidate the caches of the others; several edits send one notification."""

from collections.abc import Collection
from uuid import UUID, uuid4

import pytest
import trio

from leadline.daemon.loops import cache_invalidator
from leadline.daemon.loops.cache_invalidator import CacheInvalidator, hear
from leadline.daemon.runtime.wake_event import WakeEvent
from leadline.storage.accounts.rules.access import Scope
from leadline.storage.core.refusal import Unavailable
from leadline.storage.engine.edit_notify import EDITED, EDITED_MOST, EditedProject
from leadline.storage.engine.pools import Pool, Tx
from leadline.storage.results.event_bus import Bus, EditEvent
from tests.support.worlds.world import World


class Notifications:
    def __init__(self) -> None:
        self.listens = trio.Event()
        self.edited = trio.Event()
        self.count = 0

    def hear(self, _payloads: Collection[str]) -> None:
        self.count += 1
        self.edited.set()


async def test_a_listener_receives_one_notification_for_many_edits(pool: Pool, dsn: str) -> None:
    heard, edits = Notifications(), CacheInvalidator(pool, uuid4(), Bus())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(hear, dsn, {EDITED: heard.hear}, lambda _: heard.listens.set())
        with trio.fail_after(30):
            await heard.listens.wait()
            await edits.pass_once()
            for _ in range(5):
                edits.note(None)
            await edits.pass_once()
            await heard.edited.wait()
            # An unnecessary second notification would arrive before this one.
            await edits.pass_once()
            heard.edited = trio.Event()
            edits.note(None)
            await edits.pass_once()
            await heard.edited.wait()
        nursery.cancel_scope.cancel()
    assert heard.count == 2


async def test_each_process_publishes_the_projects_of_all_edits_once(
    world: World, dsn: str
) -> None:
    buses = [Bus(), Bus()]
    mine, other = (CacheInvalidator(world.pool, uuid4(), bus) for bus in buses)
    listeners = [bus.listen() for bus in buses]
    listens = trio.Event()
    project = (world.org, world.project)
    many = [(world.org, world.project + n) for n in range(1, EDITED_MOST + 5)]

    def hear_both(payloads: Collection[str]) -> None:
        # Of another version, and both processes hear their own.
        for one in (mine, other):
            one.hear([*payloads, "", "{}", "[1]"])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hear, dsn, {EDITED: hear_both}, lambda _: listens.set())
        with trio.fail_after(30):
            await listens.wait()
            # Projects that have gone are left out, and those beyond the bound follow.
            for org, key in [*many, project]:
                mine.note(Scope(org, key))
            await mine.pass_once()
            await mine.pass_once()
            await mine.pass_once()
            other.note(Scope(world.org))
            other.note(Scope(*project))
            await other.pass_once()
            for listener in listeners:
                for _ in range(2):
                    event = EditEvent(world.org, world.project, world.project_uid)
                    assert await listener.next() == event
        nursery.cancel_scope.cancel()
    for bus, listener in zip(buses, listeners, strict=True):
        bus.close()
        assert await listener.next() is None


async def test_an_edit_during_a_notification_and_a_failed_one_are_announced(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    edits, project = CacheInvalidator(world.pool, uuid4(), Bus()), Scope(world.org, world.project)
    sent: list[list[tuple[int, int]]] = []

    async def notify(
        _tx: Tx, _process: UUID, projects: Collection[tuple[int, int]]
    ) -> list[EditedProject]:
        sent.append(list(projects))
        match len(sent):
            case 1:
                edits.note(project)
            case 2:
                raise Unavailable("gone")
        return []

    monkeypatch.setattr(cache_invalidator, "notify_edited", notify)
    edits.note(project)
    await edits.pass_once()
    edits.wake = WakeEvent()
    with pytest.raises(Unavailable):
        await edits.pass_once()
    # The pause after a failure is kept.
    assert not await edits.wake.wait(0)
    await edits.pass_once()
    await edits.pass_once()
    assert sent == [[(world.org, world.project)]] * 3


async def test_a_listener_reports_when_it_hears(pool: Pool, dsn: str) -> None:
    told: list[bool] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(hear, dsn, {EDITED: lambda _: None}, told.append)
        with trio.fail_after(30):
            while not told:  # noqa: ASYNC110 - the database says when
                await trio.sleep(0.01)
            async with pool.transaction("cut") as tx:
                await tx.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity"
                    " where application_name = 'leadline listen'"
                    " and datname = current_database()"
                )
            while len(told) < 3:  # noqa: ASYNC110
                await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
    assert told == [True, False, True]
