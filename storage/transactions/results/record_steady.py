"""Stores results that leave their states as they are, in one statement and without a row lock that
another such result would wait for."""

from collections.abc import Sequence

from ...pools import Tx
from ...rules.arrival import Arrival
from ...tables import results


async def record_steady(tx: Tx, arrivals: Sequence[Arrival]) -> list[bool]:
    """Which of them were stored. The others found their state moved on, the fence past them,
    their window or instant taken: they are to be recorded under the lock."""
    stored = await results.insert_steady(tx, arrivals, sorted({a.shard for a in arrivals}))
    answers = []
    for arrival in arrivals:
        key = (arrival.org, arrival.monitor, arrival.ts)
        # Of two with one instant in a batch only one was stored; the other is told so.
        answers.append(key in stored)
        stored.discard(key)
    return answers
