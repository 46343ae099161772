"""What a service is at an instant: a function of its SLI members, by its declared policies.

Members that are up or down count; in maintenance they leave, and when all have left the service is
excluded. Those that are unknown are tried as all up and as all down: one answer is the answer; two
that are good are good, with the health unknown; else nothing is known. Missing data counts as the
policy says, but a pause is unknown whatever it says. Healthy and degraded are good, down is bad.

One function says so for an instant; time is cut where a member changes, and asks it for each piece.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import msgspec

from ...core.instant import Instant
from ...core.sli import SliCondition, Split
from ...core.time_span import TimeSpan, clipped, merged, without
from ...monitors.rules.composite import Line
from ...monitors.rules.monitor_state import ACTIVE_FLOOR_US, ACTIVE_MULTIPLIER


class AggregationMode(StrEnum):
    """How the members of one region make its health."""

    ALL = "all"
    ANY = "any"
    QUORUM = "quorum"


class RegionMode(StrEnum):
    """How the regions make the service's health."""

    PER_REGION = "per_region"
    ANY_REGION = "any_region"
    ALL_REGIONS = "all_regions"


class MissingData(StrEnum):
    UNKNOWN = "unknown"
    BAD = "bad"
    IGNORE = "ignore"


class Health(StrEnum):
    """`UNKNOWN` also beside a condition that is known to be good."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    DOWN = "down"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Policies:
    """Minima are read by the modes `quorum` and `per_region`, and capped at what counts. A probed
    result speaks for the greater of `active_multiplier` intervals and `active_floor_us`."""

    mode: AggregationMode = AggregationMode.ALL
    healthy_min: int = 1
    degraded_min: int = 1
    region_mode: RegionMode = RegionMode.ALL_REGIONS
    healthy_min_regions: int = 1
    degraded_min_regions: int = 1
    missing_data: MissingData = MissingData.UNKNOWN
    active_multiplier: int = ACTIVE_MULTIPLIER
    active_floor_us: int = ACTIVE_FLOOR_US


class MemberState(StrEnum):
    """A member at an instant. A pause is told from data that is missing."""

    UP = "up"
    DOWN = "down"
    MISSING = "missing"
    PAUSED = "paused"
    MAINTENANCE = "maintenance"


@dataclass(frozen=True, slots=True)
class ServiceHealthState:
    """`health` is None where the service is excluded."""

    condition: SliCondition
    health: Health | None


EXCLUDED = ServiceHealthState(SliCondition.EXCLUDED, None)
NOT_KNOWN = ServiceHealthState(SliCondition.UNKNOWN, Health.UNKNOWN)

# How many of a region's members are seen as what.
Counts = tuple[tuple[str, MemberState, int], ...]
_ORDER = (Health.DOWN, Health.DEGRADED, Health.HEALTHY)


def state(policies: Policies, members: Iterable[tuple[str, MemberState]]) -> ServiceHealthState:
    """Of members by region."""
    counts = Counter(members)
    return state_of(policies, tuple((*key, many) for key, many in sorted(counts.items())))


@lru_cache(maxsize=4_096)
def state_of(policies: Policies, counts: Counts) -> ServiceHealthState:
    """The same of members that are counted already: what is asked again and again over time."""
    regions = _regions(policies, counts)
    if not regions:
        return EXCLUDED
    worst = _health(policies, [(up, down + unknown) for up, down, unknown in regions])
    best = _health(policies, [(up + unknown, down) for up, down, unknown in regions])
    if worst is best:
        return ServiceHealthState(_condition(worst), worst)
    if worst is not Health.DOWN:
        return ServiceHealthState(SliCondition.GOOD, Health.UNKNOWN)
    return NOT_KNOWN


def _regions(policies: Policies, counts: Counts) -> list[tuple[int, int, int]]:
    """(up, down, unknown) of each region in which a member counts."""
    decides = any(seen in (MemberState.UP, MemberState.DOWN) for _, seen, _ in counts)
    found: dict[str, list[int]] = {}
    for region, seen, many in counts:
        place = _place(policies.missing_data, seen, decides=decides)
        if place is not None:
            found.setdefault(region, [0, 0, 0])[place] += many
    return [(up, down, unknown) for up, down, unknown in found.values()]


def _place(missing: MissingData, seen: MemberState, *, decides: bool) -> int | None:
    """Where a member counts, as up 0, down 1 or unknown 2; None where it leaves."""
    match seen:
        case MemberState.UP:
            return 0
        case MemberState.DOWN:
            return 1
        case MemberState.PAUSED:
            return 2
        case MemberState.MAINTENANCE:
            return None
        case MemberState.MISSING if missing is MissingData.BAD:
            return 1
        case MemberState.MISSING if missing is MissingData.IGNORE and decides:
            return None
        case MemberState.MISSING:
            return 2


def _health(policies: Policies, regions: Sequence[tuple[int, int]]) -> Health:
    """Of regions with so many members up and so many down."""
    each = [_of_region(policies, up, down) for up, down in regions]
    match policies.region_mode:
        case RegionMode.ANY_REGION:
            return max(each, key=_ORDER.index)
        case RegionMode.ALL_REGIONS:
            return min(each, key=_ORDER.index)
        case RegionMode.PER_REGION:
            well = each.count(Health.HEALTHY)
            serving = len(each) - each.count(Health.DOWN)
            if well >= min(policies.healthy_min_regions, len(each)):
                return Health.HEALTHY
            enough = serving >= min(policies.degraded_min_regions, len(each))
            return Health.DEGRADED if enough else Health.DOWN


def _of_region(policies: Policies, up: int, down: int) -> Health:
    counting = up + down
    match policies.mode:
        case AggregationMode.ALL:
            return Health.HEALTHY if not down else Health.DOWN
        case AggregationMode.ANY:
            if not down:
                return Health.HEALTHY
            return Health.DEGRADED if up else Health.DOWN
        case AggregationMode.QUORUM:
            if up >= min(policies.healthy_min, counting):
                return Health.HEALTHY
            enough = up >= min(policies.degraded_min, counting)
            return Health.DEGRADED if enough else Health.DOWN


def _condition(health: Health) -> SliCondition:
    return SliCondition.BAD if health is Health.DOWN else SliCondition.GOOD


@dataclass(frozen=True, slots=True)
class MemberTimeline:
    """A member's region, its line over a stretch, and the pauses within it."""

    region: str
    line: Line
    pauses: Sequence[TimeSpan] = ()


StateLine = list[tuple[TimeSpan, ServiceHealthState]]


def state_line(
    policies: Policies, members: Sequence[MemberTimeline], within: TimeSpan
) -> StateLine:
    """Every instant of a stretch with the service's state, neighbours differing. Without members
    nothing is ever known."""
    if not members:
        return [(within, NOT_KNOWN)]
    changes = sorted(_changes(members, within), key=lambda change: change[0])
    counts: Counter[tuple[str, MemberState]] = Counter()
    line: StateLine = []
    for n, (instant, key, step) in enumerate(changes):
        counts[key] += step
        until = changes[n + 1][0] if n + 1 < len(changes) else within.until
        if until <= instant:
            continue
        seen = tuple((*key, many) for key, many in sorted(counts.items()) if many)
        said = state_of(policies, seen)
        if line and line[-1][1] == said:
            line[-1] = (TimeSpan(line[-1][0].from_, until), said)
        else:
            line.append((TimeSpan(instant, until), said))
    return line


def _changes(
    members: Sequence[MemberTimeline], within: TimeSpan
) -> Iterable[tuple[Instant, tuple[str, MemberState], int]]:
    for member in members:
        for span, seen in _seen(member, within):
            yield span.from_, (member.region, seen), 1
            if span.until < within.until:
                yield span.until, (member.region, seen), -1


_SEEN: Mapping[SliCondition, MemberState] = {
    SliCondition.GOOD: MemberState.UP,
    SliCondition.BAD: MemberState.DOWN,
    SliCondition.EXCLUDED: MemberState.MAINTENANCE,
}


def _seen(member: MemberTimeline, within: TimeSpan) -> Iterable[tuple[TimeSpan, MemberState]]:
    pauses = merged(clipped(member.pauses, within))
    for span, condition in member.line:
        for part in clipped([span], within):
            if condition is not SliCondition.UNKNOWN:
                yield part, _SEEN[condition]
                continue
            paused = clipped(pauses, part)
            yield from ((each, MemberState.PAUSED) for each in paused)
            yield from ((each, MemberState.MISSING) for each in without([part], paused))


class Durations(msgspec.Struct, frozen=True, gc=False):
    """A range in whole microseconds: by condition, and by health where it is not excluded."""

    good_us: int = 0
    bad_us: int = 0
    unknown_us: int = 0
    excluded_us: int = 0
    healthy_us: int = 0
    degraded_us: int = 0
    down_us: int = 0
    health_unknown_us: int = 0

    def __add__(self, other: "Durations") -> "Durations":
        return Durations(
            self.good_us + other.good_us,
            self.bad_us + other.bad_us,
            self.unknown_us + other.unknown_us,
            self.excluded_us + other.excluded_us,
            self.healthy_us + other.healthy_us,
            self.degraded_us + other.degraded_us,
            self.down_us + other.down_us,
            self.health_unknown_us + other.health_unknown_us,
        )

    def times(self, count: int) -> "Durations":
        return Durations(*(count * us for us in msgspec.structs.astuple(self)))

    @property
    def split(self) -> Split:
        """What every figure is made of."""
        return Split(self.good_us, self.bad_us, self.unknown_us, self.excluded_us)


# Two, since an unknown condition and an unknown health are equal as keys.
_BY_CONDITION: Mapping[SliCondition, str] = {
    SliCondition.GOOD: "good_us",
    SliCondition.BAD: "bad_us",
    SliCondition.UNKNOWN: "unknown_us",
    SliCondition.EXCLUDED: "excluded_us",
}
_BY_HEALTH: Mapping[Health, str] = {
    Health.HEALTHY: "healthy_us",
    Health.DEGRADED: "degraded_us",
    Health.DOWN: "down_us",
    Health.UNKNOWN: "health_unknown_us",
}


def durations(line: StateLine, edges: Sequence[Instant]) -> list[Durations]:
    """One for each range between two neighbouring edges, of a line that covers them all."""
    sums: list[Counter[str]] = [Counter() for _ in edges[1:]]
    at = 0
    for span, said in line:
        while at < len(sums) and edges[at + 1] <= span.from_:
            at += 1
        here = at
        while here < len(sums) and edges[here] < span.until:
            us = min(span.until, edges[here + 1]) - max(span.from_, edges[here])
            if us > 0:
                sums[here][_BY_CONDITION[said.condition]] += us
                if said.health is not None:
                    sums[here][_BY_HEALTH[said.health]] += us
            here += 1
    return [Durations(**counts) for counts in sums]
