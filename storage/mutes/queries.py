"""Reads of mutes: the list of a project, and the mutes in force for an object."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from ..core.key import MonitorKey, ServiceKey, key_arrays
from ..engine.pools import Tx
from .rows import MuteRow
from .rules.label_matcher import BadMatcher, Labels, match_all, parse_matchers, plain_labels
from .rules.mute import labels_of_monitor, labels_of_service
from .tables import COLUMNS, FROM, select_mute, select_starting

LISTED_MOST = 500
# Those that have not ended come first, in the order of their end.
_OF_PROJECT = f"""
select {COLUMNS} {FROM} where x.org = %(org)s and x.project = %(project)s
order by x.ends_at <= at(%(now)s), case when x.ends_at > at(%(now)s) then x.ends_at end,
  x.ends_at desc, x.id
limit %(most)s
"""
_IN_FORCE = f"""
select {COLUMNS} {FROM}
where x.org = any(%(orgs)s::int[]) and x.starts_at <= at(%(now)s) and x.ends_at > at(%(now)s)
order by x.org, x.ends_at, x.id
"""
_MONITORS = """
select m.org, m.id, m.project, m.name, m.slug, m.type, r.region, m.tags
from unnest(%(orgs)s::int[], %(ids)s::int[]) as k(org, id)
  join monitors m on m.org = k.org and m.id = k.id join shards r on r.id = m.shard
"""
_SERVICES = """
select s.org, s.id, s.project, s.name, s.slug
from unnest(%(orgs)s::int[], %(ids)s::int[]) as k(org, id)
  join services s on s.org = k.org and s.id = k.id
"""
_INCIDENT = """
select org, project, monitor, service, labels from incidents where uid = %(uid)s
"""


async def select_shown_mute(tx: Tx, uid: UUID) -> MuteRow | None:
    return await select_mute(tx, uid)


async def select_mutes_of(tx: Tx, org: int, project: int) -> list[MuteRow]:
    """Returns the mutes of a project, those in force and pending first."""
    return await tx.structs(
        MuteRow, _OF_PROJECT, org=org, project=project, now=tx.now, most=LISTED_MOST
    )


async def select_starting_mutes(tx: Tx, most: int) -> list[tuple[int, int]]:
    """Returns (organization, project) of mutes whose start has come and is not handled."""
    return await select_starting(tx, most)


async def mutes_of_monitors(
    tx: Tx,
    keys: Collection[MonitorKey],
    owners: Mapping[MonitorKey, Sequence[ServiceKey]] | None = None,
) -> dict[MonitorKey, list[MuteRow]]:
    """Returns the mutes in force of each monitor. A monitor without one is absent.

    Args:
        owners: services that page for a monitor. Their mutes apply to it too.
    """
    mutes = await _in_force(tx, {key[0] for key in keys})
    if not mutes:
        return {}
    owners = owners or {}
    of_service = await mutes_of_services(tx, {one for found in owners.values() for one in found})
    rows = await tx.rows(_MONITORS, **key_arrays(keys, "ids"))
    found: dict[MonitorKey, list[MuteRow]] = {}
    for org, key, project, *described in rows:
        labels = labels_of_monitor(*described)
        mine = [
            mute
            for mute in mutes
            if (mute.org, mute.project) == (org, project)
            and (mute.monitor == key or _match(mute, labels))
        ]
        for owner in owners.get(MonitorKey((org, key)), ()):
            mine += [mute for mute in of_service.get(owner, ()) if mute not in mine]
        if mine:
            found[MonitorKey((org, key))] = mine
    return found


async def mutes_of_services(
    tx: Tx, keys: Collection[ServiceKey]
) -> dict[ServiceKey, list[MuteRow]]:
    """Returns the mutes in force of each service. A service without one is absent."""
    mutes = await _in_force(tx, {key[0] for key in keys})
    if not mutes:
        return {}
    found: dict[ServiceKey, list[MuteRow]] = defaultdict(list)
    for org, key, project, name, slug in await tx.rows(_SERVICES, **key_arrays(keys, "ids")):
        labels = labels_of_service(name, slug)
        for mute in mutes:
            if (mute.org, mute.project) == (org, project) and (
                mute.service == key or _match(mute, labels)
            ):
                found[ServiceKey((org, key))].append(mute)
    return dict(found)


async def mutes_of_incident(tx: Tx, incident: UUID) -> list[MuteRow]:
    """Returns the mutes in force of an incident: those of its monitor, service or alert."""
    row = await tx.row(_INCIDENT, uid=incident)
    if row is None:
        return []
    org, project, monitor, service, labels = row
    if monitor is not None:
        key = MonitorKey((org, monitor))
        return (await mutes_of_monitors(tx, [key])).get(key, [])
    if service is not None:
        of = ServiceKey((org, service))
        own = (await mutes_of_services(tx, [of])).get(of, [])
        return own + [one for one in await _of_labels(tx, org, project, labels) if one not in own]
    return await _of_labels(tx, org, project, labels)


async def mutes_of_labels(
    tx: Tx, org: int, project: int, labels: Mapping[str, str]
) -> list[MuteRow]:
    """Returns the mutes in force of an external alert."""
    return await _of_labels(tx, org, project, dict(labels))


async def _of_labels(
    tx: Tx, org: int, project: int, labels: dict[str, str] | None
) -> list[MuteRow]:
    if not labels:
        return []
    found = plain_labels(labels)
    mutes = await _in_force(tx, {org})
    return [mute for mute in mutes if mute.project == project and _match(mute, found)]


async def _in_force(tx: Tx, orgs: Collection[int]) -> list[MuteRow]:
    if not orgs:
        return []
    return await tx.structs(MuteRow, _IN_FORCE, orgs=sorted(orgs), now=tx.now)


def _match(mute: MuteRow, labels: Labels) -> bool:
    if not mute.matchers:
        return False
    try:
        return match_all(parse_matchers(mute.matchers), labels)
    except BadMatcher:
        # Stored by another version. What cannot be read mutes nothing.
        return False
