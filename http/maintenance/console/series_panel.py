"""Recurring maintenance: the rules that the form offers, and texts for existing rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ....storage.accounts.queries.object_marks import ObjectMark
from ....storage.core.instant import SECOND, Instant
from ....storage.core.refusal import Refused
from ....storage.maintenance.rows import SeriesRow
from ....storage.maintenance.rules import Recurrence
from ....storage.maintenance.transactions.extend_series import SeriesPlan
from ....storage.maintenance.transactions.plan_maintenance import Plan
from ...ui.bundle_notice import Managed, managed
from ...ui.data_table import exact
from ...ui.formatting import setting
from ...ui.shown_time import zone_word
from ...wire.errors import Problem

CHOICES: Final = {
    "": "no",
    "FREQ=DAILY": "every day",
    "FREQ=WEEKLY": "every week",
    "FREQ=MONTHLY": "every month, on this day",
}


@dataclass(frozen=True, slots=True)
class SeriesItem:
    """A series. `rule` is its RRULE if no text exists for it."""

    uid: UUID
    name: str
    words: str
    rule: str
    note: str
    managed: Managed | None


def series_plan(plan: Plan, rule: str, zone: str, now: Instant) -> SeriesPlan:
    """Returns the series of a plan. Raises: Refused if it begins before now."""
    if rule not in CHOICES:
        raise Problem("Unknown action")
    if plan.starts_at < now:
        raise Refused("invalid", "starts_at", "must not be in the past for a series")
    length = plan.ends_at - plan.starts_at
    return SeriesPlan(
        recurrence=Recurrence(rule, plan.starts_at, length - length % SECOND, zone),
        monitor=plan.monitor,
        reason=plan.reason,
    )


def is_there(rows: Sequence[SeriesRow], plan: SeriesPlan) -> bool:
    """Returns whether the same series exists, so that a second click has no effect."""
    return any(
        (row.recurrence, row.monitor_uid, row.reason)
        == (plan.recurrence, plan.monitor, plan.reason)
        for row in rows
    )


def series_lines(
    rows: Sequence[SeriesRow], names: Mapping[UUID, str], marks: Mapping[UUID, ObjectMark]
) -> list[SeriesItem]:
    return [_item(row, names, marks.get(row.uid)) for row in rows]


def _item(row: SeriesRow, names: Mapping[UUID, str], mark: ObjectMark | None) -> SeriesItem:
    name = "The whole project"
    if row.monitor_uid is not None:
        name = names.get(row.monitor_uid, "A monitor")
    known = CHOICES.get(row.rrule, "")
    zone = row.timezone or "UTC"
    since = f"since {exact(row.starts_at)} {zone_word()}"
    note = f"for {setting(row.duration_seconds)}, {since}, by {zone}"
    if row.reason:
        note += f". {row.reason}"
    notice = None if mark is None else managed(mark, orphan_works=True)
    if notice is not None:
        note += f". {notice.text}"
    return SeriesItem(row.uid, name, known, "" if known else row.rrule, note, notice)
