"""A world with a service, its members, an alert processor and an evaluator. The database's clock,
which decides leases, is the clock of the test.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from uuid_utils.compat import uuid7

from leadline.daemon.loops.alert_processor import AlertProcessor
from leadline.daemon.loops.service_evaluator import ServiceEvaluator
from leadline.storage.alerting.tables import service_alerting
from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.core.key import ServiceKey
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.notifications.queries.channels import select_channel
from leadline.storage.services.rules.epoch import Revision
from leadline.storage.services.rules.service_health import Policies
from leadline.storage.services.tables import service_revisions as declarations
from leadline.storage.services.tables import services
from tests.support.worlds.world import World, make_world, small_world

from ...alerting.test_alert_processor_loop import Story

EVERY = 30 * SECOND

# A call of the clock without a schema resolves to this function from now on.
_OWN_CLOCK = """
create table story_clock as select '2026-01-05'::timestamptz as now
"""
_CLOCK_OF_STORY = """
create function public.clock_timestamp() returns timestamptz language sql volatile
as 'select now from public.story_clock'
"""
_SHADOW = "alter database {name} set search_path = public, pg_catalog"


@asynccontextmanager
async def paging_world(dsn: str) -> AsyncIterator["PagingWorld"]:
    """Opens the world on a clone of `paging_template`. The clock of every new connection to it is
    that of the test. The test has the mark `template("paging_template")`.
    """
    with psycopg.connect(dsn, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(_SHADOW.format(name=f'"{name}"'))
    async with small_world(dsn) as world:
        yield PagingWorld(world)


async def make_paging_world(dsn: str) -> None:
    """Inserts the world into a migrated database, with the clock that `paging_world` sets."""
    await make_world(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(_OWN_CLOCK)
        connection.execute(_CLOCK_OF_STORY)


@dataclass
class Service:
    org: int
    id: int
    uid: UUID

    @property
    def key(self) -> ServiceKey:
        return ServiceKey((self.org, self.id))


class PagingWorld(Story):
    """The evaluator runs together with the alert processor, unless it is `dead`. `steady` is the
    answer of the process to the question whether it ran without an interruption.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.dead = False
        self.steady = True
        self.watcher = AlertProcessor(
            world.pool, lambda: world.now, self._on_notified, self._on_asked, lambda: self.steady
        )
        self.evaluator = ServiceEvaluator(world.pool, lambda: world.now, self._on_notified)

    async def run_pass(self) -> None:
        await self._set_clock()
        await self.watcher.pass_once()
        if not self.dead:
            await self.evaluator.pass_once()

    async def step(self, us: int = 10 * SECOND) -> None:
        self.world.now = Instant(self.world.now + us)
        await self.run_pass()

    async def steps(self, us: int, each: int = 10 * SECOND) -> None:
        until = self.world.now + us
        while self.world.now < until:
            await self.step(int(min(each, until - self.world.now)))

    async def _set_clock(self) -> None:
        async with self.world.pool.transaction("clock") as tx:
            await tx.execute("update story_clock set now = at(%(now)s)", now=self.world.now)

    async def service(
        self,
        *members: MonitorRow,
        name: str = "Shop",
        policy: int | None = None,
        schedule: int | None = None,
        policies: Policies = Policies(),  # noqa: B008 (frozen)
        revised: bool = True,
        **paging: Any,
    ) -> Service:
        async with self.world.pool.transaction("service") as tx:
            uid = uuid7()
            key: int = await tx.value(
                "insert into services (org, uid, project, slug, name, escalation_policy,"
                " oncall_schedule, created_at, updated_at) values (%(org)s, %(uid)s, %(project)s,"
                " %(slug)s, %(name)s, %(policy)s, %(schedule)s, at(%(now)s), at(%(now)s))"
                " returning id",
                org=self.world.org,
                uid=uid,
                project=self.world.project,
                slug=name.lower(),
                name=name,
                policy=policy,
                schedule=schedule,
                now=self.world.now,
            )
            made = Service(self.world.org, key, uid)
            await services.insert_alerting(tx, made.key)
        if revised:
            await self.revise(made, members, policies)
        await self.set_paging(made, **paging)
        await self.run_pass()
        return made

    async def revise(
        self,
        service: Service,
        members: Sequence[MonitorRow],
        policies: Policies = Policies(),  # noqa: B008 (frozen)
        *,
        number: int = 1,
        at: Instant | None = None,
    ) -> None:
        """Inserts a revision that governs from the instant, by default from now."""
        from_ = self.world.now if at is None else at
        ids = tuple(row.id for row in members)
        revision = Revision(
            revision=number,
            uid=uuid7(),
            effective_at=from_,
            governs_from=from_,
            monitors=ids,
            sli=ids,
            policies=policies,
        )
        async with self.world.pool.transaction("revise") as tx:
            await declarations.insert_revision(tx, service.key, revision, None, "")

    async def set_paging(self, service: Service, **given: Any) -> None:
        values: dict[str, Any] = {
            "owns_paging": True,
            "page_on": ["down"],
            "page_on_unknown": False,
            "confirm_evaluations": 2,
            "renotify_seconds": 0,
        }
        async with self.world.pool.transaction("set_paging") as tx:
            row = (await service_alerting.lock_alertings(tx, [service.key]))[service.key]
            await service_alerting.update_alerting(tx, row, **{**values, **given})

    async def on_call(self, channel: UUID | None) -> int:
        """Creates a schedule with one permanent participant, or with none."""
        async with self.world.pool.transaction("on_call") as tx:
            schedule: int = await tx.value(
                "insert into oncall_schedules (org, uid, project, name, anchor_at, shift_seconds,"
                " created_at, updated_at) values (%(org)s, %(uid)s, %(project)s, 'rota',"
                " at(%(now)s), 3600, at(%(now)s), at(%(now)s)) returning id",
                org=self.world.org,
                uid=uuid7(),
                project=self.world.project,
                now=self.world.now,
            )
            if channel is not None:
                row = await select_channel(tx, channel)
                assert row is not None
                await tx.execute(
                    "insert into oncall_participants (org, schedule, place, channel)"
                    " values (%(org)s, %(schedule)s, 1, %(channel)s)",
                    org=self.world.org,
                    schedule=schedule,
                    channel=row.id,
                )
        return schedule

    async def enable(self, channel: UUID, *, enabled: bool) -> None:
        await self.set(
            "update notification_channels set enabled = %(enabled)s where uid = %(uid)s",
            enabled=enabled,
            uid=channel,
        )

    async def deliver(self) -> None:
        """Marks all pending deliveries as delivered."""
        await self.set(
            "update outbox set status = 'delivered', ready = true where status = 'pending'"
        )

    async def set(self, query: str, **given: Any) -> None:
        async with self.world.pool.transaction("set") as tx:
            await tx.execute(query, **given)

    async def failed_open(self) -> list[str | None]:
        rows = await self.world.rows("select failed_open from outages order by id")
        return [reason for (reason,) in rows]

    async def live(self, service: Service) -> tuple[str, int, str | None]:
        rows = await self.world.rows(
            "select live_state, live_streak, live_reason from service_alerting"
            " where service = %(id)s",
            id=service.id,
        )
        return rows[0]
