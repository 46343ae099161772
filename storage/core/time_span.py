"""Sets of time as sorted lists of disjoint spans. All sums are exact."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .instant import DAY, Instant


@dataclass(frozen=True, slots=True, order=True)
class TimeSpan:
    """Span from one instant to another. Includes `from_` and excludes `until` by default.

    A caller that includes other ends documents it.
    """

    from_: Instant
    until: Instant

    @property
    def length_us(self) -> int:
        return self.until - self.from_


def merged(spans: Iterable[TimeSpan]) -> list[TimeSpan]:
    """Returns the union of the spans. Drops empty spans and joins adjacent ones."""
    result: list[TimeSpan] = []
    for span in sorted(spans):
        if span.until <= span.from_:
            continue
        if result and span.from_ <= result[-1].until:
            if span.until > result[-1].until:
                result[-1] = TimeSpan(result[-1].from_, span.until)
        else:
            result.append(span)
    return result


def cut_at_starts(spans: Iterable[TimeSpan]) -> list[TimeSpan]:
    """Returns the union of the spans, cut where one of them begins. Drops empty spans.

    Adjacent spans of the result are not joined.
    """
    given = [span for span in spans if span.from_ < span.until]
    starts = sorted({span.from_ for span in given})
    result: list[TimeSpan] = []
    for span in merged(given):
        first = bisect_right(starts, span.from_)
        cuts = starts[first : bisect_left(starts, span.until)]
        edges = [span.from_, *cuts, span.until]
        result += [TimeSpan(a, b) for a, b in pairwise(edges)]
    return result


def without(spans: Sequence[TimeSpan], holes: Sequence[TimeSpan]) -> list[TimeSpan]:
    """Returns the part of one set outside the other."""
    result: list[TimeSpan] = []
    index = 0
    for span in spans:
        start = span.from_
        while index < len(holes) and holes[index].until <= start:
            index += 1
        at = index
        while at < len(holes) and holes[at].from_ < span.until:
            if holes[at].from_ > start:
                result.append(TimeSpan(start, holes[at].from_))
            start = max(start, holes[at].until)
            at += 1
        if start < span.until:
            result.append(TimeSpan(start, span.until))
    return result


def clipped(spans: Iterable[TimeSpan], within: TimeSpan) -> list[TimeSpan]:
    """Returns the part of a set that is inside one span."""
    cut = (TimeSpan(max(s.from_, within.from_), min(s.until, within.until)) for s in spans)
    return [span for span in cut if span.from_ < span.until]


def by_day(span: TimeSpan) -> list[TimeSpan]:
    """Returns the parts of a span in each UTC day."""
    edges = [*range(span.from_ - span.from_ % DAY + DAY, span.until, DAY), span.until]
    starts = [span.from_, *edges[:-1]]
    pairs = zip(starts, edges, strict=True)
    return [TimeSpan(Instant(a), Instant(b)) for a, b in pairs if a < b]


def total_us(spans: Iterable[TimeSpan]) -> int:
    return sum(span.length_us for span in spans)


def holding(spans: Sequence[TimeSpan], instant: Instant) -> TimeSpan | None:
    """Returns the span of a set that contains the instant, its end excluded."""
    index = bisect_right(spans, instant, key=_from) - 1
    return spans[index] if index >= 0 and instant < spans[index].until else None


def _from(span: TimeSpan) -> Instant:
    return span.from_
