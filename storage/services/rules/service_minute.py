"""Sealed minutes of a service, written down as runs: neighbouring minutes that are alike are one.

It keeps true: a run tells of each of its minutes the same; runs never overlap; none reaches over
midnight in UTC, so that what overlaps a range begins less than a day before it. Most of the time
nothing happens, and a day of that is one row.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ...core.instant import DAY, MINUTE, Instant
from ...core.time_span import TimeSpan
from .service_health import Durations, StateLine, durations


@dataclass(frozen=True, slots=True)
class MinuteSpan:
    """Whole minutes in [from, until), each with these durations; `epoch` is its number."""

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
    """Of a line that covers a stretch of whole minutes under one epoch."""
    found: list[MinuteSpan] = []
    edges = [within.from_]
    parts: list[Durations] = []
    # Minutes in which nothing changes are taken together: they are as many as the line says.
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
    """The same minutes in as few runs as there can be, in order."""
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
    """What was there with other minutes in a range: those given, and no others."""
    kept: list[MinuteSpan] = []
    for run in before:
        if run.from_ < within.from_:
            kept.append(replace(run, until=min(run.until, within.from_)))
        if run.until > within.until:
            kept.append(replace(run, from_=max(run.from_, within.until)))
    return joined([*kept, *runs])


def _edges_of(span: TimeSpan, within: TimeSpan) -> list[int]:
    """The minutes that a change lies in, from their beginning to their end."""
    edges: list[int] = []
    for at in (span.from_, span.until):
        start = at - at % MINUTE
        edges += [start, start + MINUTE] if at % MINUTE else [start]
    return [edge for edge in edges if within.from_ < edge < within.until]


def _shared(part: Durations, count: int) -> Durations:
    """Of minutes that are alike, one."""
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
