"""The 90 bars of a component, parsed from the SVG and compared with the measured days."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.http.status_pages.public.uptime_bars import (
    COLUMN,
    bars,
    heights,
    is_nothing,
    is_plain,
)
from leadline.http.ui.plots.uptime_days import DOWN_LEAST, HEIGHT
from leadline.storage.core.instant import DAY, MINUTE, Instant
from leadline.storage.core.sli import Split
from leadline.storage.status_pages.rules.status_page import ComponentDay

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


def test_unmeasured_days_take_less_than_300_bytes() -> None:
    nothing = [ComponentDay(Instant(0), Split())] * 45 + [
        ComponentDay(Instant(0), Split(unknown_us=DAY))
    ] * 45
    found = str(bars(nothing, [str(n) for n in range(90)], ["not measured"] * 90, "x"))
    assert found.count("<title>") == 1
    assert "0 to 89: not measured" in found
    assert len(found) < 300


def test_ninety_good_days_take_less_than_250_bytes() -> None:
    found = str(
        bars([ComponentDay(Instant(0), Split(good_us=DAY))] * 90, [""] * 90, [""] * 90, "x")
    )
    assert len(found) < 250
