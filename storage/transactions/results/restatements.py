"""Asks for figures to be made again where a result is stored that they had to do without."""

from collections.abc import Iterable, Mapping, Sequence

from ...pools import Tx
from ...rules.arrival import Arrival, Source
from ...rules.instant import Instant
from ...rules.schedule import Term
from ...rules.state import hold_us
from ...tables import results, schedules
from ...tables.results import Restatement


def passed(arrivals: Iterable[Arrival], fences: Mapping[int, Instant]) -> list[Arrival]:
    """Those that the fences have passed. A deadline that nobody kept may be found so late; it is
    folded all the same."""
    return [arrival for arrival in arrivals if arrival.is_history(fences[arrival.shard])]


async def ask_restatements(tx: Tx, arrivals: Sequence[Arrival]) -> None:
    """What an arrival changes ends with the next result; else where its hold ends, or that of the
    result before it, which it has cut short. No hold is longer than the longest of any term."""
    terms = await schedules.select_terms_of(tx, {a.key for a in arrivals}) if arrivals else {}
    ranges = []
    for arrival in arrivals:
        longest_us = max(_held_us(arrival, term) for term in terms[arrival.key])
        until = Instant(arrival.ts + longest_us)
        following = await results.select_following(tx, arrival.key, arrival.ts)
        until = min(until, following or until)
        ranges.append(Restatement(arrival.org, arrival.shard, arrival.monitor, arrival.ts, until))
    await results.insert_restatements(tx, ranges)


def _held_us(arrival: Arrival, term: Term) -> int:
    if arrival.source is Source.PUSH:
        return term.interval_us + term.grace_us
    return hold_us(term.interval_us)
