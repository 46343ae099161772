"""Health of a service: a function of its policies and the states of its SLI members.

Members that are up or down count. Members in maintenance are left out; if all are, the service is
excluded. Unknown members are assumed all up and then all down: one result for both is the health,
two good results are good with unknown health, otherwise the state is unknown. Missing data counts
as the policy states, but a paused member is always unknown, and a member before its first schedule
term is never bad. Healthy and degraded are good, down is bad.

The time line of a service is cut at each change of a member. Each piece is computed as an instant.
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
    """Aggregation of the members of one region."""

    ALL = "all"
    ANY = "any"
    QUORUM = "quorum"


class RegionMode(StrEnum):
    """Aggregation of the regions of a service."""

    PER_REGION = "per_region"
    ANY_REGION = "any_region"
    ALL_REGIONS = "all_regions"


class MissingData(StrEnum):
    UNKNOWN = "unknown"
    BAD = "bad"
    IGNORE = "ignore"


class Health(StrEnum):
    """Health of a service. `UNKNOWN` can occur with a good condition."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    DOWN = "down"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Policies:
    """Declared policies.

    The modes `quorum` and `per_region` use the minima, limited to the number that counts. A probed
    result is fresh for the greater of `active_multiplier` intervals and `active_floor_us`.
    """

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
    """State of a member at an instant. A pause is distinct from missing data."""

    UP = "up"
    DOWN = "down"
    MISSING = "missing"
    # Before its first schedule term.
    NOT_BEGUN = "not_begun"
    PAUSED = "paused"
    MAINTENANCE = "maintenance"


@dataclass(frozen=True, slots=True)
class ServiceHealthState:
    """State of a service at an instant. `health` is None if the service is excluded."""

    condition: SliCondition
    health: Health | None


EXCLUDED = ServiceHealthState(SliCondition.EXCLUDED, None)
NOT_KNOWN = ServiceHealthState(SliCondition.UNKNOWN, Health.UNKNOWN)

# (region, state, number of members).
Counts = tuple[tuple[str, MemberState, int], ...]
_ORDER = (Health.DOWN, Health.DEGRADED, Health.HEALTHY)


def state(policies: Policies, members: Iterable[tuple[str, MemberState]]) -> ServiceHealthState:
    """Returns the state for (region, member state) pairs."""
    counts = Counter(members)
    return state_of(policies, tuple((*key, many) for key, many in sorted(counts.items())))


@lru_cache(maxsize=4_096)
def state_of(policies: Policies, counts: Counts) -> ServiceHealthState:
    """Returns the state for counted members. Cached, because counts recur over time."""
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
    """Returns (up, down, unknown) for each region with a member that counts."""
    decides = any(seen in (MemberState.UP, MemberState.DOWN) for _, seen, _ in counts)
    found: dict[str, list[int]] = {}
    for region, seen, many in counts:
        place = _place(policies.missing_data, seen, decides=decides)
        if place is not None:
            found.setdefault(region, [0, 0, 0])[place] += many
    return [(up, down, unknown) for up, down, unknown in found.values()]


def _place(missing: MissingData, seen: MemberState, *, decides: bool) -> int | None:
    """Returns the index of the count: 0 up, 1 down, 2 unknown; None if the member is left out."""
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
        case MemberState.MISSING | MemberState.NOT_BEGUN if (
            missing is MissingData.IGNORE and decides
        ):
            return None
        case MemberState.MISSING | MemberState.NOT_BEGUN:
            return 2


def _health(policies: Policies, regions: Sequence[tuple[int, int]]) -> Health:
    """Returns the health for (up, down) counts per region."""
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
    """Region of a member, its line over a span, its pauses within the span, and its first term.

    `begun` is None for a member without schedule terms.
    """

    region: str
    line: Line
    pauses: Sequence[TimeSpan] = ()
    begun: Instant | None = None


StateLine = list[tuple[TimeSpan, ServiceHealthState]]


def state_line(
    policies: Policies, members: Sequence[MemberTimeline], within: TimeSpan
) -> StateLine:
    """Returns the state line of a span, in which neighbours differ.

    Without members the state is unknown.
    """
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
    begun = within.from_ if member.begun is None else member.begun
    for span, condition in member.line:
        for part in clipped([span], within):
            if condition is not SliCondition.UNKNOWN:
                yield part, _SEEN[condition]
                continue
            if part.from_ < begun:
                yield TimeSpan(part.from_, min(part.until, begun)), MemberState.NOT_BEGUN
            if begun < part.until:
                rest = TimeSpan(max(part.from_, begun), part.until)
                paused = clipped(pauses, rest)
                yield from ((each, MemberState.PAUSED) for each in paused)
                yield from ((each, MemberState.MISSING) for each in without([rest], paused))


class Durations(msgspec.Struct, frozen=True, gc=False):
    """Durations in µs by condition, and by health unless excluded."""

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
        """Returns the split from which all figures are computed."""
        return Split(self.good_us, self.bad_us, self.unknown_us, self.excluded_us)


# Two mappings, because an unknown condition and an unknown health are equal as keys.
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
    """Returns the durations between neighbouring edges of a line that covers all edges."""
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
