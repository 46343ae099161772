"""Recording of steady results, without a lock that blocks other results.

A few results, or pushes, take one statement. Many runs take a transaction with COPY, which writes a
quarter less WAL and costs three statements more.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rules.incoming_result import IncomingResult
from ..tables import copied_results, results

# With fewer results the further statements cost more than the results.
COPIED_LEAST: Final = 40

# Organization, monitor and instant of a result.
_Place = tuple[int, int, Instant]


def is_copied(arrivals: Sequence[IncomingResult]) -> bool:
    """Returns whether results are recorded by `copy_steady`. A window of a push can be covered."""
    return len(arrivals) >= COPIED_LEAST and all(a.windowed for a in arrivals)


async def record_steady(tx: Tx, arrivals: Sequence[IncomingResult]) -> list[bool]:
    """Returns for each result whether it was stored.

    The others found a newer state, the fence past them or a verdict of their window, are failures
    that come late, or share an instant or a window with an earlier result of the call. They must be
    recorded under the lock.

    Raises:
        Rejected if an instant was taken by an earlier result; no result is stored.
    """
    alone = _alone(arrivals)
    stored = await results.insert_steady(tx, list(alone.values()), _shards(alone))
    return [alone.get(place := _place(a)) is a and place in stored for a in arrivals]


async def copy_steady(tx: Tx, arrivals: Sequence[IncomingResult]) -> list[bool]:
    """Does the same as `record_steady` in a transaction, for runs."""
    alone = dict(sorted(_alone(arrivals).items()))
    ordered = list(alone.values())
    held = [ordered[n] for n in await copied_results.hold_steady(tx, ordered, _shards(alone))]
    taken = await copied_results.find_taken(tx, held)
    held = [a for n, a in enumerate(held) if n not in taken]
    failed = [n for n, a in enumerate(held) if a.condition is not None]
    conditions: list[int | None] = [None] * len(held)
    if failed:
        found = await results.select_condition_ids(tx, [held[n] for n in failed])
        for n, condition in found.items():
            conditions[failed[n]] = condition
    await copied_results.copy_results(tx, held, conditions)
    stored = {id(a) for a in held}
    return [id(a) in stored for a in arrivals]


def _place(arrival: IncomingResult) -> _Place:
    return (arrival.org, arrival.monitor, arrival.ts)


def _shards(alone: Mapping[_Place, IncomingResult]) -> list[int]:
    return sorted({a.shard for a in alone.values()})


def _alone(arrivals: Sequence[IncomingResult]) -> dict[_Place, IncomingResult]:
    """Returns the first result of each instant and of each window of a run."""
    first: dict[_Place, IncomingResult] = {}
    windows = set[_Place]()
    for arrival in arrivals:
        if arrival.windowed:
            window = (arrival.org, arrival.monitor, arrival.dues[0])
            if window in windows:
                continue
            windows.add(window)
        first.setdefault(_place(arrival), arrival)
    return first
