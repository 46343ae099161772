"""Availability by time: how long a target was good, bad, unknown or excluded.

A result applies from its instant until the next result, at most until the end of its validity. The
start of a pause or maintenance ends the validity of earlier results. Time in maintenance is
excluded, whatever was measured in it. Time in a pause, or without a valid result, is unknown.

Invariant: every microsecond of a range has exactly one of the four conditions, so splits can be
added.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import msgspec

from .instant import Instant
from .time_span import TimeSpan, clipped, merged, without


@dataclass(frozen=True, slots=True)
class Sample:
    """A result that is valid in [instant, until), unless another event ends it earlier."""

    instant: Instant
    up: bool
    until: Instant


class SliCondition(StrEnum):
    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "unknown"
    EXCLUDED = "excluded"


class Split(msgspec.Struct, frozen=True, gc=False):
    """Duration of each condition in a range, in whole microseconds."""

    good_us: int = 0
    bad_us: int = 0
    unknown_us: int = 0
    excluded_us: int = 0

    def __add__(self, other: "Split") -> "Split":
        return Split(
            self.good_us + other.good_us,
            self.bad_us + other.bad_us,
            self.unknown_us + other.unknown_us,
            self.excluded_us + other.excluded_us,
        )

    @property
    def measured_us(self) -> int:
        return self.good_us + self.bad_us

    @property
    def range_us(self) -> int:
        return self.measured_us + self.unknown_us + self.excluded_us

    def availability(self) -> Fraction | None:
        """Returns good / (good + bad); None if no time was measured."""
        return Fraction(self.good_us, self.measured_us) if self.measured_us else None

    def coverage(self) -> Fraction | None:
        """Returns (good + bad) / (range − excluded); None if the whole range was excluded."""
        counted_us = self.range_us - self.excluded_us
        return Fraction(self.measured_us, counted_us) if counted_us else None


NOTHING = Split()


def total(splits: Iterable[Split]) -> Split:
    return sum(splits, NOTHING)


def split(
    samples: Sequence[Sample],
    within: TimeSpan,
    maintenance: Sequence[TimeSpan] = (),
    pauses: Sequence[TimeSpan] = (),
) -> Split:
    """Returns the split of one range.

    `samples` are ordered by instant and include the sample that is valid at the start of the range.
    """
    return buckets(samples, [within.from_, within.until], maintenance, pauses)[0]


def buckets(
    samples: Sequence[Sample],
    edges: Sequence[Instant],
    maintenance: Sequence[TimeSpan] = (),
    pauses: Sequence[TimeSpan] = (),
) -> list[Split]:
    """Returns one split per range between adjacent edges, in one pass over the samples."""
    if len(edges) < 2:
        return []
    within = TimeSpan(edges[0], edges[-1])
    excluded = merged(clipped(maintenance, within))
    silent = merged([*excluded, *clipped(pauses, within)])
    good, bad = _spoken(samples, within, maintenance, pauses)
    goods = _per_bucket(without(good, silent), edges)
    bads = _per_bucket(without(bad, silent), edges)
    outs = _per_bucket(excluded, edges)
    return [
        Split(
            goods[i],
            bads[i],
            edges[i + 1] - edges[i] - goods[i] - bads[i] - outs[i],
            outs[i],
        )
        for i in range(len(edges) - 1)
    ]


def timeline(
    samples: Sequence[Sample],
    within: TimeSpan,
    maintenance: Sequence[TimeSpan] = (),
    pauses: Sequence[TimeSpan] = (),
) -> list[tuple[TimeSpan, SliCondition]]:
    """Returns the spans of the range in order, with conditions that alternate.

    The state of a composite or service at an instant is a function of these conditions.
    """
    excluded = merged(clipped(maintenance, within))
    silent = merged([*excluded, *clipped(pauses, within)])
    good, bad = _spoken(samples, within, maintenance, pauses)
    pieces = [(span, SliCondition.GOOD) for span in without(good, silent)]
    pieces += [(span, SliCondition.BAD) for span in without(bad, silent)]
    pieces += [(span, SliCondition.EXCLUDED) for span in excluded]
    rest = without([within], merged(span for span, _ in pieces))
    pieces += [(span, SliCondition.UNKNOWN) for span in rest]
    return sorted(pieces, key=lambda piece: piece[0].from_)


def line_buckets(
    line: Sequence[tuple[TimeSpan, SliCondition]], edges: Sequence[Instant]
) -> list[Split]:
    """Returns one split per range between adjacent edges. The timeline covers all ranges."""
    sums = [
        _per_bucket(
            clipped(
                (span for span, kind in line if kind is condition), TimeSpan(edges[0], edges[-1])
            ),
            edges,
        )
        for condition in SliCondition
    ]
    return [Split(*parts) for parts in zip(*sums, strict=True)]


def _spoken(
    samples: Sequence[Sample],
    within: TimeSpan,
    maintenance: Sequence[TimeSpan],
    pauses: Sequence[TimeSpan],
) -> tuple[list[TimeSpan], list[TimeSpan]]:
    """Returns the good and the bad spans, before exclusions."""
    breaks = sorted({span.from_ for span in (*maintenance, *pauses)})
    good: list[TimeSpan] = []
    bad: list[TimeSpan] = []
    for sample, from_, until in _holds(samples, breaks, within):
        said = good if sample.up else bad
        if said and said[-1].until == from_:
            said[-1] = TimeSpan(said[-1].from_, until)
        else:
            said.append(TimeSpan(from_, until))
    return good, bad


def _holds(
    samples: Sequence[Sample], breaks: Sequence[Instant], within: TimeSpan
) -> Iterator[tuple[Sample, Instant, Instant]]:
    """Yields each sample with the part of the range in which it is valid."""
    index = 0
    for position, sample in enumerate(samples):
        if sample.instant >= within.until:
            break
        until = min(sample.until, within.until)
        if position + 1 < len(samples):
            until = min(until, samples[position + 1].instant)
        # A break at the instant of the sample does not end it.
        while index < len(breaks) and breaks[index] <= sample.instant:
            index += 1
        if index < len(breaks):
            until = min(until, breaks[index])
        from_ = max(sample.instant, within.from_)
        if from_ < until:
            yield sample, from_, until


def _per_bucket(spans: Sequence[TimeSpan], edges: Sequence[Instant]) -> list[int]:
    """Returns the duration of the spans between each pair of adjacent edges."""
    sums = [0] * (len(edges) - 1)
    index = 0
    for span in spans:
        while index < len(sums) - 1 and edges[index + 1] <= span.from_:
            index += 1
        at, from_ = index, span.from_
        while at < len(sums) and from_ < span.until:
            until = min(span.until, edges[at + 1])
            sums[at] += until - from_
            from_ = until
            at += 1
    return sums
