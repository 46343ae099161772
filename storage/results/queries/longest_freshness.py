"""Longest freshness that a service gives to results."""

from collections.abc import Iterable

from ...core.instant import EARLIEST, LATEST
from ...core.key import MonitorKey
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ...monitors.rules.monitor_state import freshness_us
from ...monitors.tables import compositions
from ...scheduling.rules.run_schedule import ScheduleTerm
from ...scheduling.tables import shards as schedules

_LONGEST_HOLD = """
select max(active_multiplier), max(active_floor_us) from service_revisions where org = %(org)s
"""


async def select_longest_hold(tx: Tx, org: int) -> tuple[int, int]:
    """Returns the largest multiplier and floor (µs) of any service; zeros without services."""
    row = await tx.row(_LONGEST_HOLD, org=org)
    return (row[0] or 0, row[1] or 0) if row is not None else (0, 0)


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
        stored = await select_longest_hold(tx, org)
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
    probed = max(freshness_us(term.longest_us), freshness_us(term.longest_us, multiplier, floor_us))
    return max(probed, term.patience_us)
