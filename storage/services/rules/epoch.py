"""Revisions and epochs that govern the time of a service.

A revision governs from a whole minute until the next revision. Of two with the same start, the
later governs. Within a revision, an epoch begins at the first whole minute at or after a change of
a member's region, interval or enabled state. Both are pure functions of declarations and schedules,
so that all callers get the same epochs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from uuid import UUID

from ...core.instant import LATEST, MINUTE, Instant
from ...core.key import MonitorKey
from ...core.time_span import TimeSpan, clipped
from ...scheduling.rules.run_schedule import ScheduleTerm
from .service_health import Policies


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One declaration. `monitors` are all members, `sli` the SLI members among them.

    `governs_from` is before `effective_at` if the revision reconstructs the past.
    """

    revision: int
    uid: UUID
    effective_at: Instant
    governs_from: Instant
    monitors: tuple[int, ...]
    sli: tuple[int, ...]
    policies: Policies


@dataclass(frozen=True, slots=True)
class MemberConfig:
    """Settings of a member that define an epoch; unknown before its first schedule term.

    `schedule` is the cron expression with its time zone, "" for an interval.
    """

    region: str
    interval_us: int
    enabled: bool
    schedule: str = ""


@dataclass(frozen=True, slots=True)
class Epoch:
    """Epoch of a service. It ends at the start of the next one."""

    from_: Instant
    revision: Revision
    members: tuple[tuple[int, MemberConfig | None], ...]

    @property
    def is_reconstruction(self) -> bool:
        """Returns whether the revision was declared after the epoch's time."""
        return self.from_ < self.revision.effective_at

    @property
    def snapshot_hash(self) -> str:
        """Returns a hash of the members' settings."""
        said = ";".join(
            f"{member}:{standing.region}:{standing.interval_us}:{int(standing.enabled)}"
            + (f":{standing.schedule}" if standing.schedule else "")
            if standing
            else f"{member}:"
            for member, standing in self.members
        )
        return sha256(said.encode()).hexdigest()


def next_minute(instant: Instant) -> Instant:
    """Returns the first whole minute after an instant."""
    return Instant(instant - instant % MINUTE + MINUTE)


def minute_from(instant: Instant) -> Instant:
    """Returns the first whole minute at or after an instant."""
    return Instant(instant + (-instant) % MINUTE)


def governed(revisions: Sequence[Revision]) -> list[tuple[TimeSpan, Revision]]:
    """Returns the spans of the revisions (given by ascending number) that govern, in order."""
    order = sorted(revisions, key=lambda each: (each.governs_from, each.revision))
    ends = [following.governs_from for following in order[1:]]
    spans = zip(order, [*ends, LATEST], strict=False)
    return [(TimeSpan(r.governs_from, end), r) for r, end in spans if r.governs_from < end]


def governing(revisions: Sequence[Revision], instant: Instant) -> Revision | None:
    """Returns the revision that governs at an instant, None before the first."""
    found = [revision for span, revision in governed(revisions) if span.from_ <= instant]
    return found[-1] if found else None


def governed_within(revisions: Sequence[Revision], from_: Instant, to: Instant) -> list[Revision]:
    """Returns the revisions that governed a part of a range, its end included, in order."""
    spans = governed(revisions)
    return [revision for span, revision in spans if span.from_ <= to and span.until > from_]


def service_watermark(
    revisions: Sequence[Revision],
    since: Instant,
    fence: Instant,
    member_watermark: Callable[[int, TimeSpan], Instant],
) -> Instant:
    """Returns the instant up to which all data of a service is sealed, not before `since`.

    Each revision is sealed as far as its least member. A past revision without members is sealed
    as far as the `fence` of all regions; a governing one is never sealed.

    Args:
        member_watermark: returns the watermark of a member within a span.
    """
    for governs, revision in governed(revisions):
        for part in clipped([governs], TimeSpan(since, LATEST)):
            if revision.sli:
                least = min(member_watermark(member, part) for member in revision.sli)
            elif governs.until == LATEST:
                least = part.from_
            else:
                least = min(max(fence, part.from_), part.until)
            if least < part.until:
                return least
    return LATEST


def counts_on(revisions: Sequence[Revision], instant: Instant, monitor: int) -> bool:
    """Returns whether the governing or the newest revision declares a monitor."""
    standing = [governing(revisions, instant), *revisions[-1:]]
    return any(monitor in one.monitors for one in standing if one is not None)


def epochs(
    org: int,
    revisions: Sequence[Revision],
    terms: Mapping[MonitorKey, Sequence[ScheduleTerm]],
    regions: Mapping[int, str],
    through: Instant,
) -> list[Epoch]:
    """Returns the epochs that begin at or before `through`, in order.

    Args:
        regions: region names by shard id.
    """
    found: list[Epoch] = []
    for span, revision in governed(revisions):
        histories = {
            member: _standings(terms.get(MonitorKey((org, member)), ()), regions)
            for member in revision.sli
        }
        edges = {span.from_}
        if span.from_ < revision.effective_at < span.until:
            edges.add(revision.effective_at)
        for history in histories.values():
            edges.update(at for at, _ in history if span.from_ < at < span.until)
        for edge in sorted(edges):
            if edge > through:
                break
            members = tuple((m, _at(histories[m], edge)) for m in sorted(histories))
            epoch = Epoch(edge, revision, members)
            if not found or _differ(found[-1], epoch):
                found.append(epoch)
    return found


def stretches(found: Sequence[Epoch], within: TimeSpan) -> Iterator[tuple[TimeSpan, Epoch]]:
    """Yields the part of a span that each epoch governs, in order."""
    ends = [following.from_ for _, following in pairwise(found)]
    for epoch, end in zip(found, [*ends, LATEST], strict=False):
        span = TimeSpan(max(epoch.from_, within.from_), min(end, within.until))
        if span.from_ < span.until:
            yield span, epoch


def _differ(one: Epoch, other: Epoch) -> bool:
    return (
        one.members != other.members
        or one.revision.revision != other.revision.revision
        or one.is_reconstruction is not other.is_reconstruction
    )


def _standings(
    terms: Sequence[ScheduleTerm], regions: Mapping[int, str]
) -> list[tuple[Instant, MemberConfig]]:
    """Returns the changes of a member's settings; within one minute, only the last."""
    found: list[tuple[Instant, MemberConfig]] = []
    for term in terms:
        schedule = f"{term.schedule} {term.timezone}" if term.schedule else ""
        region = regions.get(term.shard, "")
        standing = MemberConfig(region, term.interval_us, term.enabled, schedule)
        at = minute_from(term.from_)
        if found and found[-1][0] == at:
            found.pop()
        if not found or found[-1][1] != standing:
            found.append((at, standing))
    return found


def _at(history: Sequence[tuple[Instant, MemberConfig]], instant: Instant) -> MemberConfig | None:
    known = [standing for at, standing in history if at <= instant]
    return known[-1] if known else None


def governs(revisions: Sequence[Revision], now: Instant) -> tuple[Instant | None, Revision | None]:
    """Returns the revision that governs now and its start."""
    found = [(span.from_, revision) for span, revision in governed(revisions) if span.from_ <= now]
    return found[-1] if found else (None, None)
