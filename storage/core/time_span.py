"""Sets of time as sorted lists of spans that neither touch nor overlap; all sums are exact."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .instant import DAY, Instant


@dataclass(frozen=True, slots=True, order=True)
class TimeSpan:
    """From one instant to another; whether its ends belong to it is for the user to say.

    Where nothing is said, `from_` belongs to it and `until` does not.
    """

    from_: Instant
    until: Instant

    @property
    def length_us(self) -> int:
        return self.until - self.from_


def merged(spans: Iterable[TimeSpan]) -> list[TimeSpan]:
    """The same time as a set; empty spans fall out, touching ones become one."""
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


def without(spans: Sequence[TimeSpan], holes: Sequence[TimeSpan]) -> list[TimeSpan]:
    """What of one set is not in the other; both as `merged` gives them."""
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
    """What of a set lies within one span."""
    cut = (TimeSpan(max(s.from_, within.from_), min(s.until, within.until)) for s in spans)
    return [span for span in cut if span.from_ < span.until]


def by_day(span: TimeSpan) -> list[TimeSpan]:
    """The parts of a span that lie in each day in UTC."""
    edges = [*range(span.from_ - span.from_ % DAY + DAY, span.until, DAY), span.until]
    starts = [span.from_, *edges[:-1]]
    pairs = zip(starts, edges, strict=True)
    return [TimeSpan(Instant(a), Instant(b)) for a, b in pairs if a < b]


def total_us(spans: Iterable[TimeSpan]) -> int:
    return sum(span.length_us for span in spans)


def holding(spans: Sequence[TimeSpan], instant: Instant) -> TimeSpan | None:
    """The span of a merged set that an instant lies in, its end not included."""
    index = bisect_right(spans, instant, key=_from) - 1
    return spans[index] if index >= 0 and instant < spans[index].until else None


def _from(span: TimeSpan) -> Instant:
    return span.from_
