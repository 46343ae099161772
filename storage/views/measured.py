"""Time by condition, from the results themselves: the one place where raw rows become a split.

Rollups, restatements and the unsealed edge of every figure all come from here, so they cannot
disagree. Time before a monitor's first term is no time of its own: it is neither range nor gap.

A composite's time comes from the lines of what it was made of then; its own results are samples,
which are counted and say nothing of the time between them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..pools import Tx
from ..rules.composite import Composition, Lines, Member
from ..rules.instant import Instant
from ..rules.push import hold_until as push_hold_until
from ..rules.push import missed_hold_until
from ..rules.schedule import Term, spans, term_at
from ..rules.sli import Sample, Split, buckets, line_buckets
from ..rules.span import Span
from ..rules.state import hold_us
from ..tables import compositions, figures, schedules

Key = tuple[int, int]
COMPOSITE = "composite"
PUSH = "push"
PUSH_MISSED = "push_missed"


@dataclass(frozen=True, slots=True)
class Measured:
    """A bucket's time by condition, and how many results lie in it."""

    split: Split
    up: int
    total: int


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a monitor over a range."""

    samples: Sequence[Sample]
    terms: Sequence[Term]
    maintenance: Sequence[Span]

    def pauses(self) -> list[Span]:
        return [Span(term.from_, end) for term, end in spans(self.terms) if not term.enabled]


async def measure(
    tx: Tx, types: Mapping[Key, str], edges: Sequence[Instant]
) -> dict[Key, list[Measured]]:
    """Buckets between the edges for each monitor; `types` tells pushes and composites apart."""
    within = Span(edges[0], edges[-1])
    composites = [key for key in types if types[key] == COMPOSITE]
    made = await compositions.select_beneath(tx, composites, within) if composites else {}
    beneath = {child for found in made.values() for c in found for child in c.children}
    more = await compositions.select_types(tx, beneath - types.keys()) if made else {}
    facts = await load_facts(tx, {**types, **more}, within)
    lines = Lines({key: _member(facts[key], made.get(key, ())) for key in facts} if made else {})
    return {
        key: _measured(facts[key], edges, lines if kind == COMPOSITE else None, key)
        for key, kind in types.items()
        if key in facts
    }


async def load_facts(tx: Tx, types: Mapping[Key, str], within: Span) -> dict[Key, Facts]:
    """Monitors without a term are left out."""
    keys = sorted(types)
    terms = await schedules.select_terms_of(tx, keys)
    since = Instant(within.from_ - _longest_hold_us(terms))
    results = await figures.select_results(tx, keys, within.from_, within.until, since)
    maintenance = await schedules.select_maintenances(
        tx, since, monitors=[monitor for _, monitor in keys]
    )
    return {
        key: Facts(
            [_sample(types[key], row, terms[key]) for row in results[key]],
            terms[key],
            maintenance.get(key[1], ()),
        )
        for key in keys
        if key in terms
    }


def _longest_hold_us(terms: Mapping[Key, Sequence[Term]]) -> int:
    return max(
        (
            max(hold_us(term.interval_us), term.interval_us + term.grace_us)
            for history in terms.values()
            for term in history
        ),
        default=0,
    )


def _sample(kind: str, row: tuple[Instant, bool, str | None], terms: Sequence[Term]) -> Sample:
    instant, up, message = row
    if kind == PUSH and message == PUSH_MISSED:
        return Sample(instant, up, missed_hold_until(instant, terms))
    if kind == PUSH:
        return Sample(instant, up, push_hold_until(instant, terms))
    term = term_at(terms, instant) or terms[0]
    return Sample(instant, up, Instant(instant + hold_us(term.interval_us)))


def _member(facts: Facts, made: Sequence[Composition]) -> Member:
    begun = facts.terms[0].from_
    return Member(begun, facts.samples, facts.maintenance, facts.pauses(), made)


def _measured(
    facts: Facts, edges: Sequence[Instant], lines: Lines | None, key: Key
) -> list[Measured]:
    # What lies before the monitor's first term is no time of its own, whatever was measured in it.
    begun = facts.terms[0].from_
    own = [min(max(edge, begun), edges[-1]) for edge in edges]
    if lines is None:
        splits = buckets(facts.samples, own, facts.maintenance, facts.pauses())
    else:
        splits = line_buckets(lines.of(key, Span(edges[0], edges[-1])), own)
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
    return [Measured(split, ups[n], totals[n]) for n, split in enumerate(splits)]
