"""Current, future and past maintenance of a project, as summary and list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ....storage.core.instant import Instant
from ....storage.maintenance.rows import MaintenanceRow
from ...ui.data_table import exact
from ...ui.formatting import duration, number
from ...ui.shown_time import local, time_of_day, zone_word
from .maintenance_weeks import edges, name_of

PAST_MOST: Final = 50


@dataclass(frozen=True, slots=True)
class MaintenanceItem:
    uid: UUID
    name: str
    monitor: UUID | None
    span: str
    length: str
    reason: str
    mark: str
    # Available actions: the form value and the label of its button.
    acts: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class MaintenanceSummary:
    mark: str
    text: str
    under: str


def summary(
    rows: Sequence[MaintenanceRow], names: Mapping[UUID, str], now: Instant
) -> MaintenanceSummary:
    """Summarizes the current maintenance, else the next one."""
    on = sorted(
        (row for row in rows if row.starts_at <= now < row.over_at), key=lambda row: row.over_at
    )
    coming = min((row.starts_at for row in rows if row.starts_at > now), default=None)
    follows = "" if coming is None else f"The next starts {exact(coming)}, {zone_word()}."
    if not on:
        text = "No active maintenance"
        none = "No maintenance is scheduled. All measured time counts."
        return MaintenanceSummary("", text, follows or none)
    counts = "This time is excluded from availability."
    if len(on) == 1:
        name = name_of(on[0], names)
        text = f"{name} is in maintenance until {exact(on[0].over_at)}"
    else:
        text = f"{number(len(on))} active maintenances"
        counts = f"The first ends {exact(on[0].over_at)}, {zone_word()}. {counts}"
    return MaintenanceSummary("maint", text, f"{counts} {follows}".strip())


def groups(
    rows: Sequence[MaintenanceRow], names: Mapping[UUID, str], now: Instant
) -> list[tuple[str, list[MaintenanceItem]]]:
    since, _ = edges(now)
    on = [row for row in rows if row.starts_at <= now < row.over_at]
    to_come = sorted((row for row in rows if row.starts_at > now), key=lambda row: row.starts_at)
    over = [row for row in rows if since < row.over_at <= now]
    found = [("Active", on), ("Scheduled", to_come), ("Past", over[:PAST_MOST])]
    return [(title, [_item(row, names, now) for row in lines]) for title, lines in found if lines]


def span_text(starts_at: Instant, ends_at: Instant) -> str:
    """Returns both instants; the second without its day, if it is the same day."""
    first, last = local(starts_at), local(ends_at)
    same = first.date() == last.date()
    until = time_of_day(last, seconds=False) if same else exact(ends_at)
    return f"{exact(starts_at)} to {until}"


def _item(row: MaintenanceRow, names: Mapping[UUID, str], now: Instant) -> MaintenanceItem:
    if row.starts_at > now:
        mark, acts = "pending", [("end", "Cancel maintenance")]
    elif row.over_at > now:
        mark, acts = "maint", [("end", "End now"), ("annul", "Annul")]
    else:
        mark, acts = "up", [("annul", "Annul")]
    cut = ", ended early" if row.over_at < row.ends_at else ""
    return MaintenanceItem(
        row.uid,
        name_of(row, names),
        row.monitor_uid,
        f"{span_text(row.starts_at, row.over_at)}{cut}",
        duration(row.over_at - row.starts_at),
        row.reason,
        mark,
        acts,
    )
