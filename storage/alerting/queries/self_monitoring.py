"""Facts about Leadline itself, from which self-monitoring decides."""

from collections.abc import Collection
from typing import Final

from ...core.instant import Instant
from ...engine.keyring import CannotOpen, CipherContext, Keyring
from ...engine.pools import Tx
from ...monitors.tables.encrypted_columns import sample_sealed
from ..rules.self_condition import (
    DEAD_COUNTS_US,
    DELIVERY_LATE_US,
    RESERVED_LAG_US,
    SEALED_LAG_US,
)

# Push monitors and composites need no prober. The query first reads the shards, usually 0.
_UNWATCHED: Final = """
select m.org, m.project, h.region, count(*)::int
from monitors m join shards h on h.id = m.shard
  join projects p on p.org = m.org and p.id = m.project and p.deleting_since is null
where m.enabled and m.type <> all('{push,composite}'::text[])
  and m.shard = any(array(select id from shards where region <> all(%(live)s::text[])))
group by m.org, m.project, h.region
"""
# Subscribers are strangers, whose addresses can be wrong.
_FAILED: Final = """
select ((select count(*) from outbox o
    join destinations d on d.org = o.org and d.id = o.destination and d.subscriber is null
  where o.status = 'dead' and o.updated_at > at(%(dead_after)s) and o.topic <> 'subscription')
+ (select count(*) from outbox o
    join destinations d on d.org = o.org and d.id = o.destination and d.subscriber is null
      and d.failures = 0
    left join notification_channels c on c.org = d.org and c.id = d.channel
    left join webhooks w on w.org = d.org and w.id = d.webhook
  where o.status = 'pending' and o.ready and o.lease is null and o.due_at < at(%(late_before)s)
    and coalesce(c.enabled, w.enabled, true)))::int
"""
# A shard without monitors does not move.
_LAGS: Final = """
select exists (select from shards h
  where (h.reserved_through < at(%(reserved_before)s) or h.settled_through < at(%(sealed_before)s))
    and exists (select from monitors m where m.shard = h.id and m.enabled))
"""
_PROJECT: Final = """
select p.org, p.id from projects p join organizations o on o.id = p.org
where o.slug = %(organization)s and p.slug = %(project)s and p.deleting_since is null
"""
# The chosen policy, or the only one.
_DEFAULT_POLICY: Final = """
select coalesce(p.default_policy, (select case when count(*) = 1 then min(e.id) end
  from escalation_policies e where e.org = p.org and e.project = p.id))
from projects p where p.org = %(org)s and p.id = %(project)s
"""


async def select_unwatched(tx: Tx, live: Collection[str]) -> list[tuple[int, int, str, int]]:
    """Returns (organization, project, region, monitors) for regions that are not live."""
    rows = await tx.rows(_UNWATCHED, live=sorted(live))
    return [(row[0], row[1], row[2], row[3]) for row in rows]


async def count_failed_deliveries(tx: Tx, now: Instant) -> int:
    """Returns the number of recent dead letters and of deliveries that wait for a sender."""
    count: int = await tx.value(
        _FAILED, dead_after=now - DEAD_COUNTS_US, late_before=now - DELIVERY_LATE_US
    )
    return count


async def lags(tx: Tx, now: Instant) -> bool:
    """Returns whether the reservation of runs or the sealing of results is late."""
    found: bool = await tx.value(
        _LAGS, reserved_before=now - RESERVED_LAG_US, sealed_before=now - SEALED_LAG_US
    )
    return found


async def opens_nothing(tx: Tx, keyring: Keyring) -> bool:
    """Returns whether encrypted values exist and the keyring decrypts none of a sample."""
    samples = await sample_sealed(tx)
    for column, uid, value in samples:
        try:
            keyring.open(value, CipherContext(column.table, column.name, uid))
        except CannotOpen:
            continue
        return False
    return bool(samples)


async def select_project_of_slugs(
    tx: Tx, organization: str, project: str
) -> tuple[int, int] | None:
    """Returns the (organization, id) of a project, None without one."""
    row = await tx.row(_PROJECT, organization=organization, project=project)
    return None if row is None else (row[0], row[1])


async def select_default_policy(tx: Tx, org: int, project: int) -> int | None:
    """Returns the default escalation policy of a project: the chosen one, or its only one."""
    key: int | None = await tx.value(_DEFAULT_POLICY, org=org, project=project)
    return key
