"""Helpers for tests of changes: services, records of their changes, and decisions of the gate."""

from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from leadline.storage.changes.rules.change import ChangeKind, ChangePhaseName, Record
from leadline.storage.changes.transactions import RecordedChange, record_change
from leadline.storage.core.instant import DAY, MILLISECOND, Instant
from leadline.storage.engine.partitions import make_partitions
from leadline.storage.engine.pools import Pool
from leadline.storage.services.rows import ServiceRow
from leadline.storage.services.transactions.create_service import ServiceDraft, create_service
from tests.support.worlds.world import World

_DECIDE = """
insert into gate_decisions (org, project, service, uid, evaluated_at, service_uid, service_slug,
  service_name, state, action, unoverridden_action, reasons, actor_label, via_token, evidence)
values (%(org)s, %(project)s, %(service)s, %(uid)s, at(%(at)s), %(service_uid)s, %(slug)s, %(name)s,
  %(state)s, %(action)s, %(unoverridden)s, '[]', 'ci', true, '{}')
"""
_OPEN = """
insert into incidents (org, uid, project, service, seq, title, status, impact, source, started_at,
  created_at, updated_at)
values (%(org)s, %(uid)s, %(project)s, %(service)s, 1, 'down', 'investigating', 'major', 'manual',
  at(%(at)s), at(%(at)s), at(%(at)s))
"""


async def make_service(world: World, slug: str, *upstreams: UUID) -> ServiceRow:
    async with world.pool.transaction("make_service") as tx:
        draft = ServiceDraft(name=slug, slug=slug, depends_on=list(upstreams))
        return await create_service(tx, world.editor, world.project_uid, draft)


def record(phase: str = "started", external_id: str = "1", **given: Any) -> Record:
    values = {"kind": ChangeKind.DEPLOY, "source": "ci", **given}
    return Record(phase=ChangePhaseName(phase), external_id=external_id, **values)


async def say(world: World, service: ServiceRow, *args: str, **given: Any) -> RecordedChange:
    """Records one phase in its own transaction."""
    async with world.pool.transaction("record_change") as tx:
        one = record(*args, **given)
        return await record_change(tx, world.editor, world.project_uid, service.uid, one)


async def decide(
    pool: Pool,
    service: ServiceRow,
    at: Instant,
    state: str = "ALLOW",
    action: str | None = "ALLOW",
    unoverridden: str | None = "ALLOW",
) -> UUID:
    """Stores a decision about a service, with the partition that it needs."""
    at = Instant(at - at % MILLISECOND)
    uid = uuid7(nanoseconds=at * 1_000)
    await make_partitions(
        pool, "gate_decisions", "evaluated_at", from_=at, through=at, width_us=DAY
    )
    async with pool.transaction("decide") as tx:
        await tx.execute(
            _DECIDE,
            org=service.org,
            project=service.project,
            service=service.id,
            uid=uid,
            at=at,
            service_uid=service.uid,
            slug=service.slug,
            name=service.name,
            state=state,
            action=action,
            unoverridden=unoverridden,
        )
    return uid


async def open_incident(world: World, service: ServiceRow | None, at: Instant) -> UUID:
    """Opens an incident at the instant, of a service or of none."""
    uid = uuid7()
    async with world.pool.transaction("open_incident") as tx:
        await tx.execute(
            _OPEN,
            org=world.org,
            uid=uid,
            project=world.project,
            service=None if service is None else service.id,
            at=at,
        )
    return uid
