"""Time by condition, computed from results. The only module that does this.

Rollups, repairs and the edge of every figure, which is sealed and not yet rolled up, use it, so
that they agree. Time before a monitor's first term is neither part of its range nor a gap.

The time of a composite is computed from the state of its children at that time. Its own results are
only samples: they are counted, and determine no time between them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...core.sli import Sample, Split, buckets, line_buckets
from ...core.time_span import TimeSpan, cut_at_starts
from ...engine.pools import Tx
from ...monitors.rules.composite import CompositeMember, Composition, Lines
from ...monitors.rules.monitor_state import ACTIVE_FLOOR_US, ACTIVE_MULTIPLIER, freshness_us
from ...monitors.tables import compositions
from ...results.rules.push_deadline import fresh_until as push_hold_until
from ...results.rules.push_deadline import missed_hold_until
from ...scheduling.queries import shards
from ...scheduling.rules.run_schedule import ScheduleTerm, spans, term_at
from ...scheduling.tables import shards as schedules
from .. import tables as figures

COMPOSITE = "composite"
PUSH = "push"
PUSH_MISSED = "push_missed"


@dataclass(frozen=True, slots=True)
class MonitorTime:
    """Time of a bucket by condition, and the number of results in it."""

    split: Split
    up: int
    total: int

    @classmethod
    def nothing(cls) -> "MonitorTime":
        return cls(Split(), 0, 0)


@dataclass(frozen=True, slots=True)
class Freshness:
    """Validity of a probed result: a number of intervals, with a minimum."""

    multiplier: int = ACTIVE_MULTIPLIER
    floor_us: int = ACTIVE_FLOOR_US


USUAL: Final = Freshness()


@dataclass(frozen=True, slots=True)
class AssumedMaintenance:
    """Hypothetical maintenance: without an announced one, or with one more for monitors."""

    apart_from: int = 0
    monitors: Collection[int] = ()
    more: TimeSpan | None = None

    def of(self, monitor: int, announced: Sequence[TimeSpan]) -> Sequence[TimeSpan]:
        if self.more is None or monitor not in self.monitors:
            return announced
        return cut_at_starts([*announced, self.more])


AS_IT_IS: Final = AssumedMaintenance()


@dataclass(frozen=True, slots=True)
class MonitorInputs:
    """Data of a monitor over a range."""

    samples: Sequence[Sample]
    terms: Sequence[ScheduleTerm]
    maintenance: Sequence[TimeSpan]

    def pauses(self) -> list[TimeSpan]:
        return [TimeSpan(term.from_, end) for term, end in spans(self.terms) if not term.enabled]

    def member(self, made: Sequence[Composition] = ()) -> CompositeMember:
        begun = self.terms[0].from_
        return CompositeMember(begun, self.samples, self.maintenance, self.pauses(), made)


async def measure(
    tx: Tx, types: Mapping[MonitorKey, str], edges: Sequence[Instant]
) -> dict[MonitorKey, list[MonitorTime]]:
    """Returns the buckets between the edges for each monitor.

    `types` distinguishes push monitors and composites.
    """
    within = TimeSpan(edges[0], edges[-1])
    facts, made = await load_facts_beneath(tx, types, within)
    lines = Lines({key: facts[key].member(made.get(key, ())) for key in facts} if made else {})
    return {
        key: _measured(facts[key], edges, lines if kind == COMPOSITE else None, key)
        for key, kind in types.items()
        if key in facts
    }


async def load_facts_beneath(
    tx: Tx,
    types: Mapping[MonitorKey, str],
    within: TimeSpan,
    hold: Freshness = USUAL,
    supposing: AssumedMaintenance = AS_IT_IS,
) -> tuple[dict[MonitorKey, MonitorInputs], dict[MonitorKey, list[Composition]]]:
    """Returns the inputs of monitors and of all descendants, and the compositions.

    The compositions are those in `within`.
    """
    composites = [key for key in types if types[key] == COMPOSITE]
    made = await compositions.select_beneath(tx, composites, within) if composites else {}
    beneath = {child for found in made.values() for c in found for child in c.children}
    more = await compositions.select_types(tx, beneath - types.keys()) if made else {}
    return await load_facts(tx, {**types, **more}, within, hold, supposing), made


async def load_facts(
    tx: Tx,
    types: Mapping[MonitorKey, str],
    within: TimeSpan,
    hold: Freshness = USUAL,
    supposing: AssumedMaintenance = AS_IT_IS,
) -> dict[MonitorKey, MonitorInputs]:
    """Returns the inputs of monitors. Monitors without a term are omitted."""
    keys = sorted(types)
    terms = await schedules.select_terms_of(tx, keys)
    since = Instant(within.from_ - _longest_hold_us(terms, hold))
    results = await figures.select_results(tx, keys, within.from_, within.until, since)
    maintenance = await shards.select_maintenances(
        tx,
        since,
        monitors=[monitor for _, monitor in keys],
        apart_from=supposing.apart_from,
    )
    return {
        key: MonitorInputs(
            [_sample(types[key], row, terms[key], hold) for row in results[key]],
            terms[key],
            supposing.of(key[1], maintenance.get(key[1], ())),
        )
        for key in keys
        if key in terms
    }


def _longest_hold_us(terms: Mapping[MonitorKey, Sequence[ScheduleTerm]], hold: Freshness) -> int:
    return max(
        (
            max(_freshness_us(term, hold), term.patience_us)
            for history in terms.values()
            for term in history
        ),
        default=0,
    )


def _freshness_us(term: ScheduleTerm, hold: Freshness) -> int:
    return freshness_us(term.longest_us, hold.multiplier, hold.floor_us)


def _sample(
    kind: str, row: tuple[Instant, bool, str | None], terms: Sequence[ScheduleTerm], hold: Freshness
) -> Sample:
    instant, up, message = row
    if kind == PUSH and message == PUSH_MISSED:
        return Sample(instant, up, missed_hold_until(instant, terms))
    if kind == PUSH:
        return Sample(instant, up, push_hold_until(instant, terms))
    term = term_at(terms, instant) or terms[0]
    return Sample(instant, up, Instant(instant + _freshness_us(term, hold)))


def _measured(
    facts: MonitorInputs, edges: Sequence[Instant], lines: Lines | None, key: MonitorKey
) -> list[MonitorTime]:
    # Time before the first term is not counted, although results may exist in it.
    begun = facts.terms[0].from_
    own = [min(max(edge, begun), edges[-1]) for edge in edges]
    if lines is None:
        splits = buckets(facts.samples, own, facts.maintenance, facts.pauses())
    else:
        splits = line_buckets(lines.of(key, TimeSpan(edges[0], edges[-1])), own)
    ups = [0] * len(splits)
    totals = [0] * len(splits)
    at = 0
    for sample in facts.samples:
        if sample.instant < edges[0]:
            continue
        while sample.instant >= edges[at + 1]:
            at += 1
        totals[at] += 1
        ups[at] += sample.up
    return [MonitorTime(split, ups[n], totals[n]) for n, split in enumerate(splits)]
