"""Write of a bundle's monitors: new, changed and orphaned ones.

The project is locked, and so are the existing monitors unless in a plan. Each monitor is written
after those it refers to, so that no intermediate cycle occurs.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import msgspec
import trio
from msgspec import UNSET

from ...core.refusal import Refused
from ...engine.pools import Tx
from ...monitors.queries.organization_limits import select_use
from ...monitors.rows import MonitorRef, MonitorRow
from ...monitors.rules.monitor import MonitorDraft, MonitorType
from ...monitors.tables.monitors import select_dependencies, select_monitors_of
from ...monitors.transactions.create_monitor import MONITORS_OF_PROJECT_MOST, create_held
from ...monitors.transactions.edit_monitor import edit_held
from ...monitors.transactions.monitor_draft import check_draft
from ...monitors.transactions.write_batch import MonitorWriteBatch
from ...notifications.tables.channels import put_attached
from ..queries import select_attached, select_stated
from ..rules.bundle import Bundle, MonitorEntry
from ..rules.bundle_default import brief_monitor
from ..rules.bundle_diff import (
    MANAGED_BY,
    BundleAction,
    BundleChange,
    FieldChange,
    change_of,
    in_order,
)
from ..rules.bundle_owner import expect_owned, is_left, left_out, marks_of, owner_change
from ..tables.bundle_ownership import mark_channels, put_marks
from .bundle_context import (
    ApplySource,
    BundleContext,
    EntryContext,
    monitor_ids,
    monitor_words,
    resolve_named,
    under,
    word_for,
)
from .monitor_entries import POLICY, children_of, in_words, present_draft, wanted_draft
from .regional_entries import (
    REGIONAL,
    expect_regional_entries,
    expect_whole,
    state_regional,
    write_regional,
)
from .target_entries import select_targets_in_words, wanted_targets

_CHANNELS = "channels"
# Reported if an entry begins or ends to state them, also if these stay the same.
_CHANNELS_MANAGED = "channels_managed"
_TARGETS = "sla_targets"
_TARGETS_MANAGED = "targets_managed"
# Settings that are not in the row of a monitor, and the policy, whose id is.
_ASIDE = frozenset({POLICY, REGIONAL, _CHANNELS, _CHANNELS_MANAGED, _TARGETS, _TARGETS_MANAGED})
# The event loop runs other tasks after this many entries.
_BREATH = 50


@dataclass(slots=True)
class Wanted:
    """Monitors of the bundle with their drafts and changes."""

    drafts: dict[str, MonitorDraft]
    rows: dict[str, MonitorRow]
    orphans: dict[str, MonitorRow]
    changes: list[BundleChange] = field(default_factory=list)
    # Channels of the entries that change them, by uid in the bundle.
    attached: dict[str, set[UUID]] = field(default_factory=dict)
    # Objectives before, of the entries that change objectives.
    targets: dict[str, dict[str, Any]] = field(default_factory=dict)

    def changed(self) -> list[str]:
        acts = (BundleAction.CREATE, BundleAction.UPDATE)
        return [one.uid for one in self.changes if one.action in acts]


async def compare_monitors(
    tx: Tx, bundle: Bundle, place: BundleContext, applied: ApplySource, terms: EntryContext
) -> Wanted:
    """Compares the monitors. Writes no rows.

    Raises:
        Refused with the faulty entry.
    """
    ids, words = monitor_ids(place), monitor_words(place)
    orphans: dict[str, MonitorRef] = {}
    if bundle.states("monitors"):
        orphans = left_out("monitor", place.names, bundle.monitors, applied)
    keys = {one.id for one in (*place.mine.values(), *orphans.values())}
    rows = await select_monitors_of(tx, place.home.org, keys)
    by_uid = {row.uid: row for row in rows.values()}
    attached = await select_attached(tx, place.home.org, place.home.id)
    stating = await select_stated(tx, place.home.org, place.home.id)
    targets = await select_targets_in_words(tx, place.home.org, sorted(keys))
    found = Wanted(
        {},
        {uid: by_uid[one.uid] for uid, one in place.mine.items()},
        {uid: by_uid[one.uid] for uid, one in orphans.items()},
    )
    regional: list[str] = []
    wholes = {row.id for row in found.rows.values() if row.type == MonitorType.COMPOSITE}
    for number, (uid, entry) in enumerate(bundle.monitors.items()):
        if number % _BREATH == 0:
            await trio.lowlevel.checkpoint()
        path = f"monitors.{uid}"
        row, before, over = found.rows.get(uid), None, None
        draft = wanted_draft(path, uid, entry, ids, place.policies, _terms_of(row, terms))
        found.drafts[uid] = draft
        if row is not None:
            before = in_words(present_draft(row, place, terms.keyring), words, place.policies)
            over = owner_change(row, applied)
        after = in_words(draft, words, place.policies)
        if state_regional(entry, bundle.format, row, before, after):
            regional.append(uid)
        if row is None:
            after = brief_monitor(after)
        chosen = _channels_of(path, entry, place)
        if chosen is not None:
            after["channels"] = channels_in_words(chosen, place)
            if before is not None and row is not None:
                before["channels"] = channels_in_words(attached.get(row.id, ()), place)
        aims = wanted_targets(path, entry)
        if aims is not None:
            after[_TARGETS] = aims
            if before is not None and row is not None:
                before[_TARGETS] = targets.get(row.id, {})
        if before is not None and row is not None and not is_left(row, applied):
            stated = stating.get(row.id, (False, False))
            before |= dict(zip((_CHANNELS_MANAGED, _TARGETS_MANAGED), stated, strict=True))
            after |= {_CHANNELS_MANAGED: chosen is not None, _TARGETS_MANAGED: aims is not None}
        change = change_of("monitor", uid, before, after, over)
        if chosen is not None and any(one.name == _CHANNELS for one in change.fields):
            found.attached[uid] = chosen
        if any(one.name.partition(".")[0] == _TARGETS for one in change.fields):
            found.targets[uid] = {} if row is None else targets.get(row.id, {})
        if row is not None:
            expect_owned(path, row, applied, [one.name for one in change.fields])
            expect_whole(path, row, wholes, change)
        found.changes.append(change)
    own = {uid: row.uid for uid, row in found.rows.items()} | place.coming
    expect_regional_entries(regional, found.drafts, own, found.rows, applied)
    for uid, row in found.orphans.items():
        fields = [FieldChange(name="enabled", from_=True, to=False)] if row.enabled else []
        change = BundleChange(kind="monitor", uid=uid, action=BundleAction.ORPHAN, fields=fields)
        found.changes.append(change)
    return found


def _channels_of(path: str, entry: MonitorEntry, place: BundleContext) -> set[UUID] | None:
    """Returns the channels that an entry states, None if it states none.

    Raises:
        Refused invalid with an unknown reference.
    """
    if entry.channels is UNSET:
        return None
    field_ = f"{path}.{_CHANNELS}"
    return {UUID(resolve_named(field_, word, place.channels)) for word in entry.channels}


def channels_in_words(channels: Collection[UUID], place: BundleContext) -> list[str]:
    return sorted(word_for(uid, place.channels) for uid in channels)


async def write_monitors(
    tx: Tx,
    together: MonitorWriteBatch,
    bundle: Bundle,
    place: BundleContext,
    wanted: Wanted,
    applied: ApplySource,
    terms: EntryContext,
) -> None:
    """Writes the monitors. The caller must write `together` afterwards.

    Raises:
        Refused with the faulty entry.
    """
    new = [uid for uid in wanted.drafts if uid not in wanted.rows]
    if new and len(place.names) + len(new) > MONITORS_OF_PROJECT_MOST:
        rule = f"would make more than {MONITORS_OF_PROJECT_MOST} monitors of the project"
        raise Refused("invalid", "monitors", rule)
    changes = {one.uid: one for one in wanted.changes if one.action is BundleAction.UPDATE}
    ordered = _ordered(bundle, wanted)
    use = await select_use(tx, place.home.org) if ordered else None
    for uid in ordered:
        draft, row = wanted.drafts[uid], wanted.rows.get(uid)
        with under(f"monitors.{uid}"):
            if row is None:
                await _create(tx, together, place, draft, place.coming[uid], terms)
            else:
                given = _changed_fields(draft, changes[uid])
                if given:
                    await _edit(tx, together, row, given, terms)
        action = BundleAction.CREATE if row is None else BundleAction.UPDATE
        applied.progress.wrote(action, "monitor", uid)
    for uid, row in wanted.orphans.items():
        if row.enabled:
            with under(f"monitors.{uid}"):
                await _edit(tx, together, row, {"enabled": False}, terms)
        applied.progress.wrote(BundleAction.ORPHAN, "monitor", uid)
    await _expect_no_circle(tx, together, place)
    if use is not None:
        await together.use.expect_room_after(tx, place.home.org, use)
    if together.is_plan:
        return
    own = {uid: row.uid for uid, row in wanted.rows.items()} | place.coming
    chosen = {own[uid]: found for uid, found in wanted.attached.items()}
    await write_regional(tx, bundle, place, wanted.drafts, own, wanted.changes)
    if chosen:
        await put_attached(tx, place.home.org, place.home.id, chosen)
    stated = {
        own[uid]: one.channels is not UNSET
        for uid, one in bundle.monitors.items()
        if not is_left(wanted.rows.get(uid), applied)
    }
    await mark_channels(tx, place.home.org, stated)
    orphans = {uid: row.uid for uid, row in wanted.orphans.items()}
    marks = marks_of(own, wanted.rows, orphans, applied, tx.now)
    await put_marks(tx, "monitor", place.home.org, marks)


async def _create(
    tx: Tx,
    together: MonitorWriteBatch,
    place: BundleContext,
    draft: MonitorDraft,
    uid: UUID,
    terms: EntryContext,
) -> None:
    check_draft(draft, terms.regions)
    shard = place.shards[draft.region]
    await create_held(tx, together, place.home, draft, terms.keyring, uid, shard)


async def _edit(
    tx: Tx, together: MonitorWriteBatch, row: MonitorRow, given: dict[str, Any], terms: EntryContext
) -> None:
    regions = _terms_of(row, terms).regions
    await edit_held(tx, together, row, given, terms.keyring, regions)


def _terms_of(row: MonitorRow | None, terms: EntryContext) -> EntryContext:
    """Returns the context in which a monitor can stay in its region."""
    return terms if row is None else replace(terms, regions=terms.regions | {row.region})


async def _expect_no_circle(tx: Tx, together: MonitorWriteBatch, place: BundleContext) -> None:
    """Checks the written or planned dependencies of the whole project for cycles.

    The order is that of the ids, so that a plan and its application name the same monitor.
    """
    edges = await select_dependencies(tx, place.home.org, place.home.id)
    edges.update(together.planned_dependencies)
    words = monitor_words(place)
    _, circle = in_order({str(key): list(map(str, sorted(edges[key]))) for key in sorted(edges)})
    if circle is not None:
        uid = place.uids.get(int(circle))
        path = f"monitors.{words[uid]}" if uid else "monitors"
        raise Refused("invalid", f"{path}.depends_on", "must not lead back to the monitor itself")


def _ordered(bundle: Bundle, wanted: Wanted) -> list[str]:
    """Returns the written uids, each after those it refers to."""
    edges: dict[str, list[str]] = {}
    for uid in wanted.changed():
        entry = bundle.monitors[uid]
        edges[uid] = [*entry.depends_on, *children_of(f"monitors.{uid}", entry)]
    order, circle = in_order(edges)
    if circle is not None:
        raise Refused("invalid", f"monitors.{circle}", "must not lead back to the monitor itself")
    return order


def _changed_fields(draft: MonitorDraft, change: BundleChange) -> dict[str, Any]:
    """Returns the complete values of the changed settings."""
    names = {one.name.partition(".")[0] for one in change.fields} - {MANAGED_BY}
    values = msgspec.structs.asdict(draft)
    given = {name: values[name] for name in names - _ASIDE}
    if POLICY in names:
        given["escalation_policy_id"] = draft.escalation_policy_id
    return given
