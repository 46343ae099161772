"""Loops that wait: the change of another process wakes them, with and without its notification."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from uuid_utils.compat import uuid7

from leadline.daemon.loops import due_reader
from leadline.daemon.loops.cache_invalidator import hear
from leadline.daemon.loops.due_reader import DueReader
from leadline.daemon.process.children import CHILDREN
from leadline.daemon.runtime.wake_event import WakeEvent
from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.engine.edit_notify import WORK
from leadline.storage.scheduling.rules.work import Work
from tests.support.worlds.outbox_world import OutboxWorld
from tests.support.worlds.world import REGIONS, START, World

HANGS_SECONDS = 30
# What another process writes when it has work for a loop. The work is due at `due`.
WRITES: Mapping[Work, str] = {
    Work.RESETS: "insert into reset_requests (address, due_at) values ('a@b.c', at(%(due)s))",
    Work.INVITATIONS: """
      insert into invitations (org, uid, email, role, created_at, expires_at, mail_due_at)
      values (%(org)s, %(uid)s, 'a@b.c', 'viewer', at(%(due)s), at(%(due)s) + interval '7 days',
        at(%(due)s))""",
    Work.ALERTS: """
      insert into incidents (org, uid, project, seq, title, status, impact, source, started_at,
        created_at, updated_at, escalate_at)
      values (%(org)s, %(uid)s, %(project)s, 1, 't', 'investigating', 'major', 'api', at(%(due)s),
        at(%(due)s), at(%(due)s), at(%(due)s))""",
    Work.EVALUATIONS: """
      insert into service_alerting (org, service, edited_at, due_at)
      values (%(org)s, %(service)s, at(%(due)s), at(%(due)s))""",
    Work.COMPOSITES: """
      insert into composite_wakeups (org, monitor, due_at)
      values (%(org)s, %(monitor)s, at(%(due)s))""",
    Work.OPERATIONS: """
      insert into operations (uid, kind, org, total, created_at)
      values (%(uid)s, 'organization_delete', %(org)s, 1, at(%(due)s))""",
    Work.JOBS: """
      insert into jobs (org, uid, shard, monitor, reason, due_at, claim_until)
      values (%(org)s, %(uid)s, %(shard)s, %(monitor)s, 'asked', at(%(due)s),
        at(%(due)s) + interval '1 hour')""",
    Work.SCHEDULE: """
      insert into maintenances (org, uid, project, starts_at, ends_at, created_at)
      values (%(org)s, %(uid)s, %(project)s, at(%(due)s) - interval '1 hour', at(%(due)s),
        at(%(due)s))""",
    Work.SERVICES: """
      insert into services (org, uid, project, slug, name, created_at, updated_at)
      values (%(org)s, %(uid)s, %(project)s, 's', 's', at(%(due)s), at(%(due)s))""",
}
# Written by the loops of one process for another one; a read finds them.
UNANNOUNCED: Mapping[Work, str] = {
    Work.REPAIRS: """
      insert into repairs (org, shard, monitor, from_at, to_at, created_at, due_at)
      values (%(org)s, %(shard)s, %(monitor)s, at(%(due)s), at(%(due)s), at(%(due)s),
        at(%(due)s))""",
    Work.CANARIES: """
      insert into run_batches (shard, kind, orgs, monitors, due_ats, seal_ats, claim_untils,
        published, first_due, claim_until, first_seal, last_seal)
      select %(shard)s, 'canary', array[%(org)s], array[%(monitor)s], array[at(%(due)s)],
        array[at(%(due)s)], array[at(%(due)s)], true, at(%(due)s), at(%(due)s), at(%(due)s),
        at(%(due)s)""",
    Work.SEALS: """
      insert into run_batches (shard, kind, orgs, monitors, due_ats, seal_ats, claim_untils,
        published, first_due, claim_until, first_seal, last_seal)
      select %(shard)s, 'push', array[%(org)s], array[%(monitor)s], array[at(%(due)s)],
        array[at(%(due)s)], array[at(%(due)s)], true, at(%(due)s), at(%(due)s), at(%(due)s),
        at(%(due)s)""",
}
# Kinds that are due as long as a row exists.
_WITHOUT_INSTANT = {Work.OPERATIONS, Work.SERVICES, Work.SEALS}


class Reading:
    """A reader, and the loop of one kind of work."""

    def __init__(self, world: World, work: Work) -> None:
        self.reader = DueReader(world.pool, lambda: world.now, sorted(REGIONS))
        self.loop = WakeEvent()
        self.reader.register(work, self.loop)

    async def is_woken(self, seconds: float = 0.0) -> bool:
        return await self.loop.wait(seconds)


@asynccontextmanager
async def listening(dsn: str, reading: Reading) -> AsyncIterator[None]:
    listens = trio.Event()

    def note_hearing(is_hearing: bool) -> None:
        reading.reader.set_hearing(is_hearing)
        listens.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hear, dsn, {WORK: reading.reader.hear}, note_hearing)
        with trio.fail_after(HANGS_SECONDS):
            await listens.wait()
            assert await reading.is_woken(), "a new listener has missed the earlier notifications"
            yield
        nursery.cancel_scope.cancel()


async def write(world: World, work: Work, due: Instant) -> None:
    if work is Work.DELIVERIES:
        outbox = OutboxWorld(world)
        await outbox.webhook()
        assert await outbox.enqueue(uuid7(), 1)
        return
    monitor = await world.monitor()
    await world.forget_jobs()
    async with world.pool.transaction("write") as tx:
        await tx.execute("delete from run_batches")
        given = {
            "due": due,
            "org": world.org,
            "project": world.project,
            "uid": uuid7(),
            "monitor": monitor.id,
            "shard": monitor.shard,
        }
        if work is Work.EVALUATIONS:
            query = f"{WRITES[Work.SERVICES]} returning id"
            given["service"] = await tx.value(query, **_named(query, given))
        query = {**WRITES, **UNANNOUNCED}[work]
        await tx.execute(query, **_named(query, given))


def _named(query: str, given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if f"%({name})s" in query}


@pytest.mark.parametrize("work", [*WRITES, Work.DELIVERIES])
async def test_a_notification_wakes_the_loop(world: World, dsn: str, work: Work) -> None:
    reading = Reading(world, work)
    async with listening(dsn, reading):
        await write(world, work, world.now)
        assert await reading.is_woken(HANGS_SECONDS)


@pytest.mark.parametrize("work", [*WRITES, *UNANNOUNCED, Work.DELIVERIES])
async def test_a_read_finds_work_without_a_notification(world: World, work: Work) -> None:
    reading = Reading(world, work)
    reading.reader.set_hearing(True)
    await reading.is_woken()
    await reading.reader.pass_once()
    assert not await reading.is_woken(), "no work exists yet"
    await write(world, work, world.now)
    await reading.reader.pass_once()
    assert await reading.is_woken()


@pytest.mark.parametrize("work", sorted({*WRITES, *UNANNOUNCED} - _WITHOUT_INSTANT))
async def test_later_work_wakes_the_loop_when_it_is_due(world: World, work: Work) -> None:
    reading = Reading(world, work)
    reading.reader.set_hearing(True)
    await reading.is_woken()
    await write(world, work, Instant(world.now + MINUTE))
    await reading.reader.pass_once()
    assert not await reading.is_woken()
    world.now = Instant(world.now + MINUTE)
    await reading.reader.pass_once()
    assert await reading.is_woken()


async def test_an_edit_of_a_check_wakes_the_prober(world: World, dsn: str) -> None:
    row, reading = await world.monitor(), Reading(world, Work.DEFINITIONS)
    async with listening(dsn, reading):
        async with world.pool.transaction("edit") as tx:
            query = "update monitors set updated_at = at(%(now)s) where id = %(id)s"
            await tx.execute(query, now=world.now, id=row.id)
        assert await reading.is_woken(HANGS_SECONDS)


async def test_a_new_monitor_wakes_the_loops_of_the_schedule(world: World, dsn: str) -> None:
    reading = Reading(world, Work.SCHEDULE)
    async with listening(dsn, reading):
        await world.monitor()
        assert await reading.is_woken(HANGS_SECONDS)


async def test_a_process_that_hears_nothing_reads_more_often(world: World) -> None:
    reading = Reading(world, Work.DEFINITIONS)
    await reading.reader.pass_once()
    assert await reading.is_woken(), "no instant announces an edit"
    assert reading.reader.rest_seconds() <= due_reader.UNHEARD_SECONDS
    reading.reader.set_hearing(True)
    await reading.is_woken()
    await reading.reader.pass_once()
    assert not await reading.is_woken()
    assert reading.reader.rest_seconds() <= due_reader.REST_SECONDS
    reading.reader.set_hearing(False)
    assert reading.reader.rest_seconds() <= due_reader.UNHEARD_SECONDS


async def test_unknown_work_of_a_newer_version_only_causes_a_read(world: World) -> None:
    reading = Reading(world, Work.ALERTS)
    reading.reader.hear(["a later kind"])
    assert not await reading.is_woken()
    assert await reading.reader.wake.wait(0.0)


def test_every_kind_of_work_has_a_case() -> None:
    assert {*WRITES, *UNANNOUNCED, Work.DELIVERIES, Work.DEFINITIONS} == set(Work)
    assert START % SECOND == 0
    names = [child.name for child in CHILDREN]
    assert names.index("due_work") > names.index("operations"), "it needs their wake events"
