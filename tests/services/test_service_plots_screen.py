"""Plots of services draw no line where nothing was measured, no bar for what is not decided, and
every stretch in its place.
"""

import re
from fractions import Fraction
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.http.ui.plots.burn_gauge import gauge, place, spelt_rate
from leadline.http.ui.plots.burndown import HEIGHT as DOWN_HEIGHT
from leadline.http.ui.plots.burndown import (
    BudgetStep,
    SegmentKind,
    burndown,
    plot_text,
    whole_percent,
)
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

from ..server.test_plots_screen import NASTY, is_inline_free, parsed, percent

RATES = st.fractions(min_value=0, max_value=5_000)


@st.composite
def burning(draw: st.DrawFn) -> list[BudgetStep]:
    """A budget that is used up in steps of equal length, of which some are not known."""
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
def test_a_budget_s_line_goes_through_every_measured_step_and_through_no_other(
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
def test_a_budget_never_rises_and_ends_at_what_is_left(steps: list[BudgetStep]) -> None:
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
def test_what_was_not_measured_is_hatched_over_the_whole_height_and_overdraft_is_red(
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
def test_a_budget_is_told_in_words(steps: list[BudgetStep]) -> None:
    said = plot_text(steps)
    measured = [step for step in steps if step.kind in drawn_kinds()]
    assert (said == "Nothing was measured.") == (not measured)
    if measured:
        assert ("budget used up" in said.lower()) == (measured[-1].left <= 0)
        assert ("gap" in said) == any(step.kind is SegmentKind.GAP for step in steps)


def test_what_is_left_is_cut_and_never_rounded_up() -> None:
    assert whole_percent(0.999) == "99\u202f%"
    assert whole_percent(1.0) == "100\u202f%"
    assert whole_percent(0.005) == "0\u202f%"
    assert whole_percent(-0.001) == "-1\u202f%"


@given(RATES, RATES)
def test_a_faster_burn_never_stands_further_left(one: Fraction, other: Fraction) -> None:
    assert 0 <= place(one) <= 1
    if one <= other:
        assert place(one) <= place(other)


@given(st.none() | RATES, st.fractions(min_value="1/10", max_value=1_000))
def test_a_gauge_has_a_bar_exactly_where_there_is_a_rate_and_always_its_threshold(
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
        # The eye sees what the rule sees.
        wide = percent(bars[0].attrib["width"])
        assert wide >= at - 0.01 if rate >= threshold else wide <= at + 0.01
    assert is_inline_free(markup)


def test_a_gauge_s_places_are_those_of_its_scale() -> None:
    for rate, at in ((0, 0), (1, 0.25), (10, 0.5), (100, 0.75), (1_000, 1), (9_999, 1)):
        assert place(Fraction(rate)) == pytest.approx(at)


@given(RATES)
def test_a_rate_is_cut_and_only_nothing_is_called_nothing(rate: Fraction) -> None:
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
def test_lanes_draw_every_change_state_incident_maintenance_and_revision_once(
    edges: list[int], data: st.DataObject
) -> None:
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
    assert len(hatched) == sum(state.was is ServiceState.UNKNOWN for state in states)
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
        # What ended otherwise than well is told apart without any colour.
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


def test_lanes_that_are_not_asked_for_are_not_there() -> None:
    drawn = Lanes(changes=[], states=[], incidents=[], ticks=[])
    (image,) = parsed(lanes(drawn, "said"))
    assert [text.text for text in image.iter("text")] == ["Changes", "State", "Incidents"]


def test_of_what_meets_the_worst_is_shown_and_unknown_hides_no_fall() -> None:
    assert (
        worst([ServiceState.HEALTHY, ServiceState.UNKNOWN, ServiceState.DEGRADED])
        is ServiceState.UNKNOWN
    )
    assert worst([ServiceState.UNKNOWN, ServiceState.DOWN]) is ServiceState.DOWN
    assert worst([ServiceState.MAINTENANCE, ServiceState.HEALTHY]) is ServiceState.MAINTENANCE
    assert worst([]) is None


SPANS = st.lists(
    st.tuples(st.integers(0, 999), st.integers(1, 400)).map(
        lambda pair: MaintenanceSpan(pair[0] / 1_000, min(sum(pair), 1_000) / 1_000, NASTY, NASTY)
    ),
    max_size=12,
)


@given(SPANS)
def test_what_overlaps_stands_in_lanes_of_its_own(spans: list[MaintenanceSpan]) -> None:
    placed = in_lanes(spans)
    assert sorted(span.from_ for _, span in placed) == sorted(span.from_ for span in spans)
    for n, (lane, span) in enumerate(placed):
        for other_lane, other in placed[n + 1 :]:
            if lane == other_lane:
                assert other.from_ >= span.to
    # No deeper than what overlaps at one instant, but for what is too short to be seen.
    deepest = max((lane for lane, _ in placed), default=-1) + 1
    at_once = max(
        (sum(o.from_ < s.from_ + 0.004 and o.to > s.from_ - 0.004 for o in spans) for s in spans),
        default=0,
    )
    assert deepest <= at_once


@given(st.lists(SPANS, min_size=1, max_size=3))
def test_a_calendar_of_maintenance_draws_each_or_says_how_many_it_does_not(
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
