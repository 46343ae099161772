"""Requests to repair figures that were computed without a late result."""

from collections.abc import Iterable, Mapping, Sequence

from ...core.instant import EARLIEST, LATEST, Instant
from ...core.key import MonitorKey
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ...monitors.rules.monitor_state import freshness_us
from ...monitors.tables import compositions
from ...scheduling.rules.run_schedule import ScheduleTerm
from ...scheduling.tables import shards as schedules
from ..queries import longest_freshness
from ..rows import RepairRequest
from ..rules.incoming_result import IncomingResult
from ..tables import repair_requests, results


def passed(
    arrivals: Iterable[IncomingResult], fences: Mapping[int, Instant]
) -> list[IncomingResult]:
    """Returns the results before the fences.

    A missed deadline can be found late and is folded.
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
        following = await results.select_following(tx, arrival.key, arrival.ts)
        until = min(until, following or until)
        ranges.append(RepairRequest(arrival.org, arrival.shard, arrival.monitor, arrival.ts, until))
    await repair_requests.insert_repairs(tx, ranges)


async def select_longest_holds(
    tx: Tx, keys: Iterable[MonitorKey], multiplier: int = 0, floor_us: int = 0
) -> dict[MonitorKey, int]:
    """Returns the longest freshness of a result per monitor in µs, over all terms and dependents.

    A service can give results a longer freshness than their monitor does. `multiplier` and
    `floor_us` are those of a service that is not stored yet.
    """
    terms = await schedules.select_terms_of(tx, keys)
    holds = {}
    for org in {org for org, _ in terms}:
        stored = await longest_freshness.select_longest_hold(tx, org)
        holds[org] = max(multiplier, stored[0]), max(floor_us, stored[1])
    return {
        key: max(_freshness_us(term, *holds[key[0]]) for term in history)
        for key, history in terms.items()
    }


async def select_longest_hold_of(
    tx: Tx, monitors: Iterable[MonitorKey], multiplier: int = 0, floor_us: int = 0
) -> int:
    """Returns the longest freshness in µs of a result of the monitors or of their descendants."""
    keys = set(monitors)
    made = await compositions.select_beneath(tx, keys, TimeSpan(EARLIEST, LATEST))
    keys |= {child for found in made.values() for one in found for child in one.children}
    return max((await select_longest_holds(tx, keys, multiplier, floor_us)).values(), default=0)


def _freshness_us(term: ScheduleTerm, multiplier: int, floor_us: int) -> int:
    probed = max(
        freshness_us(term.interval_us), freshness_us(term.interval_us, multiplier, floor_us)
    )
    return max(probed, term.interval_us + term.grace_us)
