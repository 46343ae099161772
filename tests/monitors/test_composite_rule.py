"""The status of composites, compared with a model that computes every instant of a short day."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.kinds.composite import MODES
from leadline.storage.core.instant import Instant
from leadline.storage.core.key import MonitorKey
from leadline.storage.core.sli import Sample, SliCondition
from leadline.storage.core.time_span import TimeSpan, merged
from leadline.storage.monitors.rules.composite import (
    CompositeMember,
    CompositeMode,
    Composition,
    Lines,
    MemberWatermarks,
    composed,
    composite_status,
    depth_through,
    height,
    leads_back,
)
from leadline.storage.scheduling.rules.expected_run import least_watermark

GOOD, BAD, UNKNOWN, EXCLUDED = SliCondition
END = 60
members = st.lists(st.sampled_from(SliCondition), min_size=1, max_size=6)
modes = st.sampled_from(CompositeMode)


def span(from_: int, until: int) -> TimeSpan:
    return TimeSpan(Instant(from_), Instant(until))


def is_up(mode: str, quorum: int, ups: Sequence[bool]) -> bool:
    """An independent definition of the three modes."""
    if mode == "all":
        return all(ups)
    if mode == "any":
        return any(ups)
    return ups.count(False) < quorum


def by_trying(mode: str, quorum: int, found: Sequence[SliCondition]) -> SliCondition:
    """Every way in which the unknown ones may be."""
    counting = [c for c in found if c is not EXCLUDED]
    if not counting:
        return EXCLUDED
    choices = [[True, False] if c is UNKNOWN else [c is GOOD] for c in counting]
    answers = {is_up(mode, quorum, ups) for ups in itertools.product(*choices)}
    if len(answers) == 2:
        return UNKNOWN
    return GOOD if answers.pop() else BAD


@given(modes, st.integers(1, 7), members)
def test_unknown_members_are_tried_both_ways_and_one_answer_is_the_answer(
    mode: CompositeMode, quorum: int, found: list[SliCondition]
) -> None:
    assert composite_status(mode, quorum, found) is by_trying(mode.value, quorum, found)


@given(modes, st.integers(1, 7), members)
def test_a_child_in_maintenance_does_not_count(
    mode: CompositeMode, quorum: int, found: list[SliCondition]
) -> None:
    assert composite_status(mode, quorum, [*found, EXCLUDED]) is composite_status(
        mode, quorum, found
    )


def test_the_form_offers_the_modes_that_there_are() -> None:
    assert list(MODES) == list(CompositeMode)


@pytest.mark.parametrize(
    ("mode", "quorum", "found", "said"),
    [
        ("all", 0, [GOOD, GOOD, UNKNOWN], UNKNOWN),
        ("all", 0, [GOOD, BAD, UNKNOWN], BAD),
        ("any", 0, [GOOD, BAD, UNKNOWN], GOOD),
        ("any", 0, [BAD, UNKNOWN], UNKNOWN),
        ("quorum", 2, [GOOD, GOOD, UNKNOWN], GOOD),
        ("quorum", 2, [GOOD, GOOD, GOOD, BAD], GOOD),
        ("quorum", 2, [GOOD, GOOD, BAD, BAD], BAD),
        ("quorum", 2, [GOOD, UNKNOWN, BAD], UNKNOWN),
        ("quorum", 2, [GOOD, EXCLUDED, EXCLUDED], GOOD),
        ("quorum", 2, [BAD, EXCLUDED, EXCLUDED], GOOD),
        ("all", 0, [EXCLUDED, EXCLUDED], EXCLUDED),
    ],
)
def test_the_modes_have_the_expected_results(
    mode: str, quorum: int, found: list[SliCondition], said: SliCondition
) -> None:
    assert composite_status(CompositeMode(mode), quorum, found) is said


# -- over time ---------------------------------------------------------------------------------


@dataclass
class Part:
    """A monitor of a random history, in plain numbers."""

    begun: int
    samples: list[Sample] = field(default_factory=list)
    maintenance: list[TimeSpan] = field(default_factory=list)
    pauses: list[TimeSpan] = field(default_factory=list)
    # (from, mode, quorum, children): each governs until the next.
    terms: list[tuple[int, CompositeMode, int, list[int]]] = field(default_factory=list)


span_sets = st.lists(
    st.builds(lambda a, n: span(a, a + n), st.integers(0, END), st.integers(1, 20)), max_size=2
).map(merged)


@st.composite
def leaves(draw: st.DrawFn) -> Part:
    instants = sorted(draw(st.sets(st.integers(-20, END), max_size=10)))
    samples = [
        Sample(Instant(i), draw(st.booleans()), Instant(i + draw(st.integers(0, 30))))
        for i in instants
    ]
    return Part(draw(st.integers(-30, 20)), samples, draw(span_sets), draw(span_sets))


@st.composite
def histories(draw: st.DrawFn) -> list[Part]:
    """Some leaves, and composites whose children come earlier in the list. Each change can choose
    any children, so two composites can contain each other at different times, but never at the same
    time."""
    parts = draw(st.lists(leaves(), min_size=1, max_size=4))
    many = len(parts)
    for _ in range(draw(st.integers(1, 4))):
        parts.append(Part(draw(st.integers(-10, 15)), [], draw(span_sets), draw(span_sets)))
    changes = sorted(draw(st.sets(st.integers(0, END), max_size=3)) | {-30})
    for from_ in changes:
        order = draw(st.permutations(range(many, len(parts))))
        for n, at in enumerate(order):
            below = [*range(many), *order[:n]]
            children = draw(st.lists(st.sampled_from(below), min_size=1, max_size=4, unique=True))
            quorum = draw(st.integers(1, len(children)))
            parts[at].terms.append((from_, draw(modes), quorum, children))
    return parts


def paint(parts: list[Part], at: int, instant: int) -> SliCondition:
    """The condition of a monitor at an instant, by the specification."""
    part = parts[at]
    if any(s.from_ <= instant < s.until for s in part.maintenance):
        return EXCLUDED
    if instant < part.begun:
        return UNKNOWN
    if any(s.from_ <= instant < s.until for s in part.pauses):
        return UNKNOWN
    if part.terms:
        governing = [term for term in part.terms if term[0] <= instant]
        if not governing:
            return UNKNOWN
        _, mode, quorum, children = governing[-1]
        return by_trying(mode, quorum, [paint(parts, child, instant) for child in children])
    before = [s for s in part.samples if s.instant <= instant]
    if not before or instant >= before[-1].until:
        return UNKNOWN
    begun = [s.from_ for s in (*part.maintenance, *part.pauses)]
    if any(before[-1].instant < start <= instant for start in begun):
        return UNKNOWN
    return GOOD if before[-1].up else BAD


def compositions_of(part: Part) -> list[Composition]:
    ends = [*(term[0] for term in part.terms), 10**9][1:]
    return [
        Composition(
            Instant(from_),
            Instant(end),
            mode,
            quorum,
            tuple(MonitorKey((1, child)) for child in children),
        )
        for (from_, mode, quorum, children), end in zip(part.terms, ends, strict=True)
    ]


def known(parts: list[Part]) -> dict[MonitorKey, CompositeMember]:
    return {
        MonitorKey((1, n)): CompositeMember(
            Instant(part.begun),
            part.samples,
            part.maintenance,
            part.pauses,
            compositions_of(part),
        )
        for n, part in enumerate(parts)
    }


@given(histories(), st.integers(-10, END), st.integers(1, 40))
def test_the_line_of_every_monitor_is_what_it_was_at_every_instant(
    parts: list[Part], from_: int, length: int
) -> None:
    lines = Lines(known(parts))
    for n in range(len(parts)):
        line = lines.of(MonitorKey((1, n)), span(from_, from_ + length))
        spread = [condition for piece, condition in line for _ in range(piece.length_us)]
        assert spread == [paint(parts, n, t) for t in range(from_, from_ + length)]
        assert all(a[1] != b[1] for a, b in itertools.pairwise(line))
        assert all(a[0].until == b[0].from_ for a, b in itertools.pairwise(line))


def test_a_composite_of_unknown_children_is_unknown_at_every_instant() -> None:
    line = composed(CompositeMode.ANY, 0, [Lines({}).of(MonitorKey((1, 1)), span(0, 9))])
    assert line == [(span(0, 9), UNKNOWN)]


# -- how far it is sealed ----------------------------------------------------------------------


def sealed(
    parts: list[Part], marks: Mapping[MonitorKey, Instant | None], at: int, instant: int
) -> bool:
    part = parts[at]
    if not part.terms:
        mark = marks[MonitorKey((1, at))]
        return mark is not None and instant < mark
    governing = [term for term in part.terms if term[0] <= instant]
    return not governing or all(sealed(parts, marks, c, instant) for c in governing[-1][3])


marks_of_leaves = st.lists(st.none() | st.integers(-10, END + 10), min_size=4, max_size=4)


@given(histories(), marks_of_leaves)
def test_a_composite_is_sealed_as_far_as_its_children_at_each_instant(
    parts: list[Part], given_marks: list[int | None]
) -> None:
    marks = {
        MonitorKey((1, n)): None if m is None else Instant(m) for n, m in enumerate(given_marks)
    }
    compositions = {MonitorKey((1, n)): compositions_of(p) for n, p in enumerate(parts) if p.terms}
    for n in range(len(parts)):
        found = MemberWatermarks(compositions, marks).of(MonitorKey((1, n)), span(-20, END))
        open_ = (t for t in range(-20, END) if not sealed(parts, marks, n, t))
        assert found == next(open_, END)


@given(st.lists(st.integers(0, END), min_size=1, max_size=4))
def test_of_an_unchanging_composite_the_watermark_is_the_least_of_its_children(
    given_marks: list[int],
) -> None:
    marks: dict[MonitorKey, Instant | None] = {
        MonitorKey((1, n)): Instant(m) for n, m in enumerate(given_marks)
    }
    whole = {
        MonitorKey((1, 9)): [
            Composition(Instant(0), Instant(10**9), CompositeMode.ALL, 0, tuple(marks))
        ]
    }
    assert MemberWatermarks(whole, marks).of(MonitorKey((1, 9)), span(0, 10**9)) == least_watermark(
        marks.values()
    )


def test_a_member_that_is_added_does_not_move_the_watermark_back() -> None:
    before = Composition(Instant(0), Instant(40), CompositeMode.ALL, 0, (MonitorKey((1, 1)),))
    after = Composition(
        Instant(40), Instant(10**9), CompositeMode.ALL, 0, (MonitorKey((1, 1)), MonitorKey((1, 2)))
    )
    marks = {MonitorKey((1, 1)): Instant(50), MonitorKey((1, 2)): Instant(7)}
    assert (
        MemberWatermarks({MonitorKey((1, 9)): [before, after]}, marks).of(
            MonitorKey((1, 9)), span(0, 10**9)
        )
        == 40
    )


# -- which children are allowed --------------------------------------------------------------------

graphs = st.dictionaries(
    st.tuples(st.just(1), st.integers(0, 7)),
    st.lists(st.tuples(st.just(1), st.integers(0, 7)), max_size=4),
    max_size=8,
)


def paths(graph: Mapping[MonitorKey, Sequence[MonitorKey]], at: MonitorKey, length: int) -> bool:
    """True if a walk of `length` steps begins at the monitor."""
    return length == 0 or any(paths(graph, child, length - 1) for child in graph.get(at, ()))


@given(graphs)
def test_a_cycle_is_found_and_every_other_composite_has_a_height(
    graph: dict[MonitorKey, list[MonitorKey]],
) -> None:
    round_ = [key for key in graph if leads_back(key, graph)]
    # In a graph of eight nodes a walk of eight steps visits a node twice.
    assert bool(round_) == any(paths(graph, key, 8) for key in graph)
    if round_:
        return
    for key in graph:
        assert paths(graph, key, height(key, graph))
        assert not paths(graph, key, height(key, graph) + 1)


def test_the_depth_counts_the_levels_below_and_above() -> None:
    chain: dict[MonitorKey, list[MonitorKey]] = {
        MonitorKey((1, n)): [MonitorKey((1, n + 1))] for n in range(5)
    }
    assert [depth_through(MonitorKey((1, n)), chain) for n in range(6)] == [5] * 6
