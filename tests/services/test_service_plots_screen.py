"""The plots of services: no line across gaps, no bar without a rate, and every span at its
position.
"""

import re
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace
from typing import cast
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.http.services.console import state_history as states
from leadline.http.services.console.service_list import day_slot
from leadline.http.ui.plots.burn_gauge import gauge, place, spelt_rate
from leadline.http.ui.plots.burndown import HEIGHT as DOWN_HEIGHT
from leadline.http.ui.plots.burndown import (
    BudgetStep,
    SegmentKind,
    burndown,
    plot_text,
    whole_percent,
)
from leadline.http.ui.plots.heartbeat_strip import HeartbeatSlot
from leadline.http.ui.plots.latency import Tick
from leadline.http.ui.plots.maintenance_calendar import (
    LANES_MOST,
    MaintenanceSpan,
    MaintenanceWeek,
    in_lanes,
    windows,
)
from leadline.http.ui.plots.svg import HATCH
from leadline.http.ui.plots.timeline_lanes import (
    BEFORE_HIGH,
    Band,
    ChangeOutcomeClass,
    Divider,
    LaneMark,
    Lanes,
    ServiceState,
    StateBand,
    lanes,
    worst,
)
from leadline.http.ui.plots.timeline_lanes import ChangeSymbolKind as ChangeKind
from leadline.storage.core.instant import DAY, MINUTE, Instant
from leadline.storage.services.queries.service_list import ServiceDay
from leadline.storage.services.rows import ServiceRow

from ..server.test_plots_screen import NASTY, is_inline_free, parsed, percent

RATES = st.fractions(min_value=0, max_value=5_000)


@st.composite
def burning(draw: st.DrawFn) -> list[BudgetStep]:
    """Steps of equal length in which a budget decreases; some are unknown."""
    kinds = draw(st.lists(st.sampled_from(list(SegmentKind)), min_size=1, max_size=60))
    left, steps = 1.0, []
    for n, kind in enumerate(kinds):
        used = draw(st.sampled_from([0, 0, 0.01, 0.2])) if kind in drawn_kinds() else 0
        left -= used
        cost = NASTY if used >= 0.2 else ""
        steps.append(BudgetStep(n / len(kinds), (n + 1) / len(kinds), kind, left, cost))
    return steps


def drawn_kinds() -> tuple[SegmentKind, SegmentKind]:
    return SegmentKind.MEASURED, SegmentKind.PARTLY


def points_of(path: ElementTree.Element) -> list[tuple[float, float]]:
    found = re.findall(r"[ML]([\d.]+) ([\d.]+)", path.attrib["d"])
    return [(float(x), float(y)) for x, y in found]


@given(burning())
def test_the_budget_line_has_exactly_the_measured_steps(
    steps: list[BudgetStep],
) -> None:
    root = parsed(burndown(steps, [Tick(0.5, NASTY)], "Budget."))
    wide = 1000 / len(steps)
    seen: set[int] = set()
    for path in root.iter("path"):
        if path.attrib["class"] == "pace":
            continue
        xs = [x for x, _ in points_of(path)]
        slots = range(int((min(xs) + 0.1) / wide), int((max(xs) - 0.1) / wide) + 1)
        assert all(steps[slot].kind in drawn_kinds() for slot in slots)
        if path.attrib["class"] == "line":
            seen.update(slots)
    assert seen == {n for n, step in enumerate(steps) if step.kind in drawn_kinds()}


@given(burning())
def test_a_budget_never_rises_and_ends_at_the_remainder(steps: list[BudgetStep]) -> None:
    markup = burndown(steps, [], "Budget.")
    lines = [p for p in parsed(markup).iter("path") if p.attrib["class"] == "line"]
    points = [point for line in lines for point in points_of(line)]
    assert all(a <= b for (_, a), (_, b) in pairwise(points))
    assert all(0 <= y <= DOWN_HEIGHT for _, y in points)
    if points:
        last = [step for step in steps if step.kind in drawn_kinds()][-1]
        expected = DOWN_HEIGHT * (1 - max(last.left, 0))
        assert points[-1][1] == pytest.approx(expected, abs=0.01)
    assert is_inline_free(markup)


@given(burning())
def test_gaps_are_hatched_and_an_overdrawn_budget_is_red(
    steps: list[BudgetStep],
) -> None:
    root = parsed(burndown(steps, [], "Budget."))
    rects = list(root.iter("rect"))
    whole = [
        r
        for r in rects
        if r.attrib.get("fill") == HATCH and float(r.attrib["height"]) == DOWN_HEIGHT
    ]
    gaps = sum(step.kind is SegmentKind.GAP for step in steps)
    assert sum(percent(r.attrib["width"]) for r in whole) == pytest.approx(
        100 * gaps / len(steps), abs=0.5
    )
    over = sum(step.left < 0 and step.kind in drawn_kinds() for step in steps)
    red = [r for r in rects if r.attrib.get("class") == "f-down"]
    assert sum(percent(r.attrib["width"]) for r in red) == pytest.approx(
        100 * over / len(steps), abs=0.5
    )


@given(burning())
def test_the_text_of_a_budget_plot(steps: list[BudgetStep]) -> None:
    said = plot_text(steps)
    measured = [step for step in steps if step.kind in drawn_kinds()]
    assert (said == "Nothing was measured.") == (not measured)
    if measured:
        assert ("budget used up" in said.lower()) == (measured[-1].left <= 0)
        assert ("gap" in said) == any(step.kind is SegmentKind.GAP for step in steps)


def test_the_remaining_budget_is_rounded_down() -> None:
    assert whole_percent(0.999) == "99%"
    assert whole_percent(1.0) == "100%"
    assert whole_percent(0.005) == "0%"
    assert whole_percent(-0.001) == "-1%"


@given(RATES, RATES)
def test_the_position_grows_with_the_burn_rate(one: Fraction, other: Fraction) -> None:
    assert 0 <= place(one) <= 1
    if one <= other:
        assert place(one) <= place(other)


@given(st.none() | RATES, st.fractions(min_value="1/10", max_value=1_000))
def test_a_gauge_has_its_threshold_and_a_bar_for_a_known_rate(
    rate: Fraction | None, threshold: Fraction
) -> None:
    markup = gauge(rate, threshold, "f-data", NASTY)
    (image,) = parsed(markup)
    assert image.attrib["aria-label"] == NASTY
    rects = list(image.iter("rect"))
    bars = [r for r in rects if r.attrib.get("class") == "f-data"]
    hatched = [r for r in rects if r.attrib.get("fill") == HATCH]
    assert len(hatched) == (rate is None)
    assert len(bars) == (rate is not None and rate > 0)
    (tick,) = [line for line in image.iter("line") if line.attrib["class"] == "thr"]
    at = percent(tick.attrib["x1"])
    if bars and rate is not None:
        # The bar reaches the threshold line exactly if the rate reaches the threshold.
        wide = percent(bars[0].attrib["width"])
        assert wide >= at - 0.01 if rate >= threshold else wide <= at + 0.01
    assert is_inline_free(markup)


def test_the_positions_of_a_gauge_are_logarithmic() -> None:
    for rate, at in ((0, 0), (1, 0.25), (10, 0.5), (100, 0.75), (1_000, 1), (9_999, 1)):
        assert place(Fraction(rate)) == pytest.approx(at)


@given(RATES)
def test_a_rate_is_rounded_down_and_only_zero_is_shown_as_zero(rate: Fraction) -> None:
    said = spelt_rate(rate)
    assert said.endswith("×")
    if said.startswith("<"):
        assert 0 < rate < Fraction(1, 10)
    else:
        shown = Fraction(said[:-1])
        assert shown <= rate
        assert rate - shown < (1 if rate >= 100 else Fraction(1, 10))
        assert (shown == 0) == (rate == 0)


EDGES = st.lists(st.integers(0, 1_000), min_size=2, max_size=12, unique=True).map(sorted)


@given(EDGES, st.data())
def test_lanes_draw_every_item_once(edges: list[int], data: st.DataObject) -> None:
    spans = [(a / 1_000, b / 1_000) for a, b in pairwise(edges)]
    states = [
        StateBand(a, b, NASTY, data.draw(st.sampled_from(list(ServiceState)))) for a, b in spans
    ]
    bands = [Band(a, b, NASTY) for a, b in spans]
    cuts = [Divider(a, f"r{n}", NASTY) for n, (a, _) in enumerate(spans)]
    changes = [
        LaneMark(
            a,
            data.draw(st.sampled_from([a, b])),
            NASTY,
            data.draw(st.sampled_from(list(ChangeKind))),
            data.draw(st.sampled_from(list(ChangeOutcomeClass))),
        )
        for a, b in spans
    ]
    drawn = Lanes(
        changes=changes, states=states, incidents=bands, maintenance=bands, cuts=cuts, ticks=[]
    )
    markup = lanes(drawn, NASTY)
    (image,) = parsed(markup)
    assert image.attrib["aria-label"] == NASTY
    rects = list(image.iter("rect"))
    assert sum(r.attrib.get("class") == "f-ink" for r in rects) == len(bands)
    hatched = [r for r in rects if r.attrib.get("fill") == HATCH]
    low = [r for r in hatched if int(r.attrib["height"]) == BEFORE_HIGH]
    assert len(low) == sum(state.was is ServiceState.BEFORE for state in states)
    assert len(hatched) - len(low) == sum(state.was is ServiceState.UNKNOWN for state in states)
    assert sum(r.attrib.get("class") == "f-down" for r in rects) == sum(
        state.was is ServiceState.DOWN for state in states
    )
    assert sum(line.attrib["class"] == "lead" for line in image.iter("line")) == len(cuts)
    for rect in rects:
        right = percent(rect.attrib["x"]) + percent(rect.attrib["width"])
        assert right <= 100.02
        assert percent(rect.attrib["width"]) > 0
    groups = [each for each in image.iter("svg") if "change" in each.attrib.get("class", "")]
    assert len(groups) == len(changes)
    for group, change in zip(groups, changes, strict=True):
        assert group[0].text == NASTY
        signs = [use.attrib["href"] for use in group.iter("use")]
        assert signs[0] == f"#{change.kind}"
        # A failed or cancelled change has a sign of its own, in addition to its color.
        over = {
            ChangeOutcomeClass.FAILED: ["#c-failed"],
            ChangeOutcomeClass.CANCELLED: ["#c-cancelled"],
        }
        assert signs[1:] == over.get(change.outcome, [])
        assert group.attrib["class"] == f"change {change.outcome}"
        assert abs(percent(group.attrib["x"]) / 100 - change.from_) < 1e-3
    assert sum(r.attrib.get("class") == "f-data" for r in rects) == sum(
        change.to > change.from_ for change in changes
    )
    assert is_inline_free(markup)


def test_unrequested_lanes_are_omitted() -> None:
    drawn = Lanes(changes=[], states=[], incidents=[], ticks=[])
    (image,) = parsed(lanes(drawn, "said"))
    assert [text.text for text in image.iter("text")] == ["State", "Incidents", "Changes"]


def test_the_worst_of_merged_states_is_shown() -> None:
    assert (
        worst([ServiceState.HEALTHY, ServiceState.UNKNOWN, ServiceState.DEGRADED])
        is ServiceState.UNKNOWN
    )
    assert worst([ServiceState.UNKNOWN, ServiceState.DOWN]) is ServiceState.DOWN
    assert worst([ServiceState.MAINTENANCE, ServiceState.HEALTHY]) is ServiceState.MAINTENANCE
    assert worst([]) is None


NOW = Instant(1_000 * DAY)


@pytest.mark.parametrize(
    ("start", "sealed", "expected"),
    [
        # No declaration yet: the whole lane.
        (None, None, [("before", -10 * DAY, 0)]),
        (MINUTE, None, [("before", -10 * DAY, 0)]),
        # Declared some minutes ago: nothing is sealed, within the normal lag.
        (-5 * MINUTE, None, [("before", -10 * DAY, -5 * MINUTE)]),
        (-5 * MINUTE, -5 * MINUTE, [("before", -10 * DAY, -5 * MINUTE)]),
        # Nothing was sealed for two days: unknown, not before.
        (-2 * DAY, None, [("before", -10 * DAY, -2 * DAY), ("unknown", -2 * DAY, 0)]),
        # A gap after the start is unknown.
        (-DAY, -MINUTE, [("before", -10 * DAY, -DAY), ("unknown", -DAY, -MINUTE)]),
        # A service that is older than the axis has no such time.
        (-20 * DAY, -MINUTE, [("unknown", -10 * DAY, -MINUTE)]),
    ],
)
def test_time_before_the_start_of_a_service_is_neither_blank_nor_unknown(
    start: int | None, sealed: int | None, expected: list[tuple[str, int, int]]
) -> None:
    row = SimpleNamespace(
        materialization_start=None if start is None else Instant(NOW + start),
        sealed_through=None if sealed is None else Instant(NOW + sealed),
    )
    found = states.slots(cast("ServiceRow", row), [], Instant(NOW - 10 * DAY), NOW, DAY)
    runs = [(run[0].was.value, run[0].from_ - NOW, run[-1].to - NOW) for run in states.runs(found)]
    assert runs == expected
    if expected[0][0] == "before":
        assert states.plot_text(found)[0][1] == "No data yet"


SPANS = st.lists(
    st.tuples(st.integers(0, 999), st.integers(1, 400)).map(
        lambda pair: MaintenanceSpan(pair[0] / 1_000, min(sum(pair), 1_000) / 1_000, NASTY, NASTY)
    ),
    max_size=12,
)


@given(SPANS)
def test_overlapping_spans_have_separate_lanes(spans: list[MaintenanceSpan]) -> None:
    placed = in_lanes(spans)
    assert sorted(span.from_ for _, span in placed) == sorted(span.from_ for span in spans)
    for n, (lane, span) in enumerate(placed):
        for other_lane, other in placed[n + 1 :]:
            if lane == other_lane:
                assert other.from_ >= span.to
    # At most as many lanes as spans overlap at one instant; very short spans can add lanes.
    deepest = max((lane for lane, _ in placed), default=-1) + 1
    at_once = max(
        (sum(o.from_ < s.from_ + 0.004 and o.to > s.from_ - 0.004 for o in spans) for s in spans),
        default=0,
    )
    assert deepest <= at_once


@given(st.lists(SPANS, min_size=1, max_size=3))
def test_a_maintenance_calendar_draws_or_counts_each_window(
    found: list[list[MaintenanceSpan]],
) -> None:
    days = [str(n) for n in range(7)]
    weeks = [MaintenanceWeek(days, spans, 0.5 if n == 0 else None) for n, spans in enumerate(found)]
    markup = windows(weeks, NASTY)
    (image,) = parsed(markup)
    tints = [r for r in image.iter("rect") if r.attrib["class"] == "f-mtint"]
    hidden = [sum(lane >= LANES_MOST for lane, _ in in_lanes(week.spans)) for week in weeks]
    assert len(tints) + sum(hidden) == sum(len(spans) for spans in found)
    told_hidden = [t.text for t in image.iter("text") if (t.text or "").startswith("and ")]
    assert told_hidden == [f"and {many} more" for many in hidden if many]
    assert len([line for line in image.iter("line") if line.attrib["class"] == "now"]) == 1
    height = float(image.attrib["height"])
    for rect in tints:
        assert float(rect.attrib["y"]) + float(rect.attrib["height"]) <= height
        assert percent(rect.attrib["x"]) + percent(rect.attrib["width"]) <= 100.02
    assert is_inline_free(markup)


@pytest.mark.parametrize(
    ("measured", "bad", "excluded", "slot"),
    [
        (5, 0, 0, HeartbeatSlot.UP),
        (5, 1, 0, HeartbeatSlot.FAILED),
        (5, 1, 3, HeartbeatSlot.FAILED),
        (0, 0, 3, HeartbeatSlot.MAINTENANCE),
        (0, 0, 0, HeartbeatSlot.NONE),
    ],
)
def test_a_day_of_the_list_without_measured_time_is_never_up(
    measured: int, bad: int, excluded: int, slot: HeartbeatSlot
) -> None:
    day = ServiceDay(1, Instant(0), measured, bad, excluded)
    assert day_slot(day, is_before=False) is slot
    assert day_slot(day, is_before=True) is HeartbeatSlot.BEFORE
    assert day_slot(None, is_before=False) is HeartbeatSlot.NONE
