"""Plot of announced maintenance: the past two weeks, this one, and the next four.

Weeks begin on Monday at midnight in the time zone that the console shows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from markupsafe import Markup

from ....storage.core.instant import DAY, Instant
from ....storage.maintenance.rows import MaintenanceRow
from ...ui.data_table import MaintenanceTable, exact
from ...ui.formatting import count, day
from ...ui.plots.maintenance_calendar import MaintenanceSpan, MaintenanceWeek, windows
from ...ui.shown_time import local, offset_us, zone_word

BEFORE, AFTER = 2, 4
TABLE_MOST = 60
_WEEK = 7 * DAY


@dataclass(frozen=True, slots=True)
class MaintenancePlot:
    plot: Markup
    table: MaintenanceTable


def drawn(
    rows: Sequence[MaintenanceRow], names: Mapping[UUID, str], now: Instant
) -> MaintenancePlot:
    """Returns the plot of maintenance that overlaps the weeks, ordered by start."""
    first, after = edges(now)
    order = sorted(rows, key=lambda row: (row.starts_at, row.id))
    seen = [row for row in order if row.starts_at < after and row.over_at > first]
    weeks = [_week(Instant(at), seen, names, now) for at in range(first, after, _WEEK)]
    monday = day(Instant(first + DAY // 2))
    said = f"Seven weeks from {monday}: {count(len(seen), 'maintenance', 'maintenances')}"
    table = MaintenanceTable(
        "Maintenance of seven weeks",
        [f"From, {zone_word()}", "To", "Of", "Reason"],
        [
            [exact(row.starts_at), exact(row.over_at), name_of(row, names), row.reason]
            for row in seen[:TABLE_MOST]
        ],
        max(len(seen) - TABLE_MOST, 0),
    )
    return MaintenancePlot(windows(weeks, said), table)


def edges(now: Instant) -> tuple[Instant, Instant]:
    """Returns the instants at which the plot begins and ends, both a Monday at midnight."""
    midnight = now - (now + offset_us(now)) % DAY
    monday = midnight - local(now).weekday() * DAY
    return Instant(monday - BEFORE * _WEEK), Instant(monday + (AFTER + 1) * _WEEK)


def name_of(row: MaintenanceRow, names: Mapping[UUID, str]) -> str:
    if row.monitor_uid is None:
        return "The whole project"
    return names.get(row.monitor_uid, "A monitor")


def _week(
    start: Instant, rows: Sequence[MaintenanceRow], names: Mapping[UUID, str], now: Instant
) -> MaintenanceWeek:
    end = Instant(start + _WEEK)

    def share(at: Instant) -> float:
        return (min(max(at, start), end) - start) / _WEEK

    spans = [
        MaintenanceSpan(
            share(row.starts_at), share(row.over_at), name_of(row, names), _cell_text(row, names)
        )
        for row in rows
        if row.starts_at < end and row.over_at > start
    ]
    # At noon, so that a change of the clock does not move a name to another day.
    moments = [local(Instant(start + n * DAY + DAY // 2)) for n in range(7)]
    days = [
        f"{at.day} {at:%B}" if n == 0 or at.day == 1 else str(at.day)
        for n, at in enumerate(moments)
    ]
    return MaintenanceWeek(days, spans, share(now) if start <= now < end else None)


def _cell_text(row: MaintenanceRow, names: Mapping[UUID, str]) -> str:
    reason = f": {row.reason}" if row.reason else ""
    return f"{name_of(row, names)}, {exact(row.starts_at)} to {exact(row.over_at)}{reason}"
