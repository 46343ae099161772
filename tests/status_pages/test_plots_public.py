"""The plots of a component, parsed from the SVG: 90 days, and the latency of a day."""

import re
from itertools import pairwise
from uuid import UUID
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.http.status_pages.public import latency_plot
from leadline.http.status_pages.public.language import phrase
from leadline.http.status_pages.public.latency_plot import latency_item
from leadline.http.status_pages.public.uptime_bars import (
    COLUMN,
    bars,
    heights,
    is_nothing,
    is_plain,
)
from leadline.http.ui.formatting import Moment
from leadline.http.ui.plots.uptime_days import BEFORE, DOWN_LEAST, HEIGHT, UptimeDay
from leadline.http.ui.plots.uptime_days import days as days_of
from leadline.probes.check.monitor_spec import MonitorType
from leadline.storage.core.instant import DAY, MINUTE, Instant
from leadline.storage.core.sli import Split
from leadline.storage.core.time_span import TimeSpan, merged
from leadline.storage.status_pages.rules.component_latency import (
    STEP_US,
    STEPS,
    ComponentLatency,
    LatencyPoint,
    LatencyWithheld,
    latency_of,
    latency_span,
    measures_latency,
)
from leadline.storage.status_pages.rules.status_page import ComponentDay
from tests.conftest import FROZEN_NOW

_MOVES = re.compile(r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)h-[\d.]+z?")


@st.composite
def days(draw: st.DrawFn) -> ComponentDay:
    parts = st.integers(0, 24 * 60).map(lambda minutes: minutes * MINUTE)
    kind = draw(st.sampled_from(["good", "nothing", "any"]))
    if kind == "good":
        return ComponentDay(Instant(0), Split(good_us=DAY))
    if kind == "nothing":
        return ComponentDay(Instant(0), Split(unknown_us=DAY))
    split = Split(*(draw(parts) for _ in range(4)))
    degraded = draw(st.integers(0, split.good_us // MINUTE)) * MINUTE if split.good_us else 0
    return ComponentDay(Instant(0), split, degraded_us=degraded)


def drawn(found: str) -> list[list[tuple[str, float, float]]]:
    """Returns the rectangles of each column: fill, top and height."""
    root = ElementTree.fromstring(found)
    many = int(root.attrib["viewBox"].split()[2]) // COLUMN
    columns: list[list[tuple[str, float, float]]] = [[] for _ in range(many)]
    for path in root.iter("path"):
        name = path.attrib.get("class") or path.attrib["fill"]
        for x, y, width, height in _MOVES.findall(path.attrib["d"]):
            first = int(float(x)) // COLUMN
            last = (int(float(x)) + int(float(width)) - 1) // COLUMN
            for at in range(first, last + 1):
                columns[at].append((name, float(y), float(height)))
    return columns


@given(st.lists(days(), min_size=1, max_size=90))
def test_each_column_shows_the_states_of_its_day(given_days: list[ComponentDay]) -> None:
    names = [f"day {n}" for n in range(len(given_days))]
    columns = drawn(str(bars(given_days, names, names, "label")))
    assert len(columns) == len(given_days)
    for day, column in zip(given_days, columns, strict=True):
        names = [name for name, _, _ in column]
        split = day.split
        assert ("f-down" in names) == (split.bad_us > 0)
        assert ("f-maint" in names) == (split.excluded_us > 0)
        assert ("f-degraded" in names) == (day.degraded_us > 0 and not split.bad_us)
        if not split.range_us or split.unknown_us == split.range_us:
            assert names == ["url(#hatch)"], "an unmeasured day has no green"
        if split.good_us == 0:
            assert not {"f-up", "url(#good)"} & set(names)
        for name, _, height in column:
            if name == "f-down":
                assert height >= HEIGHT * DOWN_LEAST - 1.5, "a short outage is visible"


def test_days_without_data_yet_are_a_low_line_as_in_the_console() -> None:
    before, unmeasured = (
        ComponentDay(Instant(0), Split()),
        ComponentDay(Instant(0), Split(0, 0, DAY)),
    )
    assert unmeasured.split.unknown_us == DAY
    names = ["a", "b", "c"]
    found = bars([before, before, unmeasured], names, ["no data yet"] * 2 + ["missing"], "label")
    low = ("url(#hatch)", HEIGHT - BEFORE, BEFORE)
    assert drawn(str(found)) == [[low], [low], [("url(#hatch)", 0, HEIGHT)]]
    titles = [title.text for title in ElementTree.fromstring(str(found)).iter("title")]
    assert titles == ["a to b: no data yet", "c: missing"]
    (column,) = ElementTree.fromstring(str(days_of([UptimeDay("a", Split(), "x")], "y")))
    assert column[1].attrib["y"] == str(HEIGHT - BEFORE)


@given(days())
def test_the_segments_of_a_day_fill_its_column(day: ComponentDay) -> None:
    assert sum(height for _, height in heights(day)) == pytest.approx(HEIGHT)


@given(st.lists(days(), max_size=90))
def test_only_days_with_a_deviation_have_a_title(given_days: list[ComponentDay]) -> None:
    names = [f"<{n}>" for n in range(len(given_days))]
    said = ["not measured" if is_nothing(day) else "why & how" for day in given_days]
    root = ElementTree.fromstring(str(bars(given_days, names, said, 'a "label" & more')))
    assert root.attrib["aria-label"] == 'a "label" & more'
    told: dict[int, str] = {}
    for title in root.iter("title"):
        days_of, _, why = (title.text or "").rpartition(": ")
        first, _, last = days_of.partition(" to ")
        begins, ends = int(first[1:-1]), int((last or first)[1:-1])
        assert ends >= begins
        told |= dict.fromkeys(range(begins, ends + 1), why)
    assert told == {n: said[n] for n, day in enumerate(given_days) if not is_plain(day)}


def test_unmeasured_days_take_less_than_350_bytes() -> None:
    nothing = [ComponentDay(Instant(0), Split())] * 45 + [
        ComponentDay(Instant(0), Split(unknown_us=DAY))
    ] * 45
    found = str(bars(nothing, [str(n) for n in range(90)], ["not measured"] * 90, "x"))
    assert found.count("<title>") == 2, "days without data yet, and days that were not measured"
    assert "0 to 44: not measured" in found
    assert "45 to 89: not measured" in found
    assert len(found) < 350


def test_ninety_good_days_take_less_than_250_bytes() -> None:
    found = str(
        bars([ComponentDay(Instant(0), Split(good_us=DAY))] * 90, [""] * 90, [""] * 90, "x")
    )
    assert len(found) < 250


END = Moment("2026-01-05T00:00:00Z", "Mon 5 January", "00:00")
instants = st.integers(FROZEN_NOW, FROZEN_NOW + 3 * DAY).map(Instant)


@st.composite
def spans(draw: st.DrawFn, now: Instant) -> list[TimeSpan]:
    minutes = st.integers(0, 2 * 1_440)
    pairs = draw(st.lists(st.tuples(minutes, minutes), max_size=6))
    begin = now - 2 * DAY
    return merged(
        TimeSpan(Instant(begin + min(p) * MINUTE), Instant(begin + max(p) * MINUTE)) for p in pairs
    )


@st.composite
def measured(draw: st.DrawFn, now: Instant) -> list[LatencyPoint]:
    steps = draw(st.sets(st.integers(0, STEPS - 1)))
    found = []
    for step in sorted(steps):
        low, high = sorted(draw(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))))
        found.append(LatencyPoint(Instant(latency_span(now).from_ + step * STEP_US), low, high))
    return found


@given(st.data(), instants)
def test_a_step_is_shown_unless_maintenance_is_at_its_middle(
    data: st.DataObject, now: Instant
) -> None:
    points, off = data.draw(measured(now)), data.draw(spans(now))
    found = latency_of(7, {7: points}, {7: off}, now)
    assert found.until <= now < found.until + STEP_US
    assert found.until % STEP_US == 0
    assert found.until - found.from_at == DAY == STEPS * STEP_US
    middles = {one: one.at + STEP_US // 2 for one in points}
    kept = [p for p in points if not any(s.from_ <= middles[p] < s.until for s in off)]
    assert list(found.points) == kept
    assert found.withheld is (None if kept else LatencyWithheld.NO_RESULTS)


@pytest.mark.parametrize("monitor", [None, 8])
def test_a_component_without_a_measured_monitor_has_a_reason(monitor: int | None) -> None:
    found = latency_of(monitor, {7: []}, {}, FROZEN_NOW)
    assert found.withheld is LatencyWithheld.NOT_MEASURED


def test_every_type_except_pushes_and_composites_measures_latency() -> None:
    unmeasured = {kind for kind in MonitorType if not measures_latency(kind)}
    assert unmeasured == {MonitorType.PUSH, MonitorType.COMPOSITE}
    assert not measures_latency(None)


@given(st.data(), instants)
def test_the_plot_has_a_line_for_each_run_and_a_hatch_for_each_gap(
    data: st.DataObject, now: Instant
) -> None:
    points = data.draw(measured(now).filter(bool))
    span = latency_span(now)
    found = ComponentLatency(from_at=span.from_, until=span.until, points=points)
    item = latency_item("Till", found, END)
    assert item.plot is not None
    steps = [(one.at - span.from_) // STEP_US for one in points]
    runs = 1 + sum(after - before > 1 for before, after in pairwise(steps))
    gaps = runs - 1 + (steps[0] > 0) + (steps[-1] < STEPS - 1)
    drawn = str(item.plot)
    assert drawn.count('class="line"') == drawn.count('class="area"') == runs
    assert drawn.count('fill="url(#hatch)"') == gaps
    for d in re.findall(r'class="(?:line|area)" d="([^"]+)"', drawn):
        numbers = [float(one) for one in re.findall(r"[\d.]+", d)]
        assert all(0 <= x <= latency_plot.COLUMN * STEPS for x in numbers[::2])
        assert all(0 <= y <= latency_plot.HEIGHT for y in numbers[1::2])
    assert item.row[2] == f"{len(points)} of {STEPS}"


def test_the_name_of_a_component_is_escaped_and_a_reason_replaces_the_plot() -> None:
    span = latency_span(FROZEN_NOW)
    point = LatencyPoint(span.from_, 40, 90)
    found = ComponentLatency(from_at=span.from_, until=span.until, points=[point])
    item = latency_item('"><script>\u202e', found, END)
    assert "<script>" not in str(item.plot)
    assert item.text == "Latency: median 40\u202fms, 95th percentile up to 90\u202fms"
    for reason in LatencyWithheld:
        found = ComponentLatency(from_at=span.from_, until=span.until, withheld=reason)
        item = latency_item(str(UUID(int=1)), found, END)
        assert (item.plot, item.text) == (None, phrase(f"latency.{reason.value}"))
