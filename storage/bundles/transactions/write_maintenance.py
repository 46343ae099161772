"""Write of a bundle's recurring maintenance, after the monitors that it names.

A series that the bundle no longer names ends, because its windows would hide outages. Windows that
have begun stay.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import msgspec
import trio
from uuid_utils.compat import uuid7

from ...accounts.queries.object_marks import select_marks
from ...accounts.transactions.object_marks import SERIES
from ...core.instant import to_text
from ...core.key import MonitorKey
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...maintenance.queries.maintenance_series import select_series_of
from ...maintenance.rules import fault
from ...maintenance.tables.maintenances import select_covered
from ...maintenance.transactions.extend_series import (
    SeriesPlan,
    end_held_series,
    put_held_series,
)
from ...monitors.transactions.write_batch import MonitorWriteBatch
from ..rows import ObjectRow
from ..rules.bundle import Bundle
from ..rules.bundle_diff import BundleChange
from ..rules.bundle_owner import match_named
from ..rules.bundle_settings import SERIES_MOST, MaintenanceEntry, recurrence_of
from ..tables.bundle_ownership import ensure_marks, forget_marks
from .bundle_context import ApplySource, BundleContext, monitor_ids, monitor_words, resolve, under
from .compared_section import ComparedSection, compare_section, object_row, with_end, write_section

MAINTENANCE_DEFAULTS: Final[dict[str, Any]] = {"monitor": "", "timezone": "", "reason": ""}


@dataclass(slots=True)
class WantedMaintenance:
    """Compared series, with the ids of all by uid, and the number of series of the project."""

    section: ComparedSection[ObjectRow, SeriesPlan]
    ids: dict[str, UUID]
    stored: int = 0

    @property
    def changes(self) -> list[BundleChange]:
        return self.section.changes


async def select_series(tx: Tx, place: BundleContext) -> list[ObjectRow]:
    """Returns the series of the project that have not ended, in the order of their ids."""
    home, words = place.home, monitor_words(place)
    marks = await select_marks(tx, home.org, home.id, SERIES)
    found = []
    for row in await select_series_of(tx, home.org, home.id):
        monitor = "" if row.monitor_uid is None else words[row.monitor_uid]
        settings = {
            "monitor": monitor,
            "rrule": row.rrule,
            "starts_at": to_text(row.starts_at),
            "duration_seconds": row.duration_seconds,
            "timezone": row.timezone,
            "reason": row.reason,
        }
        found.append(object_row(marks, row.id, row.uid, _name_of(settings), settings))
    return found


def _name_of(settings: Mapping[str, Any]) -> str:
    """Returns what identifies a series of people: its reason, otherwise all of its settings."""
    if settings["reason"]:
        return str(settings["reason"])
    return " ".join(str(settings[name]) for name in sorted(settings))


async def compare_maintenance(
    tx: Tx, bundle: Bundle, place: BundleContext, applied: ApplySource
) -> WantedMaintenance:
    """Compares the series.

    Raises:
        Refused with the faulty entry.
    """
    if not bundle.states("maintenance"):
        return WantedMaintenance(ComparedSection("maintenance", {}, {}, {}), {})
    ids, words = monitor_ids(place), monitor_words(place)
    drafts, after = {}, {}
    for uid, entry in bundle.maintenance.items():
        drafts[uid] = await _plan_of(f"maintenance.{uid}", entry, ids)
        monitor = drafts[uid].monitor
        after[uid] = {
            **msgspec.to_builtins(entry),
            "monitor": "" if monitor is None else words[monitor],
            "starts_at": to_text(drafts[uid].recurrence.starts_at),
        }
    rows = await select_series(tx, place)
    names = {uid: _name_of(settings) for uid, settings in after.items()}
    standing = match_named("maintenance", rows, names, applied.provider)
    section = ComparedSection("maintenance", drafts, standing, {})
    before = {row.id: row.settings for row in rows}
    compare_section(section, bundle, rows, applied, before, after, MAINTENANCE_DEFAULTS)
    section.changes = [with_end(one, "ended") for one in section.changes]
    new = len(drafts) - len(standing)
    if new and len(rows) - len(section.orphans) + new > SERIES_MOST:
        rule = f"would make more than {SERIES_MOST} of the project"
        raise Refused("invalid", "maintenance", rule)
    own = {uid: standing[uid].uid if uid in standing else uuid7() for uid in drafts}
    return WantedMaintenance(section, own, len(rows))


async def _plan_of(path: str, entry: MaintenanceEntry, ids: Mapping[str, UUID]) -> SeriesPlan:
    recurrence = recurrence_of(entry)
    # The check computes the occurrences of four years.
    said = await trio.to_thread.run_sync(fault, recurrence)
    if said is not None:
        raise Refused("invalid", f"{path}.{said[0]}", said[1])
    monitor = resolve(f"{path}.monitor", [entry.monitor], ids)[0] if entry.monitor else None
    return SeriesPlan(recurrence=recurrence, monitor=monitor, reason=entry.reason)


async def write_maintenance(
    tx: Tx,
    together: MonitorWriteBatch,
    place: BundleContext,
    wanted: WantedMaintenance,
    applied: ApplySource,
) -> None:
    """Writes the series. Schedules are reloaded when `together` is published.

    Raises:
        Refused with the faulty entry.
    """
    home, who, section = place.home, applied.principal, wanted.section
    is_plan = together.is_plan
    if not is_plan and section.drafts:
        await ensure_marks(tx, "maintenance_series", home.key, wanted.ids.values())

    async def put(uid: str, plan: SeriesPlan, _: ObjectRow | None) -> None:
        if not is_plan:
            await put_held_series(tx, who, home, wanted.ids[uid], plan)
            return
        async with tx.undone():
            await put_held_series(tx, who, home, wanted.ids[uid], plan)

    for uid, row in () if is_plan else section.orphans.items():
        with under(f"maintenance.{uid}"):
            await end_held_series(tx, who, row.uid)
    order = list(section.acts)
    await write_section(tx, home.org, section, order, put, wanted.ids, applied, is_plan=is_plan)
    if is_plan or not (order or section.orphans):
        return
    gone = [row.uid for row in section.orphans.values()]
    await forget_marks(tx, "maintenance_series", home.key, gone)
    covered = await select_covered(tx, home.org, home.id, None)
    together.maintained(home.org, home.id, [MonitorKey((home.org, one.id)) for one in covered])
