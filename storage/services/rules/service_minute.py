"""Sealed minutes of a service, stored as runs of equal neighbouring minutes.

Invariants: all minutes of a run have the same durations; runs do not overlap; no run crosses
midnight UTC. A run that overlaps a range therefore begins less than a day before it. A day without
a change is one row.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ...core.instant import DAY, MINUTE, Instant
from ...core.time_span import TimeSpan
from .service_health import Durations, StateLine, durations


@dataclass(frozen=True, slots=True)
class MinuteSpan:
    """Run of whole minutes in [from, until) with equal durations. `epoch` is its number."""

    from_: Instant
    until: Instant
    epoch: int
    each: Durations

    @property
    def minutes(self) -> int:
        return (self.until - self.from_) // MINUTE

    @property
    def total(self) -> Durations:
        return self.each.times(self.minutes)


def runs_of(line: StateLine, within: TimeSpan, epoch: int) -> list[MinuteSpan]:
    """Returns the runs for a line over a span of whole minutes under one epoch."""
    found: list[MinuteSpan] = []
    edges = [within.from_]
    parts: list[Durations] = []
    # Minutes without a change are computed together, so that the work follows the line's length.
    for span, _ in line:
        edges += [Instant(at) for at in _edges_of(span, within) if at > edges[-1]]
    if edges[-1] < within.until:
        edges.append(within.until)
    parts = durations(line, edges)
    for n, part in enumerate(parts):
        count = (edges[n + 1] - edges[n]) // MINUTE
        each = part if count == 1 else _shared(part, count)
        found.append(MinuteSpan(edges[n], edges[n + 1], epoch, each))
    return joined(found)


def joined(runs: Iterable[MinuteSpan]) -> list[MinuteSpan]:
    """Returns the fewest runs for the same minutes, in order."""
    found: list[MinuteSpan] = []
    for run in sorted(runs, key=lambda each: each.from_):
        for piece in _by_day(run):
            last = found[-1] if found else None
            if last is not None and _continues(last, piece):
                found[-1] = replace(last, until=piece.until)
            else:
                found.append(piece)
    return found


def replaced(
    before: Iterable[MinuteSpan], within: TimeSpan, runs: Sequence[MinuteSpan]
) -> list[MinuteSpan]:
    """Returns the runs with all minutes of a range replaced by `runs`."""
    kept: list[MinuteSpan] = []
    for run in before:
        if run.from_ < within.from_:
            kept.append(replace(run, until=min(run.until, within.from_)))
        if run.until > within.until:
            kept.append(replace(run, from_=max(run.from_, within.until)))
    return joined([*kept, *runs])


def _edges_of(span: TimeSpan, within: TimeSpan) -> list[int]:
    """Returns the edges of the minutes in which a span begins and ends."""
    edges: list[int] = []
    for at in (span.from_, span.until):
        start = at - at % MINUTE
        edges += [start, start + MINUTE] if at % MINUTE else [start]
    return [edge for edge in edges if within.from_ < edge < within.until]


def _shared(part: Durations, count: int) -> Durations:
    """Returns the durations of one of `count` equal minutes."""
    return Durations(
        part.good_us // count,
        part.bad_us // count,
        part.unknown_us // count,
        part.excluded_us // count,
        part.healthy_us // count,
        part.degraded_us // count,
        part.down_us // count,
        part.health_unknown_us // count,
    )


def _by_day(run: MinuteSpan) -> Iterable[MinuteSpan]:
    start = run.from_
    while start < run.until:
        end = min(run.until, Instant(start - start % DAY + DAY))
        yield MinuteSpan(start, end, run.epoch, run.each)
        start = end


def _continues(last: MinuteSpan, following: MinuteSpan) -> bool:
    return (
        last.until == following.from_
        and following.from_ % DAY != 0
        and last.epoch == following.epoch
        and last.each == following.each
    )
