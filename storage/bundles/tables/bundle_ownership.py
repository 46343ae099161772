"""Bundle marks of objects: the same four columns in the table of each kind."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final
from uuid import UUID

import msgspec

from ...core.key import ProjectKey
from ...engine.pools import LockRank, Tx
from ..rules.bundle_diff import Kind, OwnershipMark

_MARK: Final = """
update {table} k set managed_by = i.managed_by, bundle_uid = i.bundle_uid,
  bundle_path = i.bundle_path, orphaned_at = at(i.orphaned_at)
from json_to_recordset(%(items)s::json)
  as i(uid uuid, managed_by text, bundle_uid text, bundle_path text, orphaned_at bigint)
where k.org = %(org)s and k.uid = i.uid
"""
_MARK_HOURS: Final = """
update services set hours_managed = %(stated)s
where org = %(org)s and uid = any(%(uids)s) and hours_managed <> %(stated)s
"""
_MARK_CHANNELS: Final = """
update monitors set channels_managed = %(stated)s
where org = %(org)s and uid = any(%(uids)s) and channels_managed <> %(stated)s
"""
_MARK_GATES: Final = """
update services set gate_managed = %(stated)s
where org = %(org)s and uid = any(%(uids)s) and gate_managed <> %(stated)s
"""
_MARK_TARGETS: Final = """
update monitors set targets_managed = %(stated)s
where org = %(org)s and uid = any(%(uids)s) and targets_managed <> %(stated)s
"""
_ENSURE: Final = """
insert into bundle_objects (org, project, kind, uid)
select %(org)s, %(project)s, %(kind)s, unnest(%(uids)s::uuid[]) on conflict do nothing
"""
_FORGET: Final = """
delete from bundle_objects
where org = %(org)s and project = %(project)s and kind = %(kind)s and uid = any(%(uids)s)
"""
_FORGET_WEBHOOKS: Final = """
delete from bundle_objects b
where b.org = %(org)s and b.project = %(project)s and b.kind = 'webhook'
  and not exists (select from webhooks w where w.org = b.org and w.uid = b.uid)
"""
_RELEASE: Final = """
with held as (
  select org, id from {table} where managed_by = %(provider)s{only}
  order by org, id for no key update)
update {table} k set managed_by = '', bundle_uid = null, bundle_path = '', orphaned_at = null
from held where k.org = held.org and k.id = held.id
"""
_RELEASE_OF: Final = """
with held as (
  select org, id, bundle_uid from {table}
  where org = %(org)s and project = %(project)s and managed_by = %(provider)s
    and bundle_path = %(path)s{only}
    and (%(uids)s::text[] is null or bundle_uid = any(%(uids)s::text[]))
  order by org, id for no key update)
update {table} k set managed_by = '', bundle_uid = null, bundle_path = '', orphaned_at = null
from held where k.org = held.org and k.id = held.id
returning held.bundle_uid
"""
# The table of each kind, with the rank of its locks; in their order.
_TABLES: Final[dict[Kind, tuple[str, LockRank]]] = {
    "alert_routes": ("alert_route_lists", LockRank.PROJECT),
    "person": ("bundle_people", LockRank.PROJECT),
    "project_settings": ("bundle_objects", LockRank.PROJECT),
    "maintenance_series": ("bundle_objects", LockRank.PROJECT),
    "status_page": ("bundle_objects", LockRank.PROJECT),
    "webhook": ("bundle_objects", LockRank.PROJECT),
    "service": ("services", LockRank.SERVICE),
    "monitor": ("monitors", LockRank.MONITOR),
    "escalation_policy": ("escalation_policies", LockRank.POLICY),
    "schedule": ("oncall_schedules", LockRank.ROSTER),
    "channel": ("notification_channels", LockRank.CHANNEL),
}
# The kinds in the order of their locks.
KINDS: Final = tuple(_TABLES)


async def put_marks(tx: Tx, kind: Kind, org: int, marks: Sequence[OwnershipMark]) -> None:
    """Writes the marks. The objects are locked or new."""
    if marks:
        items = msgspec.json.encode(marks).decode()
        query = _MARK.format(table=_TABLES[kind][0]) + _only(kind)
        await tx.execute(query, org=org, items=items)


def _only(kind: Kind) -> str:
    """Returns the condition on the kind, in a table that several kinds share."""
    return f" and kind = '{kind}'" if _TABLES[kind][0] == "bundle_objects" else ""


async def ensure_marks(tx: Tx, kind: Kind, project: ProjectKey, uids: Collection[UUID]) -> None:
    """Inserts missing marks of objects in a locked project, without an owner."""
    org, key = project
    await tx.execute(_ENSURE, org=org, project=key, kind=kind, uids=list(uids))


async def forget_marks(tx: Tx, kind: Kind, project: ProjectKey, uids: Collection[UUID]) -> None:
    """Deletes the marks of objects that are gone."""
    org, key = project
    await tx.execute(_FORGET, org=org, project=key, kind=kind, uids=list(uids))


async def forget_webhooks(tx: Tx, project: ProjectKey) -> None:
    """Deletes the marks of webhooks that are gone, also of those that people deleted."""
    await tx.execute(_FORGET_WEBHOOKS, org=project[0], project=project[1])


async def mark_hours(tx: Tx, org: int, stated: Mapping[UUID, bool]) -> None:
    """Stores whether the bundle states the support hours of its services, which are locked."""
    await _mark_stated(tx, _MARK_HOURS, org, stated)


async def mark_channels(tx: Tx, org: int, stated: Mapping[UUID, bool]) -> None:
    """Stores whether the bundle states the channels of its monitors, which are locked."""
    await _mark_stated(tx, _MARK_CHANNELS, org, stated)


async def mark_gates(tx: Tx, org: int, stated: Mapping[UUID, bool]) -> None:
    """Stores whether the bundle states the gate policies of its services, which are locked."""
    await _mark_stated(tx, _MARK_GATES, org, stated)


async def mark_targets(tx: Tx, org: int, stated: Mapping[UUID, bool]) -> None:
    """Stores whether the bundle states the objectives of its monitors, which are locked."""
    await _mark_stated(tx, _MARK_TARGETS, org, stated)


async def _mark_stated(tx: Tx, query: str, org: int, stated: Mapping[UUID, bool]) -> None:
    for is_stated in (False, True):
        uids = [uid for uid, given in stated.items() if given == is_stated]
        if uids:
            await tx.execute(query, org=org, uids=uids, stated=is_stated)


async def release_marks(tx: Tx, kind: Kind, provider: str) -> int:
    """Removes the marks of a provider. Returns their number."""
    table, rank = _TABLES[kind]
    tx.lock_rank(rank, "objects that a provider releases")
    return await tx.execute(_RELEASE.format(table=table, only=_only(kind)), provider=provider)


async def release_marks_of(
    tx: Tx,
    kind: Kind,
    project: ProjectKey,
    provider: str,
    path: str,
    uids: Sequence[str] | None,
) -> list[str]:
    """Removes the marks of one bundle in a project.

    Returns the uids of the objects. `uids` selects some of them; None selects all.
    """
    table, rank = _TABLES[kind]
    tx.lock_rank(rank, "objects that a bundle releases")
    rows = await tx.rows(
        _RELEASE_OF.format(table=table, only=_only(kind)),
        org=project[0],
        project=project[1],
        provider=provider,
        path=path,
        uids=None if uids is None else list(uids),
    )
    return [uid for (uid,) in rows]
