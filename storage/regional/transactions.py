"""Creation, edit and deletion of a regional monitor, with all its parts in one transaction."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from ..accounts.rows import ProjectRow
from ..accounts.rules.access import Principal
from ..accounts.tables import tenant_deletion as removals
from ..accounts.transactions.authorize import NOT_FOUND, demand_project, demand_row, is_managed
from ..core.key import MonitorKey
from ..core.refusal import Refused
from ..core.slug import free_slug
from ..engine.keyring import Keyring
from ..engine.pools import Tx
from ..monitors.queries.monitors import select_monitor
from ..monitors.rows import MonitorRow
from ..monitors.rules.monitor import MonitorDraft
from ..monitors.tables import compositions, monitors
from ..monitors.transactions import config_secrets
from ..monitors.transactions.create_monitor import (
    CREATE,
    MONITORS_OF_PROJECT_MOST,
    create_held,
    create_monitor,
)
from ..monitors.transactions.edit_monitor import (
    EDIT,
    edit_held,
    edit_monitor,
    merged_draft,
    with_stored_secrets,
)
from ..monitors.transactions.lock_monitor import REGIONAL
from ..monitors.transactions.lock_references import lock_references
from ..monitors.transactions.monitor_audit import target_of
from ..monitors.transactions.monitor_draft import check_draft, expect_no_circle, lock_dependencies
from ..monitors.transactions.write_batch import MonitorWriteBatch
from ..oncall.transactions.check_targets import lock_policy_named
from ..retirement.transactions.delete_monitor import (
    delete_monitor,
    expect_unused,
    remove_monitor,
)
from ..scheduling.tables import shards as schedules
from . import tables
from .rules import (
    OF_COMPOSITE,
    RegionSpread,
    composite_config,
    composite_draft,
    given_to_composite,
    given_to_member,
    majority,
    member_draft,
    spread_faults,
)

_SCHEDULE: Final = frozenset({"interval_seconds", "schedule", "timezone"})


@dataclass(frozen=True, slots=True)
class RegionalMonitor:
    """The locked parts. `members` are in the order of their ids."""

    composite: MonitorRow
    members: Sequence[MonitorRow]

    @property
    def down_regions(self) -> int:
        return int(msgspec.json.decode(self.composite.config)["quorum"])


async def create_any(
    tx: Tx,
    principal: Principal,
    project: UUID,
    draft: MonitorDraft,
    spread: RegionSpread,
    keyring: Keyring,
    regions: frozenset[str],
) -> MonitorRow:
    """Creates a monitor, or with a spread a regional monitor. Returns its composite.

    The region of the draft is then not used.

    Raises:
        Refused as `create_monitor`; invalid for `regions` and `down_regions`.
    """
    if spread.regions is None:
        if spread.down_regions is not None:
            raise Refused("invalid", "down_regions", "is used with regions only")
        return await create_monitor(tx, principal, project, draft, keyring, regions)
    home = await demand_project(tx, principal, CREATE, project)
    wanted = list(spread.regions)
    down = majority(len(wanted)) if spread.down_regions is None else spread.down_regions
    _expect_spread(draft.type, wanted, down, regions)
    for region in wanted:
        check_draft(member_draft(draft, region), regions)
    if not await removals.lock_project_quota(tx, home.org, home.id):
        raise Refused(NOT_FOUND)
    await _expect_room(tx, home.org, home.id, len(wanted) + 1)
    await compositions.lock_compositions_of(tx, project)
    shards = await _ensured(tx, wanted)
    refers = {"depends_on": draft.depends_on, "escalation_policy_id": draft.escalation_policy_id}
    await _lock_references_of(tx, home, draft, refers, opens_incidents=draft.auto_incident)
    together = MonitorWriteBatch(principal, edits_regional=True)
    made = []
    for region in wanted:
        member = await _with_free_slug(tx, home, member_draft(draft, region))
        made.append(await _made(tx, together, home, member, keyring, shards[region]))
    whole = msgspec.structs.replace(composite_draft(draft, made, down), region=wanted[0])
    check_draft(whole, regions)
    uid = await _made(tx, together, home, whole, keyring, shards[wanted[0]])
    ids = await monitors.select_ids(tx, home.org, home.id, [*made, uid])
    await tables.join_parts(tx, MonitorKey((home.org, ids[uid])), list(ids.values()))
    await together.flush(tx)
    return await _read(tx, uid)


async def edit_any(
    tx: Tx,
    principal: Principal,
    monitor: UUID,
    given: dict[str, Any],
    spread: RegionSpread,
    keyring: Keyring,
    regions: frozenset[str],
) -> Sequence[MonitorRow]:
    """Edits a monitor, or a regional monitor with all its parts. Returns the changed monitors.

    The first one is the monitor itself. A new region gets a member with the settings and secrets of
    the others. The member of a region that is left out is deleted.

    Raises:
        Refused as `edit_monitor`; regional_monitor for a member; invalid for `regions` and
        `down_regions`; in_use if another object uses the member of a region that is left out.
    """
    row = demand_row(principal, EDIT, await select_monitor(tx, monitor))
    if row.regional_of != row.id:
        if spread.is_given:
            raise Refused("invalid", "regions", "can be set for a regional monitor only")
        if row.regional_of is not None:
            raise Refused(REGIONAL)
        return [await edit_monitor(tx, principal, monitor, given, keyring, regions)]
    if "region" in given:
        raise Refused("invalid", "region", "use regions for a regional monitor")
    await compositions.lock_compositions_around(tx, monitor)
    present = frozenset((await tables.select_regions_of(tx, row.org, [row.id])).get(row.id, ()))
    if not present:
        # It was deleted while this transaction waited.
        raise Refused(NOT_FOUND)
    shards = await _ensured(tx, (regions & set(spread.regions or ())) | present)
    parts = await _lock_parts(tx, principal, row.key)
    wanted = sorted(present) if spread.regions is None else list(spread.regions)
    down = parts.down_regions if spread.down_regions is None else spread.down_regions
    _expect_spread(parts.members[0].type, wanted, down, regions | present)
    edit = _RegionalEdit(principal, parts, given, keyring, regions | present, shards)
    await edit.write(tx, wanted, down)
    return [await _read(tx, monitor), *parts.members]


async def delete_any(tx: Tx, principal: Principal, monitor: UUID) -> Sequence[MonitorRow]:
    """Deletes a monitor, or a regional monitor with all its parts. Returns what was deleted.

    Raises:
        Refused as `delete_monitor`; regional_monitor for a member; in_use if another object uses a
        part.
    """
    row = demand_row(principal, EDIT, await select_monitor(tx, monitor))
    if row.regional_of != row.id:
        return [await delete_monitor(tx, principal, monitor)]
    await compositions.lock_compositions_around(tx, monitor)
    parts = await _lock_parts(tx, principal, row.key, to_delete=True)
    tx.holds_all()
    together = MonitorWriteBatch(principal, edits_regional=True)
    for part in (parts.composite, *parts.members):
        await expect_unused(tx, part)
        await remove_monitor(tx, part)
        together.removed(part.key, part.shard)
        together.audit(part.org, "monitor.delete", target_of(part))
    await together.flush(tx)
    return [parts.composite, *parts.members]


@dataclass(frozen=True, slots=True)
class _RegionalEdit:
    """An edit whose parts are locked. `shards` has every present and new region."""

    principal: Principal
    parts: RegionalMonitor
    given: dict[str, Any]
    keyring: Keyring
    regions: frozenset[str]
    shards: dict[str, int]

    async def write(self, tx: Tx, wanted: Sequence[str], down_regions: int) -> None:
        composite, members = self.parts.composite, self.parts.members
        home = await demand_project(tx, self.principal, EDIT, composite.project_uid)
        together = MonitorWriteBatch(self.principal, edits_regional=True)
        kept = {row.region: row for row in members if row.region in wanted}
        added = [region for region in wanted if region not in kept]
        left = [row for row in members if row.region not in wanted]
        draft = self._draft()
        opens = self.given.get("auto_incident", composite.auto_incident)
        await _lock_references_of(tx, home, draft, self.given, opens_incidents=opens)
        uids = {region: row.uid for region, row in kept.items()}
        if added:
            await _expect_room(tx, home.org, home.id, len(added))
        for region in added:
            new = member_draft(msgspec.structs.replace(draft, slug=composite.slug), region)
            check_draft(new, self.regions)
            new = await _with_free_slug(tx, home, new)
            uids[region] = await _made(tx, together, home, new, self.keyring, self.shards[region])
        for region, row in sorted(kept.items(), key=lambda item: item[1].id):
            part = given_to_member(self.given, region)
            await edit_held(tx, together, row, part, self.keyring, self.regions)
        shown = given_to_composite(self.given)
        if _SCHEDULE & self.given.keys():
            shown["interval_seconds"] = draft.interval_seconds
        children = [uids[region] for region in wanted]
        await self._write_composite(tx, together, shown, composite_config(children, down_regions))
        ids = await monitors.select_ids(tx, home.org, home.id, list(uids.values()))
        await tables.join_parts(tx, composite.key, list(ids.values()))
        for row in left:
            await expect_unused(tx, row)
            await remove_monitor(tx, row)
            together.removed(row.key, row.shard)
            together.audit(row.org, "monitor.delete", target_of(row))
        await together.flush(tx)

    async def _write_composite(
        self, tx: Tx, together: MonitorWriteBatch, given: dict[str, Any], config: dict[str, Any]
    ) -> None:
        composite = self.parts.composite
        if config != msgspec.json.decode(composite.config):
            given["config"] = config
        await edit_held(tx, together, composite, given, self.keyring, self.regions)
        if "depends_on" in given:
            await expect_no_circle(tx, composite)

    def _draft(self) -> MonitorDraft:
        """Returns the draft of a new member, with the settings and secrets of the first one."""
        composite, first = self.parts.composite, self.parts.members[0]
        shared = {name: self.given[name] for name in self.given if name not in OF_COMPOSITE}
        named = {"name": composite.name, **shared}
        return with_stored_secrets(first, merged_draft(first, named), self.keyring)


def _expect_spread(
    kind: str, wanted: Sequence[str], down_regions: int, regions: frozenset[str]
) -> None:
    for fault in spread_faults(kind, wanted, down_regions):
        raise Refused("invalid", fault.field, fault.rule)
    for region in wanted:
        if region not in regions:
            raise Refused("invalid", "regions", f"{region} is not a region of this installation")


async def _expect_room(tx: Tx, org: int, project: int, more: int) -> None:
    if await monitors.count_monitors(tx, org, project) + more > MONITORS_OF_PROJECT_MOST:
        raise Refused("invalid", "project", f"can have {MONITORS_OF_PROJECT_MOST} monitors")


async def _ensured(tx: Tx, regions: Collection[str]) -> dict[str, int]:
    """Returns the shards of the regions. In the order of their names, which all edits share."""
    return {
        region: await schedules.ensure_shard(tx, 0, region, tx.now) for region in sorted(regions)
    }


async def _lock_references_of(
    tx: Tx,
    home: ProjectRow,
    draft: MonitorDraft,
    given: Mapping[str, Any],
    *,
    opens_incidents: bool,
) -> None:
    """Locks what the parts refer to, in the order of the ranks, as each part locks it again."""
    depends_on = given.get("depends_on", [])
    await lock_dependencies(
        tx, home.org, home.id, msgspec.structs.replace(draft, depends_on=depends_on)
    )
    plain, _ = config_secrets.split(draft.type, draft.config)
    await lock_references(tx, home.org, home.id, plain)
    policy = given.get("escalation_policy_id")
    await lock_policy_named(tx, home.org, home.id, policy, opens_incidents=opens_incidents)
    tx.holds_all()


async def _with_free_slug(tx: Tx, home: ProjectRow, draft: MonitorDraft) -> MonitorDraft:
    """Returns the draft of a member. Its slug is derived, so another monitor may have it."""
    if draft.slug is None:
        return draft
    slug = free_slug(draft.slug, await monitors.select_slugs(tx, home.org, home.id))
    return msgspec.structs.replace(draft, slug=slug)


async def _made(
    tx: Tx,
    together: MonitorWriteBatch,
    home: ProjectRow,
    draft: MonitorDraft,
    keyring: Keyring,
    shard: int,
) -> UUID:
    uid = uuid7()
    await create_held(tx, together, home, draft, keyring, uid, shard)
    return uid


async def _lock_parts(
    tx: Tx, principal: Principal, key: MonitorKey, *, to_delete: bool = False
) -> RegionalMonitor:
    """Locks the parts in the order of their ids.

    Raises:
        Refused not_found; managed_by_file, if a bundle has taken a part over.
    """
    org, composite = key
    ids = await tables.select_parts(tx, key)
    if to_delete:
        await monitors.lock_monitors_to_delete(tx, org, ids)
    else:
        await monitors.lock_monitors_of(tx, org, ids)
    rows = await monitors.select_monitors_by_key(tx, [MonitorKey((org, part)) for part in ids])
    if key not in rows:
        raise Refused(NOT_FOUND)
    if any(is_managed(principal, row.managed_by, row.orphaned_at) for row in rows.values()):
        raise Refused("managed_by_file")
    members = [row for row in rows.values() if row.id != composite]
    return RegionalMonitor(rows[key], sorted(members, key=lambda row: row.id))


async def _read(tx: Tx, uid: UUID) -> MonitorRow:
    row = await select_monitor(tx, uid)
    assert row is not None, "it is locked or new"
    return row
