"""Asks for figures to be made again where a result is stored that they had to do without."""

from collections.abc import Iterable, Mapping, Sequence

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ...monitors.rules.monitor_state import freshness_us
from ...scheduling.rules.run_schedule import ScheduleTerm
from ...scheduling.tables import shards as schedules
from ..queries import longest_freshness
from ..rows import RepairRequest
from ..rules.incoming_result import IncomingResult
from ..tables import repair_requests, results


def passed(
    arrivals: Iterable[IncomingResult], fences: Mapping[int, Instant]
) -> list[IncomingResult]:
    """Those that the fences have passed. A deadline that nobody kept may be found so late; it is
    folded all the same."""
    return [arrival for arrival in arrivals if arrival.is_history(fences[arrival.shard])]


async def request_repairs(tx: Tx, arrivals: Sequence[IncomingResult]) -> None:
    """What an arrival changes ends with the next result; else where its hold ends, or that of the
    result before it, which it has cut short."""
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


async def select_longest_holds(tx: Tx, keys: Iterable[MonitorKey]) -> dict[MonitorKey, int]:
    """How long a result of each may speak at most, by any term of it and to whoever is made of it:
    a service may let results speak for longer than they do to their monitor."""
    terms = await schedules.select_terms_of(tx, keys)
    holds = {
        org: await longest_freshness.select_longest_hold(tx, org)
        for org in {org for org, _ in terms}
    }
    return {
        key: max(_freshness_us(term, *holds[key[0]]) for term in history)
        for key, history in terms.items()
    }


def _freshness_us(term: ScheduleTerm, multiplier: int, floor_us: int) -> int:
    probed = max(
        freshness_us(term.interval_us), freshness_us(term.interval_us, multiplier, floor_us)
    )
    return max(probed, term.interval_us + term.grace_us)
