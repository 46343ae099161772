"""A small world on a real database: one organization, one project, and a clock that tests set."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from leadline.storage.accounts.rules.access import CredentialKind, Membership, Principal, Role
from leadline.storage.accounts.tables import projects
from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.engine.keyring import Keyring
from leadline.storage.engine.pools import Pool, open_pool
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.rules.monitor import MonitorDraft
from leadline.storage.monitors.transactions.create_monitor import create_monitor
from leadline.storage.results.rules.incoming_result import IncomingResult, ResultSource
from leadline.storage.scheduling.tables import presences

START = Instant(1_767_571_200_000_000)
# One wide partition instead of a month of days, because these tests do not test partitioning.
_ONE_PARTITION = """
create table {parent}_all partition of {parent}
for values from ('2025-12-01T00:00:00Z') to ('2026-03-01T00:00:00Z')
"""
REGIONS = frozenset({"core", "eu"})


@dataclass
class World:
    pool: Pool
    org: int
    project: int
    project_uid: UUID
    editor: Principal
    keyring: Keyring
    now: Instant = START
    made: list[MonitorRow] = field(default_factory=list)

    async def monitor(self, **given: Any) -> MonitorRow:
        values: dict[str, Any] = {
            "name": f"m{len(self.made)}",
            "type": "http",
            "target": "http://127.0.0.1/",
        }
        if given.get("type") == "push":
            values["target"] = ""
        values |= given
        async with self.pool.transaction("create_monitor") as tx:
            row = await create_monitor(
                tx, self.editor, self.project_uid, MonitorDraft(**values), self.keyring, REGIONS
            )
        self.made.append(row)
        return row

    def result(self, row: MonitorRow, ts: Instant, up: bool, **given: Any) -> IncomingResult:
        values: dict[str, Any] = {
            "source": ResultSource.PUSH if row.type == "push" else ResultSource.RUN
        }
        if row.type != "push":
            values["reach_us"] = (row.timeout_seconds + 120) * SECOND
        values |= given
        return IncomingResult(org=row.org, monitor=row.id, shard=row.shard, ts=ts, up=up, **values)

    async def listen(self, from_: Instant, through: Instant) -> None:
        """Stores the presence of a process that accepted pushes during the whole span."""
        async with self.pool.transaction("listen") as tx:
            process = uuid7()
            await presences.begin_presence(
                tx, process, from_, "here", ["all"], ["core"], "0", accepts_pushes=True
            )
            await tx.execute(
                "update presences set through_at = at(%(through)s) where process = %(process)s",
                through=through,
                process=process,
            )

    async def forget_jobs(self) -> None:
        """Deletes the jobs, so that only windows are left: a new monitor requests a run besides its
        schedule.
        """
        async with self.pool.transaction("forget_jobs") as tx:
            await tx.execute("delete from jobs")

    async def rows(self, query: str, **given: Any) -> list[tuple[Any, ...]]:
        async with self.pool.transaction("look", read_only=True) as tx:
            return await tx.rows(query, **given)

    async def ledger(self, row: MonitorRow) -> list[tuple[Instant, str, str | None]]:
        return await self.rows(
            "select due_at, verdict::text, reason from ledger where monitor = %(m)s "
            "order by due_at",
            m=row.id,
        )

    async def state(self, row: MonitorRow) -> tuple[str, int]:
        found = await self.rows(
            "select status, failures from monitor_states where monitor = %(m)s", m=row.id
        )
        return found[0]

    async def beats(self, row: MonitorRow) -> list[tuple[Instant, bool, str | None]]:
        return await self.rows(
            "select ts, up, msg from heartbeats where monitor = %(m)s order by ts", m=row.id
        )


@asynccontextmanager
async def small_world(dsn: str) -> AsyncIterator[World]:
    """Opens the world in a migrated database; inserts it first if `make_world` did not."""
    current: list[World] = []

    def clock() -> Instant:
        return current[0].now if current else START

    async with open_pool(dsn, name="test", size=8, clock=clock) as pool:
        async with pool.transaction("find", read_only=True) as tx:
            found = await tx.rows("select org, id, uid from projects")
        if not found:
            found = [await _found(pool)]
        ((org, project, uid),) = found
        member = Membership(org, None, Role.EDITOR)
        editor = Principal(CredentialKind.SESSION, (member,), user=uuid7(), label="editor@acme")
        world = World(pool, org, project, uid, editor, Keyring(b"k" * 32))
        current.append(world)
        yield world


async def make_world(dsn: str) -> None:
    """Inserts the world into a migrated database, which becomes a template of `small_world`.

    Closes its connections, because PostgreSQL clones no database that has one.
    """
    async with open_pool(dsn, name="world", size=1, clock=lambda: START) as pool:
        await _found(pool)


async def _found(pool: Pool) -> tuple[int, int, UUID]:
    """Returns the organization, the project and the project's uid."""
    uid = uuid7()
    async with pool.transaction("found") as tx:
        for parent in ("heartbeats", "expected_runs"):
            await tx.execute(_ONE_PARTITION.format(parent=parent))
        org = await projects.insert_organization(tx, uuid7(), "acme", "Acme")
        assert org is not None
        project = await projects.insert_project(tx, org, uid, "shop", "Shop")
        assert project is not None
    return org, project, uid
