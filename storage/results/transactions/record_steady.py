"""Stores results that leave their states as they are, in one statement and without a row lock that
another such result would wait for."""

from collections.abc import Sequence

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rules.incoming_result import IncomingResult
from ..tables import results


async def record_steady(tx: Tx, arrivals: Sequence[IncomingResult]) -> list[bool]:
    """Which of them were stored. The others found their state moved on, the fence past them, or
    their window taken: they are to be recorded under the lock, and so is the second of two with one
    instant. Conflicted, and nothing stored, where an instant was taken by an earlier result.
    """
    first: dict[tuple[int, int, Instant], IncomingResult] = {}
    for arrival in arrivals:
        first.setdefault((*arrival.key, arrival.ts), arrival)
    alone = list(first.values())
    stored = await results.insert_steady(tx, alone, sorted({a.shard for a in alone}))
    return [
        first[*arrival.key, arrival.ts] is arrival and (*arrival.key, arrival.ts) in stored
        for arrival in arrivals
    ]
