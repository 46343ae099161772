"""Requests to repair figures that were computed without a late result."""

from collections.abc import Iterable, Mapping, Sequence

from ...core.instant import Instant
from ...engine.pools import Tx
from ..queries.longest_freshness import select_longest_holds
from ..rows import RepairRequest
from ..rules.incoming_result import IncomingResult
from ..tables import repair_requests, results


def passed(
    arrivals: Iterable[IncomingResult], fences: Mapping[int, Instant]
) -> list[IncomingResult]:
    """Returns the results before the fences.

    A missed deadline can be found after its time was sealed. It is still folded into the state.
    """
    return [arrival for arrival in arrivals if arrival.is_history(fences[arrival.shard])]


async def request_repairs(tx: Tx, arrivals: Sequence[IncomingResult]) -> None:
    """Requests the repair of the range that each result affects.

    The range ends at the next result. Without one, it ends when both this result and the previous
    one, which this one cuts short, are stale.
    """
    if not arrivals:
        return
    holds = await select_longest_holds(tx, {arrival.key for arrival in arrivals})
    ranges = []
    for arrival in arrivals:
        until = Instant(arrival.ts + holds[arrival.key])
        until = await results.select_following(tx, arrival.key, arrival.ts, until) or until
        ranges.append(RepairRequest(arrival.org, arrival.shard, arrival.monitor, arrival.ts, until))
    await repair_requests.insert_repairs(tx, ranges)
