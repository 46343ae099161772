"""Plots of the monitor screen, each with a table of its data."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ....storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant
from ....storage.core.sli import Split
from ....storage.figures.queries.monitor_time import MonitorTime
from ....storage.monitors.rules.monitor import MonitorType
from ....storage.results.queries.console_results import LatencyBin
from ....storage.results.queries.latency import DECODED_MOST
from ....storage.scheduling.rules.maintenance_window import is_in_maintenance
from ....storage.scheduling.rules.run_schedule import term_at
from ...ui.failure_help import REFUSALS
from ...ui.formatting import (
    GAP,
    NOTHING,
    clock,
    coverage,
    dated,
    duration,
    number,
    percent,
    rhythm,
    short_day,
    utc_day,
)
from ...ui.plots.expected_runs_strip import SAID, RunSlot, ledger, worst
from ...ui.plots.heartbeat_strip import HeartbeatSlot, slot_text, stretches, strip
from ...ui.plots.latency import STEP_WORDS, LatencyStep, LatencyValue, Tick, latency, values_of
from ...ui.plots.svg import BEFORE_SAID
from ...ui.plots.uptime_days import UptimeDay, days, has_gap
from ...ui.shown_time import offset_us, zone_shown, zone_word
from ...ui.time_inputs import spelt_local
from ...ui.time_slots import Axis, beats
from .latency_range import SINCE_START, tick_distance
from .monitor_data import MonitorFacts, held_us

ROWS_MOST = 60
TOO_MANY = (
    f"Latency is not shown: this range needs more than {number(DECODED_MOST)} stored results. "
    "Choose a shorter range."
)
_VERDICTS = {
    "covered": RunSlot.COVERED,
    "covered_late": RunSlot.COVERED_LATE,
    "missed": RunSlot.MISSED,
    "withheld": RunSlot.WITHHELD,
    "reserved": RunSlot.RESERVED,
}
_APART = (MINUTE, 2 * MINUTE, 10 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, DAY, 3 * DAY, 8 * DAY)
_COURSE = {HOUR: "The last hour", DAY: "The last day"}


@dataclass(frozen=True, slots=True)
class PlotTable:
    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    # Number of rows that were left out.
    further: int = 0


@dataclass(frozen=True, slots=True)
class MonitorPlot:
    drawn: Markup
    table: PlotTable


@dataclass(frozen=True, slots=True)
class LatencyPlot:
    """Plot with the exact values of its steps for the crosshair. Times are in milliseconds."""

    drawn: Markup
    table: PlotTable
    values: str
    from_ms: int
    step_ms: int
    # Values of the fields of the custom range.
    from_local: str
    to_local: str
    note: str
    # Reason why the plot and its table are empty.
    withheld: str = ""


@dataclass(frozen=True, slots=True)
class ResultsPlot:
    """Heartbeats over expected runs on one axis."""

    title: str
    note: str
    beats: Markup
    runs: Markup
    times: Sequence[str]
    totals: Sequence[tuple[RunSlot, str]]
    table: PlotTable
    # (reason, explanation) of the refused runs.
    refused: Sequence[tuple[str, str]]


def course_plot(facts: MonitorFacts) -> ResultsPlot:
    axis, now = facts.axis, facts.now
    interval_us = facts.row.interval_seconds * SECOND
    is_push = facts.row.type == MonitorType.PUSH
    shown = beats(
        facts.course,
        axis,
        now,
        held_us=held_us(facts.row) if is_push else 0,
        patience_us=facts.row.timeout_seconds * SECOND + 2 * SECOND,
    )
    runs, reasons, totals = _runs(facts)

    def beat_title(beat: HeartbeatSlot, first: int, after: int) -> str:
        return f"{slot_text(beat, after - first)}, {_between(axis, first, after)}"

    def run_title(run: RunSlot, first: int, after: int) -> str:
        why = ", ".join(sorted({r for slot in range(first, after) for r in reasons[slot]}))
        said = f"{after - first} {SAID[run]}, {_between(axis, first, after)}"
        return f"{said}: {why}" if why else said

    length_us = axis.many * axis.step_us
    together = axis.step_us // interval_us
    each = f", {together} runs a slot" if together > 1 else ""
    young = axis.from_at > facts.row.created_at - axis.step_us
    named = _COURSE.get(-(-length_us // HOUR) * HOUR, f"The last {duration(length_us)}")
    title = "Since it started" if young else named
    return ResultsPlot(
        title,
        f"{_every(facts)}{each}{_sealed_to(facts)}",
        strip(shown, "Check results", beat_title),
        ledger(runs, totals, run_title),
        _times(axis, "created" if young else ""),
        [(run, number(totals[run])) for run in SAID if totals.get(run)],
        _course_table(facts),
        _refused(facts),
    )


def _every(facts: MonitorFacts) -> str:
    row = facts.row
    words = rhythm(row.interval_seconds, row.schedule, row.timezone)
    return f"schedule {words}" if row.schedule else f"every {words}"


def _refused(facts: MonitorFacts) -> list[tuple[str, str]]:
    many = Counter(row.reason for row in facts.runs)
    return [
        (f"{number(many[reason])} {reason.replace('_', ' ')}", said)
        for reason, said in REFUSALS.items()
        if many[reason]
    ]


def _sealed_to(facts: MonitorFacts) -> str:
    mark = facts.days.watermark
    return f", data up to {dated(mark, facts.now)}" if mark is not None else ""


def _runs(facts: MonitorFacts) -> tuple[list[RunSlot], list[set[str]], dict[RunSlot, int]]:
    found: list[list[RunSlot]] = [[] for _ in range(facts.axis.many)]
    reasons: list[set[str]] = [set() for _ in range(facts.axis.many)]
    totals: Counter[RunSlot] = Counter()
    for row in facts.runs:
        slot = facts.axis.slot(row.due_at)
        run = _VERDICTS[row.verdict]
        if 0 <= slot < facts.axis.many:
            totals[run] += 1
            found[slot].append(run)
            if row.reason:
                reasons[slot].add(row.reason)
    return [worst(slot) for slot in found], reasons, totals


def _between(axis: Axis, first: int, after: int) -> str:
    if axis.step_us * axis.many > DAY:
        return f"{dated(axis.start(first), axis.until)} to {dated(axis.start(after), axis.until)}"
    return f"{clock(axis.start(first))} to {clock(axis.start(after))}"


def _times(axis: Axis, begin: str) -> list[str]:
    whole = axis.step_us * axis.many
    if begin:
        # Few slots: times between would repeat a minute.
        text = dated(axis.from_at, axis.until) if whole > DAY else clock(axis.from_at)
        return [f"{text} {begin}", clock(axis.until)]
    at = [Instant(axis.from_at + n * whole // 4) for n in range(5)]
    if whole > DAY:
        return [short_day(x) for x in at]
    return [clock(x, seconds=False) for x in at]


def _course_table(facts: MonitorFacts) -> PlotTable:
    """Returns the runs, with covered runs last. Equal consecutive runs are merged."""
    lines: list[tuple[bool, Instant, list[str]]] = []
    order = sorted(facts.runs, key=lambda row: row.due_at)
    at = 0
    while at < len(order):
        end = at
        same = (order[at].verdict, order[at].reason)
        while end < len(order) and (order[end].verdict, order[end].reason) == same:
            end += 1
        first, last = order[at].due_at, order[end - 1].due_at
        when = dated(first, facts.now)
        if end - at > 1:
            when += f" to {dated(last, facts.now)}"
        verdict = SAID[_VERDICTS[same[0]]]
        line = [when, verdict, str(end - at), (same[1] or "").replace("_", " ")]
        lines.append((same[0] == "covered", Instant(-first), line))
        at = end
    lines.sort(key=lambda item: item[:2])
    rows = [line for _, _, line in lines]
    heads = (f"Due, {zone_word()}", "Verdict", "Runs", "Reason")
    caption = "Expected runs, exceptions first"
    return PlotTable(caption, heads, rows[:ROWS_MOST], max(len(rows) - ROWS_MOST, 0))


def latency_plot(facts: MonitorFacts) -> LatencyPlot:
    axis = facts.latency_axis
    bins = _bins(facts)
    points = [_point(facts, axis, slot, bins.get(slot)) for slot in range(axis.many)]
    drawn = latency(points, _ticks(axis), f"Latency, {_long(facts.range_name)}.")
    counts = [(item.good, item.bad) if item else (0, 0) for item in map(bins.get, range(axis.many))]
    each = axis.step_us <= facts.row.interval_seconds * SECOND
    note = f"Steps of {duration(axis.step_us)}."
    zone = zone_shown()
    whole = MINUTE - 1
    return LatencyPlot(
        drawn,
        _latency_table(facts, axis, points),
        values_of(points, counts),
        axis.from_at // 1_000,
        axis.step_us // 1_000,
        spelt_local(Instant(axis.from_at // MINUTE * MINUTE), zone),
        spelt_local(Instant((min(axis.until, facts.now) + whole) // MINUTE * MINUTE), zone),
        "One point per check. Longer ranges become available as data arrives." if each else note,
        TOO_MANY if facts.bins is None else "",
    )


def _bins(facts: MonitorFacts) -> dict[int, LatencyBin]:
    return {facts.latency_axis.slot(item.start): item for item in facts.bins or ()}


def _point(facts: MonitorFacts, axis: Axis, slot: int, item: LatencyBin | None) -> LatencyValue:
    start = axis.start(slot)
    end = min(axis.start(slot + 1), facts.now)
    middle = Instant((start + end) // 2)
    if item is not None and item.p50_ms is not None and item.p95_ms is not None:
        if is_in_maintenance(middle, facts.maintenance):
            return LatencyValue(LatencyStep.MAINTENANCE)
        return LatencyValue(LatencyStep.POINT, item.p50_ms, item.p95_ms)
    if is_in_maintenance(middle, facts.maintenance):
        return LatencyValue(LatencyStep.MAINTENANCE)
    if item is not None and item.bad:
        return LatencyValue(LatencyStep.DOWN)
    begun = term_at(facts.course.terms, Instant(end))
    if axis.start(slot + 1) > facts.now:
        return LatencyValue(LatencyStep.AWAY)
    return LatencyValue(LatencyStep.BEFORE if begun is None else LatencyStep.GAP)


def _long(name: str) -> str:
    long = {
        "1h": "1 hour",
        "24h": "24 hours",
        "7d": "7 days",
        "30d": "30 days",
        "90d": "90 days",
        "1y": "365 days",
    }
    return long.get(name, "since start" if name == SINCE_START else "selected range")


def _ticks(axis: Axis) -> list[Tick]:
    """Returns ticks at round times of the zone, without overlap.

    Two of three are minor: hidden on a phone.
    """
    length_us = axis.many * axis.step_us
    apart_us = tick_distance(length_us, _APART)
    ahead_us = offset_us(axis.from_at)
    first = axis.from_at + apart_us - (axis.from_at + ahead_us) % apart_us
    found = []
    for number_, at in enumerate(range(first, axis.until, apart_us)):
        share = (at - axis.from_at) / length_us
        if 0.03 < share < 0.97:
            moment = Instant(at)
            midnight = (at + offset_us(moment)) % DAY == 0
            text = short_day(moment) if midnight else clock(moment, seconds=False)
            found.append(Tick(share, text, minor=number_ % 3 != 1))
    return found


def _latency_table(facts: MonitorFacts, axis: Axis, points: Sequence[LatencyValue]) -> PlotTable:
    bins = _bins(facts)
    rows: list[list[str]] = []
    quiet: list[list[str]] = []
    for kind, first, after in stretches([point.kind for point in points]):
        if word := STEP_WORDS.get(kind):
            rows.append([_between(axis, first, after), NOTHING, NOTHING, word])
            continue
        for slot in range(first, after):
            item = bins.get(slot)
            if item is not None and kind is LatencyStep.POINT:
                p50, p95 = points[slot].p50, points[slot].p95
                line = [clock(axis.start(slot), seconds=False)]
                if axis.many * axis.step_us > DAY:
                    line = [dated(axis.start(slot), facts.now)]
                quiet.append([*line, number(p50), number(p95), f"{item.good} good"])
    quiet.reverse()
    every = rows[::-1] + quiet
    heads = (f"From, {zone_word()}", f"p50,{GAP}ms", f"p95,{GAP}ms", "Results")
    caption = f"Latency in steps of {duration(axis.step_us)}, exceptions first"
    return PlotTable(caption, heads, every[:ROWS_MOST], max(len(every) - ROWS_MOST, 0))


def days_plot(facts: MonitorFacts) -> MonitorPlot:
    last = len(facts.days.days) - 1
    bars = [
        UptimeDay(_day_name(start, today=at == last), measured.split, _cell_text(measured))
        for at, (start, measured) in enumerate(facts.days.days)
    ]
    rows = [
        [_day_name(start, today=at == last), *_day_cells(measured)]
        for at, (start, measured) in enumerate(facts.days.days)
        if measured.split.range_us and _is_exception(measured.split)
    ]
    heads = ("Day, UTC", "Availability", "Coverage", "Down")
    caption = "Days with time down, with maintenance or without full data"
    return MonitorPlot(days(bars, "Availability by day"), PlotTable(caption, heads, rows[::-1]))


def _is_exception(split: Split) -> bool:
    return split.bad_us > 0 or split.excluded_us > 0 or has_gap(split)


def _day_name(start: Instant, *, today: bool) -> str:
    return "Today (partial)" if today else utc_day(start)


def _cell_text(measured: MonitorTime) -> str:
    if not measured.split.range_us:
        return BEFORE_SAID
    available, covered, down = _day_cells(measured)
    said = f"{available}, coverage {covered}"
    return f"{said}, down {down}" if measured.split.bad_us else said


def _day_cells(measured: MonitorTime) -> list[str]:
    ratio = measured.split.availability()
    return [
        percent(ratio, measured.total) if ratio is not None else NOTHING,
        coverage(measured.split.coverage()),
        duration(measured.split.bad_us) if measured.split.bad_us else "",
    ]
