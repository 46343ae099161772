"""Revisions of service declarations, and the epochs within them."""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from ...core.instant import Instant
from ...core.key import ServiceKey, key_arrays
from ...engine.pools import Tx
from ..rows import EpochRow
from ..rules.epoch import Epoch, Revision

_INSERT = """
insert into service_revisions (org, service, revision, uid, effective_at, governs_from, monitors,
  sli, mode, healthy_min, degraded_min, region_mode, healthy_min_regions, degraded_min_regions,
  missing_data, active_multiplier, active_floor_us, created_at, created_by, created_by_label)
values (%(org)s, %(service)s, %(revision)s, %(uid)s, at(%(effective_at)s), at(%(governs_from)s),
  %(monitors)s, %(sli)s, %(mode)s, %(healthy_min)s, %(degraded_min)s, %(region_mode)s,
  %(healthy_min_regions)s, %(degraded_min_regions)s, %(missing_data)s, %(active_multiplier)s,
  %(active_floor_us)s, at(%(now)s), (select id from users where uid = %(author)s), %(label)s)
"""
# Services with any revision that declares one of the monitors.
_DECLARING = """
select distinct r.org, r.service from service_revisions r
where r.org = %(org)s and r.monitors && %(monitors)s::int[]
order by r.service
"""


_EPOCHS = """
select e.org, e.service, e.seq, e.uid, e.revision, e.effective_at, e.snapshot_hash, e.members
from service_epochs e join unnest(%(orgs)s::int[], %(services)s::int[]) as k(org, service)
  on k.org = e.org and k.service = e.service
order by e.org, e.service, e.effective_at
"""
_PUT_EPOCHS = """
insert into service_epochs (org, service, seq, uid, revision, effective_at, snapshot_hash, members)
select i.org, i.service, i.seq, i.uid, i.revision, at(i.from_at), i.hash, i.members
from json_to_recordset(%(items)s::json) as i(org int, service int, seq int, uid uuid,
  revision int, from_at bigint, hash text, members int)
on conflict (org, service, effective_at) do update set revision = excluded.revision,
  snapshot_hash = excluded.snapshot_hash, members = excluded.members
"""


async def insert_revision(
    tx: Tx, key: ServiceKey, revision: Revision, author: UUID | None, label: str
) -> None:
    """Inserts a revision. The caller has locked the service."""
    policies = revision.policies
    await tx.execute(
        _INSERT,
        org=key[0],
        service=key[1],
        revision=revision.revision,
        uid=revision.uid,
        effective_at=revision.effective_at,
        governs_from=revision.governs_from,
        monitors=list(revision.monitors),
        sli=list(revision.sli),
        mode=policies.mode.value,
        healthy_min=policies.healthy_min,
        degraded_min=policies.degraded_min,
        region_mode=policies.region_mode.value,
        healthy_min_regions=policies.healthy_min_regions,
        degraded_min_regions=policies.degraded_min_regions,
        missing_data=policies.missing_data.value,
        active_multiplier=policies.active_multiplier,
        active_floor_us=policies.active_floor_us,
        author=author,
        label=label,
        now=tx.now,
    )


async def select_declaring(tx: Tx, org: int, monitors: Sequence[int]) -> list[ServiceKey]:
    """Returns the services with a present or past revision that declares one of the monitors."""
    rows = await tx.rows(_DECLARING, org=org, monitors=list(monitors))
    return [ServiceKey((org_, service)) for org_, service in rows]


async def select_epochs(tx: Tx, services: Iterable[ServiceKey]) -> dict[ServiceKey, list[EpochRow]]:
    """Returns the stored epochs in the order of their start.

    Numbers need not ascend: a late edit gets a higher number than an epoch that starts after it.
    """
    keys = list(services)
    rows = await tx.structs(EpochRow, _EPOCHS, **key_arrays(keys, "services"))
    found: dict[ServiceKey, list[EpochRow]] = {key: [] for key in keys}
    for row in rows:
        found[ServiceKey((row.org, row.service))].append(row)
    return found


async def put_epochs(
    tx: Tx, found: dict[ServiceKey, Sequence[Epoch]]
) -> dict[ServiceKey, dict[Instant, int]]:
    """Upserts new and changed epochs of locked services. Returns their numbers by start."""
    known = await select_epochs(tx, found)
    items: list[dict[str, Any]] = []
    numbers: dict[ServiceKey, dict[Instant, int]] = {}
    for key, each in found.items():
        seqs = {row.effective_at: row for row in known[key]}
        last = max((row.seq for row in known[key]), default=0)
        numbers[key] = {}
        for epoch in each:
            row = seqs.get(epoch.from_)
            if row is None:
                last += 1
            seq = last if row is None else row.seq
            numbers[key][epoch.from_] = seq
            said = (epoch.revision.revision, epoch.snapshot_hash)
            if row is None or (row.revision, row.snapshot_hash) != said:
                items.append(_item(key, seq, epoch))
    if items:
        await tx.execute(_PUT_EPOCHS, items=msgspec.json.encode(items).decode())
    return numbers


def _item(key: ServiceKey, seq: int, epoch: Epoch) -> dict[str, Any]:
    return {
        "org": key[0],
        "service": key[1],
        "seq": seq,
        "uid": str(uuid7()),
        "revision": epoch.revision.revision,
        "from_at": epoch.from_,
        "hash": epoch.snapshot_hash,
        "members": len(epoch.members),
    }
