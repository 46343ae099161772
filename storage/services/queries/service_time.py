"""State of a service over time, computed from the results of its members.

Sealing, repairs and previews use this module, so that they agree. The governing revision and epoch
apply to each part of the time. The module also computes the watermark of a service: the least
watermark of its members.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import trio

from ...core.instant import LATEST, MINUTE, SECOND, Instant
from ...core.key import MonitorKey, ServiceKey
from ...core.time_span import TimeSpan, clipped
from ...engine.pools import Tx
from ...figures.queries.availability import watermarks_of
from ...figures.queries.monitor_time import (
    AS_IT_IS,
    AssumedMaintenance,
    Freshness,
    MonitorInputs,
    load_facts_beneath,
)
from ...monitors.rules.composite import Lines, MemberWatermarks
from ...monitors.tables import compositions
from ...scheduling.queries import shards
from ...scheduling.rules.run_schedule import ScheduleTerm
from ...scheduling.tables import shards as schedules
from ..rules.epoch import (
    Epoch,
    MemberConfig,
    Revision,
    epochs,
    service_watermark,
    stretches,
)
from ..rules.service_health import MemberTimeline, StateLine, state_line
from ..rules.service_minute import MinuteSpan, joined, runs_of
from . import service_revisions

# Size of one part; it takes some tens of milliseconds.
RESULTS_MOST: Final = 10_000
LONGEST_PART_SECONDS: Final = 86_400


@dataclass(frozen=True, slots=True)
class ServiceTimeline:
    """Revisions of a service, and their epochs up to the instant of the read."""

    revisions: Sequence[Revision]
    epochs: Sequence[Epoch]

    @property
    def members(self) -> set[int]:
        return {member for revision in self.revisions for member in revision.sli}


async def select_governed(
    tx: Tx, services: Iterable[ServiceKey], through: Instant
) -> dict[ServiceKey, ServiceTimeline]:
    keys = list(services)
    revisions = await service_revisions.select_revisions(tx, keys)
    members = {MonitorKey((key[0], m)) for key in keys for r in revisions[key] for m in r.sli}
    terms = await schedules.select_terms_of(tx, members)
    regions = {shard.id: shard.region for shard in await shards.select_shards(tx)}
    return {
        key: ServiceTimeline(revisions[key], _epochs(key, revisions[key], terms, regions, through))
        for key in keys
    }


def _epochs(
    key: ServiceKey,
    revisions: Sequence[Revision],
    terms: Mapping[MonitorKey, Sequence[ScheduleTerm]],
    regions: Mapping[int, str],
    through: Instant,
) -> list[Epoch]:
    return epochs(key[0], revisions, terms, regions, through)


async def select_watermarks(
    tx: Tx, governed_by: Mapping[ServiceKey, ServiceTimeline], since: Mapping[ServiceKey, Instant]
) -> dict[ServiceKey, Instant]:
    """Returns the watermark of each service: the least of its members under each revision."""
    fences = {shard.id: shard.settled_through for shard in await shards.select_shards(tx)}
    if not fences or not since:
        return dict(since)
    within = TimeSpan(min(since.values()), LATEST)
    members = {MonitorKey((key[0], m)) for key, by in governed_by.items() for m in by.members}
    marks, made = await watermarks_of(tx, members, fences, within)
    seals = MemberWatermarks(made, marks)
    fence = min(fences.values())
    return {
        key: service_watermark(governed_by[key].revisions, start, fence, _of_org(seals, key[0]))
        for key, start in since.items()
    }


def _of_org(seals: MemberWatermarks, org: int) -> Callable[[int, TimeSpan], Instant]:
    return lambda monitor, within: seals.of(MonitorKey((org, monitor)), within)


async def compute_service_time(
    tx: Tx,
    governed_by: Mapping[ServiceKey, ServiceTimeline],
    ranges: Mapping[ServiceKey, TimeSpan],
    supposing: AssumedMaintenance = AS_IT_IS,
) -> dict[ServiceKey, list[tuple[Epoch, TimeSpan, StateLine]]]:
    """Returns each service's state line over its range, cut at epochs."""
    found: dict[ServiceKey, list[tuple[Epoch, TimeSpan, StateLine]]] = {}
    for hold, group in _by_hold(governed_by, ranges).items():
        lines, facts = await _lines_of(tx, group, hold, supposing)
        for key, epoch, span in group:
            members = [
                _member(MonitorKey((key[0], member)), standing, lines, facts, span)
                for member, standing in epoch.members
            ]
            line = state_line(epoch.revision.policies, members, span)
            found.setdefault(key, []).append((epoch, span, line))
    for pieces in found.values():
        pieces.sort(key=lambda piece: piece[1].from_)
    return found


def _member(
    key: MonitorKey,
    standing: MemberConfig | None,
    lines: Lines,
    facts: Mapping[MonitorKey, MonitorInputs],
    span: TimeSpan,
) -> MemberTimeline:
    region = standing.region if standing else ""
    line = lines.of(key, span)
    if key not in facts:
        return MemberTimeline(region, line)
    return MemberTimeline(region, line, facts[key].pauses(), facts[key].terms[0].from_)


async def minutes_of(
    tx: Tx,
    governed_by: Mapping[ServiceKey, ServiceTimeline],
    ranges: Mapping[ServiceKey, TimeSpan],
    numbers: Mapping[ServiceKey, Mapping[Instant, int]],
    supposing: AssumedMaintenance = AS_IT_IS,
    may_go_on: Callable[[], bool] = lambda: True,
) -> dict[ServiceKey, list[MinuteSpan]] | None:
    """Computes the minutes of each service's range.

    The work is cut into parts with a checkpoint after each, so that it does not block other tasks.

    Args:
        numbers: epoch numbers by the start of the epoch.
        may_go_on: called before each part; the result is None if it returns False.
    """
    found: dict[ServiceKey, list[MinuteSpan]] = {key: [] for key in ranges}
    step_us = _bearable_us(governed_by, ranges)
    for at in range(
        min(span.from_ for span in ranges.values()),
        max(span.until for span in ranges.values()),
        step_us,
    ):
        if not may_go_on():
            return None
        within = TimeSpan(Instant(at), Instant(at + step_us))
        part = {key: cut for key, span in ranges.items() for cut in clipped([span], within)}
        for key, told in (await compute_service_time(tx, governed_by, part, supposing)).items():
            for epoch, span, line in told:
                found[key] += runs_of(line, span, numbers[key][epoch.from_])
        await trio.lowlevel.checkpoint()
    return {key: joined(each) for key, each in found.items()}


def _bearable_us(
    governed_by: Mapping[ServiceKey, ServiceTimeline], ranges: Mapping[ServiceKey, TimeSpan]
) -> int:
    """Returns the whole minutes, in µs, with about `RESULTS_MOST` results of all members."""
    a_second = sum(
        SECOND / standing.interval_us
        for key in ranges
        for epoch in governed_by[key].epochs[-1:]
        for _, standing in epoch.members
        if standing is not None
    )
    seconds = RESULTS_MOST / max(a_second, RESULTS_MOST / LONGEST_PART_SECONDS)
    return max(int(seconds) // 60, 1) * MINUTE


_Piece = tuple[ServiceKey, Epoch, TimeSpan]


def _by_hold(
    governed_by: Mapping[ServiceKey, ServiceTimeline], ranges: Mapping[ServiceKey, TimeSpan]
) -> dict[Freshness, list[_Piece]]:
    """Groups the pieces by freshness, because each group reads its results once."""
    groups: dict[Freshness, list[_Piece]] = {}
    for key, within in ranges.items():
        for span, epoch in stretches(governed_by[key].epochs, within):
            policies = epoch.revision.policies
            hold = Freshness(policies.active_multiplier, policies.active_floor_us)
            groups.setdefault(hold, []).append((key, epoch, span))
    return groups


async def _lines_of(
    tx: Tx, pieces: Sequence[_Piece], hold: Freshness, supposing: AssumedMaintenance
) -> tuple[Lines, Mapping[MonitorKey, MonitorInputs]]:
    within = TimeSpan(
        min(span.from_ for _, _, span in pieces), max(span.until for _, _, span in pieces)
    )
    members = {
        MonitorKey((key[0], member)) for key, epoch, _ in pieces for member, _ in epoch.members
    }
    types = await compositions.select_types(tx, members)
    facts, made = await load_facts_beneath(tx, types, within, hold, supposing)
    return Lines({key: facts[key].member(made.get(key, ())) for key in facts}), facts
