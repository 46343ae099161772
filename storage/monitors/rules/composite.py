"""What a composite says: at every instant a function of its members, and of nothing else.

A member is up, down, unknown, or in maintenance. Those in maintenance leave; when all have left,
the composite is in maintenance too. Unknown members are tried as up and as down: where both give
one answer it is the answer, else the composite is unknown. One function says so for live health,
which asks for the members' states, and for time, which asks for their lines.

What a composite was made of is kept, as the composition that governed an instant counts for it.
At every instant compositions are free of circles, though over time they need not be: so whoever
follows them down carries the stretch that they are followed for.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...core.sli import Sample, SliCondition, timeline
from ...core.time_span import TimeSpan, clipped, merged, without

# A composite of composites of … so many: what is deeper is a mistake, and dear to follow.
DEPTH_MOST = 10

# A stretch of time in order, each piece with its condition, neighbours differing.
Line = list[tuple[TimeSpan, SliCondition]]


class CompositeMode(StrEnum):
    """How many of the members that count must be up."""

    ALL = "all"
    ANY = "any"
    QUORUM = "quorum"


@dataclass(frozen=True, slots=True)
class Composition:
    """What a composite is made of in [from, until)."""

    from_: Instant
    until: Instant
    mode: CompositeMode
    quorum: int
    children: tuple[MonitorKey, ...]


@dataclass(frozen=True, slots=True)
class CompositeMember:
    """What is known of a monitor; one that has compositions is a composite, and has no samples.

    `begun` is when it was first scheduled: before that it is unknown.
    """

    begun: Instant
    samples: Sequence[Sample] = ()
    maintenance: Sequence[TimeSpan] = ()
    pauses: Sequence[TimeSpan] = ()
    compositions: Sequence[Composition] = field(default=())


def composite_status(
    mode: CompositeMode, quorum: int, members: Iterable[SliCondition]
) -> SliCondition:
    """What the members together say. A quorum is capped at the members that count: maintenance of
    some is no failure of the others."""
    found = list(members)
    up = found.count(SliCondition.GOOD)
    unknown = found.count(SliCondition.UNKNOWN)
    return _status_of(mode, quorum, up, found.count(SliCondition.BAD), unknown)


def _status_of(mode: CompositeMode, quorum: int, up: int, down: int, unknown: int) -> SliCondition:
    counting = up + down + unknown
    if not counting:
        return SliCondition.EXCLUDED
    match mode:
        case CompositeMode.ALL:
            needed = counting
        case CompositeMode.ANY:
            needed = 1
        case CompositeMode.QUORUM:
            needed = min(quorum, counting)
    if up >= needed:
        return SliCondition.GOOD
    return SliCondition.UNKNOWN if up + unknown >= needed else SliCondition.BAD


class Lines:
    """The lines of monitors over time, made from what is known of all that lies beneath them."""

    def __init__(self, members: Mapping[MonitorKey, CompositeMember]) -> None:
        self._members = members
        # Of a member of many, once for all.
        self._made: dict[tuple[MonitorKey, TimeSpan], Line] = {}

    def of(self, key: MonitorKey, within: TimeSpan) -> Line:
        """Every instant of a stretch with its condition; a monitor nothing is known of is unknown.

        Time before the monitor began is unknown here, though to itself it is no time at all.
        """
        made = self._made.get((key, within))
        if made is None:
            made = self._made[key, within] = self._make(key, within)
        return made

    def _make(self, key: MonitorKey, within: TimeSpan) -> Line:
        member = self._members.get(key)
        if member is None:
            return [(within, SliCondition.UNKNOWN)]
        before = clipped([TimeSpan(within.from_, member.begun)], within)
        if not member.compositions:
            line = timeline(member.samples, within, member.maintenance, member.pauses)
        else:
            line = self._composed(member.compositions, within)
            line = overlaid(line, clipped(member.pauses, within), SliCondition.UNKNOWN)
            line = overlaid(line, clipped(member.maintenance, within), SliCondition.EXCLUDED)
        return overlaid(line, before, SliCondition.UNKNOWN)

    def _composed(self, compositions: Sequence[Composition], within: TimeSpan) -> Line:
        pieces: Line = []
        for composition in compositions:
            for part in clipped([TimeSpan(composition.from_, composition.until)], within):
                lines = [self.of(child, part) for child in composition.children]
                pieces += composed(composition.mode, composition.quorum, lines)
        governed = merged(span for span, _ in pieces)
        pieces += [(span, SliCondition.UNKNOWN) for span in without([within], governed)]
        return _joined(pieces)


def composed(mode: CompositeMode, quorum: int, lines: Sequence[Line]) -> Line:
    """The line of what is made of these, which all tell of the same stretch."""
    changes = [
        (instant, condition, step)
        for line in lines
        for span, condition in line
        for instant, step in ((span.from_, 1), (span.until, -1))
    ]
    changes.sort(key=lambda change: change[0])
    counts = dict.fromkeys(SliCondition, 0)
    pieces: Line = []
    for n, (instant, condition, step) in enumerate(changes[:-1]):
        counts[condition] += step
        until = changes[n + 1][0]
        if until > instant:
            up, down = counts[SliCondition.GOOD], counts[SliCondition.BAD]
            said = _status_of(mode, quorum, up, down, counts[SliCondition.UNKNOWN])
            pieces.append((TimeSpan(instant, until), said))
    return _joined(pieces)


def overlaid(line: Line, spans: Sequence[TimeSpan], condition: SliCondition) -> Line:
    """The line with one condition laid over some of its time."""
    if not spans:
        return line
    over = merged(spans)
    kept = [
        (rest, kind)
        for kind in SliCondition
        for rest in without([span for span, is_ in line if is_ is kind], over)
    ]
    return _joined([*kept, *((span, condition) for span in over)])


def _joined(pieces: Line) -> Line:
    line: Line = []
    for span, condition in sorted(pieces, key=lambda piece: piece[0].from_):
        if line and line[-1][1] is condition and line[-1][0].until == span.from_:
            line[-1] = (TimeSpan(line[-1][0].from_, span.until), condition)
        else:
            line.append((span, condition))
    return line


class MemberWatermarks:
    """How far everything is sealed that a monitor's line is made of."""

    def __init__(
        self,
        compositions: Mapping[MonitorKey, Sequence[Composition]],
        watermarks: Mapping[MonitorKey, Instant | None],
    ) -> None:
        self._compositions = compositions
        self._watermarks = watermarks
        self._found: dict[tuple[MonitorKey, TimeSpan], Instant] = {}

    def of(self, key: MonitorKey, within: TimeSpan) -> Instant:
        """How far into a stretch. A composite is sealed as far as the least of the members that
        governed an instant: so one that is added holds it back to the change at most, and a
        watermark never moves back."""
        found = self._found.get((key, within))
        if found is None:
            found = self._found[key, within] = self._find(key, within)
        return found

    def _find(self, key: MonitorKey, within: TimeSpan) -> Instant:
        if key not in self._compositions:
            mark = self._watermarks.get(key)
            return within.from_ if mark is None else min(max(mark, within.from_), within.until)
        for composition in self._compositions[key]:
            for part in clipped([TimeSpan(composition.from_, composition.until)], within):
                least = min(self.of(child, part) for child in composition.children)
                if least < part.until:
                    return least
        return within.until


def height(key: MonitorKey, children: Mapping[MonitorKey, Iterable[MonitorKey]]) -> int:
    """How many levels lie beneath a monitor; 0 for one that is made of nothing.

    `children` must be free of circles: see `leads_back`.
    """
    heights: dict[MonitorKey, int] = {}

    def measure(at: MonitorKey) -> int:
        if at not in heights:
            heights[at] = max((measure(child) + 1 for child in children.get(at, ())), default=0)
        return heights[at]

    return measure(key)


def by_height(
    keys: Iterable[MonitorKey], children: Mapping[MonitorKey, Iterable[MonitorKey]]
) -> list[list[MonitorKey]]:
    """Monitors in batches, each of which is made of earlier ones only."""
    found: dict[int, list[MonitorKey]] = {}
    for key in sorted(set(keys)):
        found.setdefault(height(key, children), []).append(key)
    return [found[level] for level in sorted(found)]


def leads_back(key: MonitorKey, children: Mapping[MonitorKey, Iterable[MonitorKey]]) -> bool:
    """Whether a monitor would be made of itself."""
    seen: set[MonitorKey] = set()
    waiting = list(children.get(key, ()))
    while waiting:
        at = waiting.pop()
        if at == key:
            return True
        if at not in seen:
            seen.add(at)
            waiting += children.get(at, ())
    return False


def depth_through(key: MonitorKey, children: Mapping[MonitorKey, Iterable[MonitorKey]]) -> int:
    """The levels of the deepest composite that a composite is part of, itself included."""
    parents: dict[MonitorKey, list[MonitorKey]] = {}
    for parent, made_of in children.items():
        for child in made_of:
            parents.setdefault(child, []).append(parent)
    return height(key, children) + height(key, parents)
