"""Recording of steady results: one statement, without a lock that blocks other results."""

from collections.abc import Sequence

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rules.incoming_result import IncomingResult
from ..tables import results


async def record_steady(tx: Tx, arrivals: Sequence[IncomingResult]) -> list[bool]:
    """Returns for each result whether it was stored.

    The others found a newer state or the fence past them, or they share an instant or a window with
    an earlier result of the call. They must be recorded under the lock.

    Raises:
        Rejected if an instant or the window of a run was taken by an earlier result; no result is
        stored.
    """
    first: dict[tuple[int, int, Instant], IncomingResult] = {}
    windows = set[tuple[int, int, Instant]]()
    for arrival in arrivals:
        if arrival.windowed:
            window = (*arrival.key, arrival.dues[0])
            if window in windows:
                continue
            windows.add(window)
        first.setdefault((*arrival.key, arrival.ts), arrival)
    alone = list(first.values())
    stored = await results.insert_steady(tx, alone, sorted({a.shard for a in alone}))
    return [
        first.get((*arrival.key, arrival.ts)) is arrival and (*arrival.key, arrival.ts) in stored
        for arrival in arrivals
    ]
