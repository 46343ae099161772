"""Burn-down plot of an error budget, computed from sealed hours or days.

The last step ends at the figure next to the plot. Each earlier step adds the downtime after it, so
that figure and plot agree.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from markupsafe import Markup

from ....storage.core.availability import Withheld, allowed_us
from ....storage.core.instant import DAY, HOUR, Instant
from ....storage.services.rules.service_report import ReportWindow
from ...ui.data_table import MaintenanceTable, exact
from ...ui.formatting import COVERAGE_SAMPLE, clock, duration, percent, short_day
from ...ui.plots.burndown import BudgetStep, SegmentKind, burndown
from ...ui.plots.latency import Tick
from ...ui.reliability_text import LABELS, precisely
from ...ui.shown_time import local, offset_us, zone_word
from .service_data import ServiceBucket

TABLE_MOST = 60
# Share of the budget from which a fall is labelled.
_WRITTEN = Fraction(1, 20)
_TICKS = 4
_STEPS = (1, 2, 5, 15)
_LABELS_MOST = 7


@dataclass(frozen=True, slots=True)
class BudgetPlot:
    drawn: Markup
    table: MaintenanceTable
    has_gaps: bool
    has_maintenance: bool


@dataclass(frozen=True, slots=True)
class _Part:
    """Bucket clipped to the window, with its downtime."""

    from_: Instant
    to: Instant
    kind: SegmentKind
    bad_us: int


def plot(
    window: ReportWindow, objective: int, buckets: Sequence[ServiceBucket], unit: int
) -> BudgetPlot | None:
    """Returns the plot, None if the budget is withheld."""
    if isinstance(window.budget(objective), Withheld) or window.to <= window.from_:
        return None
    parts = _parts(window, buckets, unit)
    allowed = allowed_us(window.durations.split, objective)
    steps = _steps(window, parts, allowed)
    label = f"Error budget left over {LABELS[window.window]}."
    return BudgetPlot(
        burndown(steps, ticks(window.from_, window.to), label),
        _table(parts, allowed, window.durations.bad_us),
        any(part.kind in (SegmentKind.GAP, SegmentKind.PARTLY) for part in parts),
        any(part.kind is SegmentKind.MAINTENANCE for part in parts),
    )


def _parts(window: ReportWindow, buckets: Sequence[ServiceBucket], unit: int) -> list[_Part]:
    """Returns all units of the window in order, including unsealed ones."""
    known = {bucket.start: bucket for bucket in buckets}
    found = []
    for start in range(window.from_ - window.from_ % unit, window.to, unit):
        from_, to = max(Instant(start), window.from_), min(Instant(start + unit), window.to)
        bucket = known.get(Instant(start))
        bad = 0 if bucket is None else bucket.durations.bad_us
        found.append(_Part(from_, to, kind_of(bucket), bad))
    return found


def kind_of(bucket: ServiceBucket | None) -> SegmentKind:
    if bucket is None:
        return SegmentKind.GAP
    split = bucket.durations.split
    if not split.measured_us:
        return (
            SegmentKind.MAINTENANCE
            if split.excluded_us and not split.unknown_us
            else SegmentKind.GAP
        )
    return SegmentKind.PARTLY if 100 * split.unknown_us > split.range_us else SegmentKind.MEASURED


def _steps(window: ReportWindow, parts: Sequence[_Part], allowed: Fraction) -> list[BudgetStep]:
    length = window.to - window.from_
    after = 0
    found: list[BudgetStep] = []
    for part in reversed(parts):
        # The first bucket can begin before the window. Downtime before the window does not count.
        left = (allowed - max(window.durations.bad_us - after, 0)) / allowed
        share = Fraction(part.bad_us) / allowed
        cost = f"\u2212{duration(part.bad_us)}" if share >= _WRITTEN else ""
        found.append(
            BudgetStep(
                (part.from_ - window.from_) / length,
                (part.to - window.from_) / length,
                part.kind,
                float(left),
                cost,
            )
        )
        after += part.bad_us
    return found[::-1]


def _table(parts: Sequence[_Part], allowed: Fraction, bad_us: int) -> MaintenanceTable:
    """Returns the downtime, gaps and maintenance, newest first. Equal neighbours are merged."""
    rows: list[list[str]] = []
    after = 0
    for part, to in _merged(parts):
        if part.kind in (SegmentKind.GAP, SegmentKind.MAINTENANCE):
            word = "not measured" if part.kind is SegmentKind.GAP else "maintenance"
            rows.append([_span(part.from_, to), word, "—"])
        elif part.bad_us:
            left = (allowed - max(bad_us - after, 0)) / allowed
            said = percent(left, COVERAGE_SAMPLE) if left > 0 else "nothing"
            rows.append([_span(part.from_, to), f"down {precisely(part.bad_us)}", said])
        after += part.bad_us
    heads = [f"When, {zone_word()}", "What", "Budget left after"]
    return MaintenanceTable(
        "Budget used by", heads, rows[:TABLE_MOST], max(len(rows) - TABLE_MOST, 0)
    )


def _merged(parts: Sequence[_Part]) -> list[tuple[_Part, Instant]]:
    """Returns (part, end), newest first. Equal neighbours are merged."""
    found: list[tuple[_Part, Instant]] = []
    for part in reversed(parts):
        if found and _is_one(part, found[-1][0]):
            later, to = found[-1]
            found[-1] = (_Part(part.from_, later.to, part.kind, part.bad_us + later.bad_us), to)
        else:
            found.append((part, part.to))
    return found


def _is_one(part: _Part, later: _Part) -> bool:
    if part.kind in (SegmentKind.GAP, SegmentKind.MAINTENANCE):
        return part.kind is later.kind
    measured = later.kind in (SegmentKind.MEASURED, SegmentKind.PARTLY)
    return measured and bool(part.bad_us) == bool(later.bad_us)


def _span(from_: Instant, to: Instant) -> str:
    same = local(from_).date() == local(Instant(to - 1)).date()
    return f"{exact(from_)} to {clock(to, seconds=False) if same else exact(to)}"


def ticks(from_: Instant, to: Instant) -> list[Tick]:
    """Returns evenly spaced ticks: midnights, or times if the span is at most 3 days.

    Half of them are minor: hidden on a phone.
    """
    length = to - from_
    if length <= 3 * DAY:
        ats = [Instant(from_ + length * n // _TICKS) for n in range(_TICKS + 1)]
        named = [(at, f"{exact(at)[:3]} {clock(at, seconds=False)}") for at in ats]
    else:
        step = next(days for days in _STEPS if length <= _LABELS_MOST * days * DAY) * DAY
        last = to - (to + offset_us(to)) % DAY
        days = range(last - (last - from_) // step * step, last + 1, step)
        named = [(Instant(at), short_day(Instant(at))) for at in days]
    many = len(named) - 1
    return [
        Tick((at - from_) / length, text, minor=(many - n) % 2 == 1)
        for n, (at, text) in enumerate(named)
    ]


def unit_of(window: str) -> int:
    return DAY if window == "90d" else HOUR


def sealed_note(sealed_through: Instant | None, now: Instant) -> str:
    if sealed_through is None:
        return "no data yet"
    if local(sealed_through).date() == local(now).date():
        return f"data up to {clock(sealed_through, seconds=False)}"
    return f"data up to {exact(sealed_through)}"
