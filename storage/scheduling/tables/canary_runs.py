"""Running canaries: at most one per monitor, and a limited number per region.

Each slot is a row, so no count is needed. If two transactions insert the same slot, one of them
gets no slot and tries again later.
"""

from collections.abc import Collection
from typing import Final
from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...core.key import MonitorKey, key_arrays
from ...engine.pools import Tx

LEASE_GRACE_SECONDS: Final = 10

_TAKE = """
insert into canary_runs (region, slot, org, monitor, due_at, holder, lease_until, began_at)
select %(region)s, s.slot, m.org, m.id, at(%(due)s), %(holder)s,
  case when %(leases)s then at(%(now)s) + make_interval(secs => m.timeout_seconds + %(grace)s) end,
  at(%(now)s)
from monitors m cross join generate_series(1, %(places)s) s(slot)
where m.org = %(org)s and m.id = %(monitor)s
  and not exists (select from canary_runs r where r.region = %(region)s and r.slot = s.slot)
order by s.slot limit 1
on conflict do nothing
returning slot
"""
# A holder is gone if it is a process without a presence or an agent whose lease expired.
_FREE = """
delete from canary_runs r
where r.region = any(%(regions)s::text[]) and not coalesce(r.lease_until > at(%(now)s), exists (
  select from presences p where p.process = r.holder and not p.ended
    and p.through_at > at(%(now)s) - interval '15 seconds'))
"""
_END = (
    "delete from canary_runs where org = %(org)s and monitor = %(monitor)s and holder = %(holder)s"
)
_END_ALL_BUT = """
delete from canary_runs where holder = %(holder)s
  and (org, monitor) not in (select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
"""
_END_WINDOW = """
delete from canary_runs where org = %(org)s and monitor = %(monitor)s and due_at = at(%(due)s)
"""
_OF_REGION = """
select region, slot, org, monitor, due_at, holder, began_at from canary_runs
where region = %(region)s order by slot
"""


class CanaryRun(msgspec.Struct, frozen=True):
    region: str
    slot: int
    org: int
    monitor: int
    due_at: Instant | None
    holder: UUID
    began_at: Instant


async def acquire_slot(
    tx: Tx,
    region: str,
    key: MonitorKey,
    due: Instant | None,
    holder: UUID,
    places: int,
    *,
    leases: bool = False,
) -> bool:
    """Returns False if the monitor already has a run or the region has no free slot.

    With `leases`, for a holder without a presence, the slot expires LEASE_GRACE_SECONDS after the
    run's timeout.
    """
    slot = await tx.value(
        _TAKE,
        region=region,
        org=key[0],
        monitor=key[1],
        due=due,
        holder=holder,
        leases=leases,
        grace=LEASE_GRACE_SECONDS,
        places=places,
        now=tx.now,
    )
    return slot is not None


async def release_slots(tx: Tx, regions: Collection[str]) -> int:
    """Deletes the runs of holders that are gone. Returns their number."""
    return await tx.execute(_FREE, regions=list(regions), now=tx.now)


async def end_run(tx: Tx, key: MonitorKey, holder: UUID) -> None:
    await tx.execute(_END, org=key[0], monitor=key[1], holder=holder)


async def end_all_but(tx: Tx, holder: UUID, keys: Collection[MonitorKey]) -> int:
    """Deletes the runs of a holder except those that it reports as running."""
    return await tx.execute(_END_ALL_BUT, holder=holder, **key_arrays(keys, "monitors"))


async def end_window(tx: Tx, key: MonitorKey, due: Instant) -> None:
    """Deletes the run of a window that has its result, from any holder."""
    await tx.execute(_END_WINDOW, org=key[0], monitor=key[1], due=due)


async def select_runs(tx: Tx, region: str) -> list[CanaryRun]:
    return await tx.structs(CanaryRun, _OF_REGION, region=region)
