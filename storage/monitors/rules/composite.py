"""Status of a composite: at each instant a function of its members only.

A member is up, down, unknown, or in maintenance. Members in maintenance are omitted; if all are,
the composite is in maintenance too. Unknown members are evaluated both as up and as down: if both
give one status, it is the status, otherwise the composite is unknown. The same function serves
current health, from states, and history, from timelines.

Past compositions are kept, because the composition at an instant determines its status. Invariant:
at each instant the compositions have no cycle, although over time they can. Therefore a traversal
carries its time span.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...core.sli import Sample, SliCondition, timeline
from ...core.time_span import TimeSpan, clipped, merged, without

# Limit of nesting. Deeper composites are probably a mistake, and expensive to traverse.
DEPTH_MOST = 10

# Time span in order, split into pieces with alternating conditions.
Line = list[tuple[TimeSpan, SliCondition]]


class CompositeMode(StrEnum):
    """Rule by which members decide.

    `all`: up if all are up. `any`: up if one is up. `quorum`: down if at least that many are down.
    """

    ALL = "all"
    ANY = "any"
    QUORUM = "quorum"


@dataclass(frozen=True, slots=True)
class Composition:
    """Children of a composite in [from, until)."""

    from_: Instant
    until: Instant
    mode: CompositeMode
    quorum: int
    children: tuple[MonitorKey, ...]


@dataclass(frozen=True, slots=True)
class CompositeMember:
    """Data of a monitor. A composite has compositions and no samples.

    `begun` is when it was first scheduled. Before that its status is unknown.
    """

    begun: Instant
    samples: Sequence[Sample] = ()
    maintenance: Sequence[TimeSpan] = ()
    pauses: Sequence[TimeSpan] = ()
    compositions: Sequence[Composition] = field(default=())


def composite_status(
    mode: CompositeMode, quorum: int, members: Iterable[SliCondition]
) -> SliCondition:
    """Returns the combined condition of the members. Members in maintenance do not count."""
    found = list(members)
    up = found.count(SliCondition.GOOD)
    unknown = found.count(SliCondition.UNKNOWN)
    return _status_of(mode, quorum, up, found.count(SliCondition.BAD), unknown)


def _status_of(mode: CompositeMode, quorum: int, up: int, down: int, unknown: int) -> SliCondition:
    counting = up + down + unknown
    if not counting:
        return SliCondition.EXCLUDED
    # Number of members that make the composite down.
    match mode:
        case CompositeMode.ALL:
            fatal = 1
        case CompositeMode.ANY:
            fatal = counting
        case CompositeMode.QUORUM:
            fatal = quorum
    if down >= fatal:
        return SliCondition.BAD
    return SliCondition.UNKNOWN if down + unknown >= fatal else SliCondition.GOOD


class Lines:
    """Timelines of monitors, computed from the data of all their descendants."""

    def __init__(self, members: Mapping[MonitorKey, CompositeMember]) -> None:
        self._members = members
        # Cached, because a monitor can be a child of several composites.
        self._made: dict[tuple[MonitorKey, TimeSpan], Line] = {}

    def of(self, key: MonitorKey, within: TimeSpan) -> Line:
        """Returns the timeline of a span. A monitor without data is unknown.

        Time before the monitor began is unknown here, or excluded by maintenance, although its own
        figures omit that time.
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
        line = overlaid(line, before, SliCondition.UNKNOWN)
        return overlaid(line, clipped(member.maintenance, within), SliCondition.EXCLUDED)

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
    """Returns the timeline of a composite from timelines of its children over the same span."""
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
    """Returns the timeline with one condition written over the given spans."""
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
    """Instants up to which all data of a monitor's timeline is sealed."""

    def __init__(
        self,
        compositions: Mapping[MonitorKey, Sequence[Composition]],
        watermarks: Mapping[MonitorKey, Instant | None],
    ) -> None:
        self._compositions = compositions
        self._watermarks = watermarks
        self._found: dict[tuple[MonitorKey, TimeSpan], Instant] = {}

    def of(self, key: MonitorKey, within: TimeSpan) -> Instant:
        """Returns the watermark within a span.

        The watermark of a composite is the least one of the children in each composition. An added
        child therefore delays it at most to the change, and a watermark never moves back.
        """
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
    """Returns the number of levels below a monitor, 0 without children.

    `children` must have no cycle, see `leads_back`.
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
    """Returns batches of monitors. The children of each batch are in earlier batches."""
    found: dict[int, list[MonitorKey]] = {}
    for key in sorted(set(keys)):
        found.setdefault(height(key, children), []).append(key)
    return [found[level] for level in sorted(found)]


def leads_back(key: MonitorKey, children: Mapping[MonitorKey, Iterable[MonitorKey]]) -> bool:
    """Returns whether a monitor is its own descendant."""
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
    """Returns the levels of the deepest composite that is `key` or contains it."""
    parents: dict[MonitorKey, list[MonitorKey]] = {}
    for parent, made_of in children.items():
        for child in made_of:
            parents.setdefault(child, []).append(parent)
    return height(key, children) + height(key, parents)
