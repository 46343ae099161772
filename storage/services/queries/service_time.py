"""A service's state over time, from the results of its members: the one place where they become
one. Sealing, restating and previews all ask here, so they cannot disagree.

Every stretch is told under the revision and the epoch that governed it. How far it may be told is
here too: as far as everything is sealed that it is made of.
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
from ...monitors.rules.composite import CompositeMode, Composition, Lines, MemberWatermarks
from ...monitors.tables import compositions
from ...scheduling.queries import shards
from ...scheduling.rules.run_schedule import ScheduleTerm
from ...scheduling.tables import shards as schedules
from ..rules.epoch import Epoch, Revision, epochs, governed, stretches
from ..rules.service_health import MemberTimeline, StateLine, state_line
from ..rules.service_minute import MinuteSpan, joined, runs_of
from . import service_revisions

# What is read and told at once: some tens of milliseconds of work.
RESULTS_MOST: Final = 10_000
LONGEST_PART_SECONDS: Final = 86_400
# Stand for members where a revision has none: of what is over nothing more can come, and what
# governs still can never be told.
_OVER: Final = MonitorKey((0, 0))
_NEVER: Final = MonitorKey((0, -1))


@dataclass(frozen=True, slots=True)
class ServiceTimeline:
    """What governs a service's time: its revisions, and their epochs up to where they were read."""

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
    """How far each service's members are sealed, from an instant on: the least of them, by the
    revision that governs."""
    fences = {shard.id: shard.settled_through for shard in await shards.select_shards(tx)}
    if not fences or not since:
        return dict(since)
    within = TimeSpan(min(since.values()), LATEST)
    members = {MonitorKey((key[0], m)) for key, by in governed_by.items() for m in by.members}
    marks, made = await watermarks_of(tx, members, fences, within)
    marks |= {_OVER: min(fences.values()), _NEVER: None}
    own = {_pseudo(key): _as_compositions(key, by) for key, by in governed_by.items()}
    seals = MemberWatermarks({**made, **own}, marks)
    return {key: seals.of(_pseudo(key), TimeSpan(start, LATEST)) for key, start in since.items()}


def _pseudo(key: ServiceKey) -> MonitorKey:
    """A service's place among monitors, whose keys are positive."""
    return MonitorKey((key[0], -key[1] - 1))


def _as_compositions(key: ServiceKey, by: ServiceTimeline) -> list[Composition]:
    found = []
    for span, revision in governed(by.revisions):
        members = tuple(MonitorKey((key[0], member)) for member in revision.sli)
        if not members:
            members = (_OVER,) if span.until < LATEST else (_NEVER,)
        found.append(Composition(span.from_, span.until, CompositeMode.ALL, 0, members))
    return found


async def compute_service_time(
    tx: Tx,
    governed_by: Mapping[ServiceKey, ServiceTimeline],
    ranges: Mapping[ServiceKey, TimeSpan],
    supposing: AssumedMaintenance = AS_IT_IS,
) -> dict[ServiceKey, list[tuple[Epoch, TimeSpan, StateLine]]]:
    """Each service's line over a range of its own, cut by epoch."""
    found: dict[ServiceKey, list[tuple[Epoch, TimeSpan, StateLine]]] = {}
    for hold, group in _by_hold(governed_by, ranges).items():
        lines, facts = await _lines_of(tx, group, hold, supposing)
        for key, epoch, span in group:
            members = [
                MemberTimeline(
                    standing.region if standing else "",
                    lines.of(MonitorKey((key[0], member)), span),
                    facts[MonitorKey((key[0], member))].pauses()
                    if (key[0], member) in facts
                    else (),
                )
                for member, standing in epoch.members
            ]
            line = state_line(epoch.revision.policies, members, span)
            found.setdefault(key, []).append((epoch, span, line))
    for pieces in found.values():
        pieces.sort(key=lambda piece: piece[1].from_)
    return found


async def minutes_of(
    tx: Tx,
    governed_by: Mapping[ServiceKey, ServiceTimeline],
    ranges: Mapping[ServiceKey, TimeSpan],
    numbers: Mapping[ServiceKey, Mapping[Instant, int]],
    supposing: AssumedMaintenance = AS_IT_IS,
    may_go_on: Callable[[], bool] = lambda: True,
) -> dict[ServiceKey, list[MinuteSpan]] | None:
    """The minutes of each service's range; `numbers` are those of its epochs, by when they begin.

    Told in parts, between which others get their turn: what very many results say must not hold up
    whoever shares the process. None where it may not go on.
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
    """For so long, in whole minutes, the members of all have about RESULTS_MOST results."""
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
    """By how long results speak, as results are read once for all who agree about that."""
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
