"""Plots draw every slot once, hatch unknown slots, and draw no line across them."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from leadline.http.ui.plots.expected_runs_strip import RunSlot, ledger, worst
from leadline.http.ui.plots.heartbeat_strip import EARLY, SLOT, HeartbeatSlot, strip
from leadline.http.ui.plots.latency import LatencyStep, LatencyValue, Tick, ceiling, latency
from leadline.http.ui.plots.oncall_calendar import ROW as CALENDAR_ROW
from leadline.http.ui.plots.oncall_calendar import TINTS, OnCallSpan, OnCallWeek, calendar
from leadline.http.ui.plots.oncall_calendar import TOP as CALENDAR_TOP
from leadline.http.ui.plots.phase_bars import Part, phases
from leadline.http.ui.plots.svg import HATCH, element, title
from leadline.http.ui.plots.uptime_days import HEIGHT as DAY_HEIGHT
from leadline.http.ui.plots.uptime_days import UptimeDay, bar, days, has_gap
from leadline.storage.core.sli import Split

NASTY = "<script>alert('x')</script> & \"quoted\""
BEATS = st.lists(st.sampled_from(list(HeartbeatSlot)), min_size=1, max_size=120)
RUNS = st.lists(st.sampled_from(list(RunSlot)), min_size=1, max_size=120)
US = st.integers(min_value=0, max_value=86_400_000_000)


def parsed(markup: Markup) -> ElementTree.Element:
    """Parses the markup as XML, which is stricter than HTML: every tag must be closed and every
    value escaped.
    """
    return ElementTree.fromstring(f"<svg>{markup}</svg>")


def is_inline_free(markup: Markup) -> bool:
    has_handler = re.search(r"\son[a-z]+=", markup) is not None
    return "style=" not in markup and "<script" not in markup and not has_handler


def slots_of_path(path: ElementTree.Element) -> list[int]:
    """Returns the slots that a dashed line covers, each SLOT wide."""
    found = re.fullmatch(r"M(\d+) \d+h(\d+)", path.attrib["d"])
    assert found is not None
    first = int(found[1]) // SLOT
    return list(range(first, first + (int(found[2]) + 2) // SLOT))


def percent(text: str) -> float:
    assert text.endswith("%")
    return float(text[:-1])


def slots_of_rect(rect: ElementTree.Element, many: int) -> list[int]:
    first = round(percent(rect.attrib.get("x", "0%")) * many / 100)
    return list(range(first, first + round(percent(rect.attrib["width"]) * many / 100)))


@given(BEATS)
def test_a_strip_draws_every_slot_once_in_its_state(beats: list[HeartbeatSlot]) -> None:
    markup = strip(beats, "Heartbeats")
    root = parsed(markup)
    drawn: dict[int, str] = {}
    for path in root.iter("path"):
        for slot in slots_of_path(path):
            assert slot not in drawn
            drawn[slot] = path.attrib["class"]
    for gap in (*root.iter("rect"), *root.iter("use")):
        is_low = gap.tag == "use"
        assert gap.attrib["href" if is_low else "fill"] == (EARLY if is_low else HATCH)
        for slot in slots_of_rect(gap, len(beats)):
            assert slot not in drawn
            drawn[slot] = (HeartbeatSlot.BEFORE if is_low else HeartbeatSlot.NONE).value
    expected = {at: beat.value for at, beat in enumerate(beats) if beat is not HeartbeatSlot.AWAY}
    assert drawn == expected
    assert is_inline_free(markup)


@given(BEATS)
def test_the_label_of_a_strip_counts_its_states(beats: list[HeartbeatSlot]) -> None:
    image = parsed(strip(beats, "Heartbeats"))[0]
    assert image.attrib["role"] == "img"
    said = image.attrib["aria-label"]
    assert said.startswith("Heartbeats: ")
    for beat, word in (
        (HeartbeatSlot.UP, "up"),
        (HeartbeatSlot.FAILED, "failed"),
        (HeartbeatSlot.NONE, "no result"),
        (HeartbeatSlot.BEFORE, "no data yet"),
    ):
        many = sum(b is beat for b in beats)
        assert (f"{many} {word}" in said.removeprefix("Heartbeats: ").split(", ")) == bool(many)


@given(RUNS)
def test_the_ledger_draws_every_due_run_once(
    runs: list[RunSlot],
) -> None:
    totals: dict[RunSlot, int] = {
        run: runs.count(run) for run in RunSlot if run is not RunSlot.AWAY
    }
    markup = ledger(runs, totals, lambda run, first, after: f"{after - first} {run} {NASTY}")
    drawn: dict[int, str] = {}
    for path in parsed(markup).iter("path"):
        class_ = path.attrib["class"]
        boxes = [int(x) // SLOT for x in re.findall(r"M(\d+) 4h8v12h-8z", path.attrib["d"])]
        for slot in boxes or slots_of_path(path):
            assert slot not in drawn
            drawn[slot] = class_
    assert drawn == {at: run.value for at, run in enumerate(runs) if run is not RunSlot.AWAY}
    assert is_inline_free(markup)


@given(RUNS)
def test_a_slot_of_several_runs_shows_the_worst(runs: list[RunSlot]) -> None:
    severity = ["away", "covered", "reserved", "late", "withheld", "missed"]
    shown = worst(runs).value.removeprefix("r-")
    assert all(severity.index(shown) >= severity.index(r.value[2:]) for r in runs)
    assert worst(runs) in runs


@given(st.builds(Split, US, US, US, US))
def test_a_day_fills_its_column_and_shows_every_outage(split: Split) -> None:
    shape = bar(split)
    assert abs(shape.down + shape.gap + shape.up + shape.plain - DAY_HEIGHT) < 1e-9
    assert (shape.down > 0) >= (split.bad_us > 0)
    if split.bad_us:
        assert shape.down >= 0.22 * DAY_HEIGHT
    if has_gap(split):
        assert shape.gap >= 0.09 * DAY_HEIGHT
    assert shape.maintenance == (split.excluded_us > 0)


@given(st.builds(Split, st.just(0), US, US, st.just(0)))
def test_a_day_without_good_time_has_no_green(split: Split) -> None:
    assert bar(split).up == 0


@given(st.builds(Split, US, st.just(0), US, US))
def test_a_day_that_was_never_down_has_no_red(split: Split) -> None:
    assert bar(split).down == 0


@given(st.lists(st.builds(Split, US, US, US, US), min_size=1, max_size=90))
def test_every_day_has_a_titled_column_and_gaps_are_hatched(splits: list[Split]) -> None:
    markup = days([UptimeDay(f"Day {n} {NASTY}", s, "said") for n, s in enumerate(splits)], "Days")
    groups = list(parsed(markup).iter("g"))
    assert len(groups) == len(splits)
    for at, (group, split) in enumerate(zip(groups, splits, strict=True)):
        assert group[0].tag == "title"
        assert (group[0].text or "").startswith(f"Day {at} {NASTY}")
        fills = [rect.attrib.get("fill") for rect in group.iter("rect")]
        assert (HATCH in fills) == (bar(split).gap > 0)
        assert all(float(rect.attrib["height"]) > 0 for rect in group.iter("rect"))
        place = percent(next(group.iter("rect")).attrib["x"])
        assert at * 100 / len(splits) <= place < (at + 1) * 100 / len(splits)
    assert is_inline_free(markup)


POINTS = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 5_000), st.integers(0, 5_000)).map(
            lambda pair: LatencyValue(LatencyStep.POINT, min(pair), max(pair))
        ),
        st.sampled_from([s for s in LatencyStep if s is not LatencyStep.POINT]).map(LatencyValue),
    ),
    min_size=1,
    max_size=60,
)


@given(POINTS)
def test_lines_and_bands_do_not_cross_steps_without_a_point(
    points: list[LatencyValue],
) -> None:
    root = parsed(latency(points, [Tick(0.5, NASTY)], "Latency."))
    wide = 1000 / len(points)
    seen: set[int] = set()
    for path in root.iter("path"):
        at = [float(x) for x in re.findall(r"[ML]([\d.]+) ", path.attrib["d"])]
        assert at
        first, last = int((min(at) + 0.1) / wide), int((max(at) - 0.1) / wide)
        for slot in range(first, last + 1):
            assert points[slot].kind is LatencyStep.POINT
            if path.attrib["class"] == "line":
                seen.add(slot)
    assert seen == {at for at, point in enumerate(points) if point.kind is LatencyStep.POINT}


@given(POINTS)
def test_exactly_the_gaps_are_hatched(points: list[LatencyValue]) -> None:
    root = parsed(latency(points, [], "Latency."))
    hatched: dict[int, LatencyStep] = {}
    for rect in root.iter("rect"):
        if rect.attrib.get("fill") == HATCH:
            is_low = int(rect.attrib["height"]) < 10
            kind = LatencyStep.BEFORE if is_low else LatencyStep.GAP
            hatched |= dict.fromkeys(slots_of_rect(rect, len(points)), kind)
    kinds = (LatencyStep.GAP, LatencyStep.BEFORE)
    assert hatched == {at: p.kind for at, p in enumerate(points) if p.kind in kinds}


@given(POINTS)
def test_latency_stays_inside_its_plot_and_has_a_label(points: list[LatencyValue]) -> None:
    markup = latency(points, [], "Latency.")
    for path in parsed(markup).iter("path"):
        heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", path.attrib["d"])]
        assert all(0 <= y <= 200 for y in heights)
    (image,) = [svg for svg in parsed(markup).iter("svg") if svg.attrib.get("role") == "img"]
    good = [point for point in points if point.kind is LatencyStep.POINT]
    said = image.attrib["aria-label"]
    assert ("No successful check" in said) == (not good)
    if good:
        assert f"up to {max(p.p95 for p in good)} ms" in said
    assert is_inline_free(markup)


@given(st.integers(0, 10_000_000))
def test_the_scale_includes_zero_and_the_largest_value(largest: int) -> None:
    top = ceiling(largest)
    assert top >= largest
    assert top >= 4
    # The scale is at most four times the largest value, so that the curve stays visible.
    assert largest < 4 or top <= 4 * largest


@given(st.lists(st.integers(0, 10_000_000), min_size=0, max_size=4), st.booleans())
def test_phases_are_shares_and_a_failed_phase_is_red(lengths: list[int], fails: bool) -> None:
    parts = [Part(f"p{n}", us) for n, us in enumerate(lengths)]
    if fails:
        parts.append(Part(NASTY, 5, failed=True))
    markup = phases(parts, "Last check")
    rects = [r for r in parsed(markup).iter("rect") if r.attrib["class"] != "f-base"]
    assert len(rects) == sum(part.us > 0 for part in parts)
    assert [r.attrib["class"] for r in rects].count("f-down") == fails
    widths = [percent(rect.attrib["width"]) for rect in rects]
    assert not widths or abs(sum(widths) - 100) < 0.1
    starts = [percent(rect.attrib["x"]) for rect in rects]
    for (start, width), following in pairwise(zip(starts, widths, strict=True)):
        assert abs(start + width - following[0]) < 0.1
    assert is_inline_free(markup)


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=0xD7FF)))
def test_values_are_escaped_as_text_and_as_attribute(text: str) -> None:
    root = parsed(element("g", title(text), text, aria_label=text))
    assert root[0].attrib["aria-label"].replace("\x85", " ").split() == text.split()
    assert root[0][0].text == text or not text


@st.composite
def weeks_of_turns(draw: st.DrawFn) -> list[OnCallWeek]:
    """Weeks divided into shifts, some of which are overridden."""
    found = []
    for number in range(draw(st.integers(1, 4))):
        cuts = sorted(draw(st.sets(st.integers(1, 99), max_size=6)))
        edges = [0, *cuts, 100]
        turns = [
            OnCallSpan(
                from_=a / 100, to=b / 100, name=NASTY, person=draw(st.integers(0, 9)), said=NASTY
            )
            for a, b in pairwise(edges)
        ]
        covered = draw(st.sets(st.sampled_from(turns), max_size=3)) if turns else set()
        found.append(
            OnCallWeek(
                days=[(day / 7, f"{day}") for day in range(7)],
                turns=turns,
                seen=[turn for turn in turns if turn not in covered],
                overrides=[turn for turn in turns if turn in covered],
                hand_offs=[cut / 100 for cut in cuts],
                now=0.5 if number == 0 else None,
            )
        )
    return found


@given(weeks_of_turns(), st.booleans())
def test_a_calendar_draws_every_shift_and_override_once(
    weeks: list[OnCallWeek], dense: bool
) -> None:
    markup = calendar(weeks, NASTY, dense=dense)
    (image,) = parsed(markup)
    assert (image.attrib["role"], image.attrib["aria-label"]) == ("img", NASTY)
    assert is_inline_free(markup)
    for number, week in enumerate(weeks):
        top = CALENDAR_TOP + number * CALENDAR_ROW
        inside = [r for r in image.iter("rect") if top <= float(r.attrib["y"]) < top + CALENDAR_ROW]
        turns = [r for r in inside if r.attrib["class"] != "override"]
        # The shifts fill the week without gaps and overlaps.
        assert sum(percent(r.attrib["width"]) for r in turns) == pytest.approx(100, abs=0.1)
        places = [(percent(r.attrib["x"]), r.attrib["class"]) for r in turns]
        assert [class_ for _, class_ in places] == [
            f"p{turn.person % TINTS + 1}" for turn in week.turns
        ]
        assert [at for at, _ in places] == [
            pytest.approx(100 * turn.from_, abs=0.01) for turn in week.turns
        ]
        assert len(inside) - len(turns) == len(week.overrides)
        ticks = [
            line
            for line in image.iter("line")
            if line.attrib["class"] == "hand-off"
            and top <= float(line.attrib["y1"]) < top + CALENDAR_ROW
        ]
        assert len(ticks) == (0 if dense else len(week.hand_offs))
    assert len([line for line in image.iter("line") if line.attrib["class"] == "now"]) == 1


def test_a_name_is_drawn_where_it_fits_outside_overrides() -> None:
    def span(from_: float, to: float, name: str) -> OnCallSpan:
        return OnCallSpan(from_=from_, to=to, name=name, person=0, said="")

    long = "A name that is far too long for a part of a week"
    week = OnCallWeek(
        days=[(0.0, "5 January")],
        turns=[span(0, 1, "Mara")],
        seen=[span(0, 0.05, "Mara"), span(0.3, 0.75, "Mara"), span(0.75, 1, long)],
        overrides=[span(0.05, 0.3, "Tomás")],
    )
    (image,) = parsed(calendar([week], "said"))
    names = [t for t in image.iter("text") if "who-name" in t.attrib.get("class", "")]
    told = [(text.text or "", percent(text.attrib["x"])) for text in names]
    assert [at for _, at in told] == [31.2, 76.2, 6.2]
    assert [name for name, _ in told][::2] == ["Mara", "Tomás"]
    assert told[1][0].startswith("A name")
    assert told[1][0].endswith("…")
    # On a phone only shifts that last most of a week have a name.
    assert [text.attrib["class"] for text in names] == [
        "who-name",
        "who-name wide",
        "who-name wide",
    ]
