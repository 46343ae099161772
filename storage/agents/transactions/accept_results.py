"""Turns the results of an agent into incoming results; jobs without a window end with this commit.

Invariant: a batch with an item of another region or a malformed one is refused as a whole, so that
the agent can find that item by sending them one by one. A well-formed item that cannot be stored at
its instant is refused alone. A job without a window is answered once.
"""

from collections.abc import Sequence
from uuid import UUID

from msgspec import UnsetType

from ....probes.check.monitor_spec import MonitorType
from ....probes.jobs.agent_protocol import AgentResult
from ...core.instant import HOUR, Instant, from_datetime
from ...core.key import MonitorKey
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...results.queries.longest_freshness import select_longest_holds
from ...results.rules.incoming_result import IncomingResult, ResultSource
from ...scheduling.rules.run_schedule import ScheduleTerm
from ...scheduling.tables import canary_runs
from ...scheduling.tables import canary_runs as canary_runs_table
from ...scheduling.tables import shards as schedules
from ...scheduling.tables import work_queues as queues
from ..queries.agent_monitors import select_watched
from ..rules import (
    AgentMonitor,
    Unstorable,
    arrival_beside,
    arrival_of,
    fault,
    of_other_regions,
    unstorable,
)


async def accept_job_results(
    tx: Tx, region: str, items: Sequence[AgentResult], source: ResultSource, kept_days: int
) -> list[IncomingResult | Unstorable | None]:
    """Returns one entry for each item.

    The entry is the incoming result; or why it cannot be stored; or None if the monitor, the job or
    the window is unknown. `kept_days` is the retention of heartbeats: the one bound on the age of a
    result.

    Raises:
        Refused `forbidden` if an item is of another region, `invalid` (`results[3].ts`) if one is
        malformed.
    """
    monitors = await select_watched(tx, sorted({item.monitor_id for item in items}))
    if of_other_regions(monitors, region):
        raise Refused("forbidden")
    for number, item in enumerate(items):
        wrong = fault(item)
        if wrong is not None:
            raise Refused("invalid", f"results[{number}].{wrong[0]}", wrong[1])
    terms = await schedules.select_terms_of(tx, {m.key for m in monitors.values()})
    holds = await _holds_of_old(tx, items, monitors)
    return [
        unstorable(item, tx.now, kept_days, holds.get(item.monitor_id, 0))
        or await _arrival(tx, item, monitors, terms, source)
        for item in items
    ]


async def _holds_of_old(
    tx: Tx, items: Sequence[AgentResult], monitors: dict[UUID, AgentMonitor]
) -> dict[UUID, int]:
    """Returns how long results can apply, in µs, for monitors with an item older than an hour.

    Only such an item can be too old for a repair. Most batches have none, and need no query.
    """
    old = {item.monitor_id for item in items if from_datetime(item.ts) < tx.now - HOUR}
    keys = {monitors[uid].key: uid for uid in old if uid in monitors}
    return {keys[key]: hold for key, hold in (await select_longest_holds(tx, keys)).items()}


async def _arrival(
    tx: Tx,
    item: AgentResult,
    monitors: dict[UUID, AgentMonitor],
    terms: dict[MonitorKey, list[ScheduleTerm]],
    source: ResultSource,
) -> IncomingResult | None:
    monitor = monitors.get(item.monitor_id)
    if monitor is None:
        return None
    found = arrival_of(item, monitor, terms.get(monitor.key, ()), source)
    if found is not None and monitor.type == MonitorType.ASYNC_CANARY:
        await canary_runs.end_window(tx, monitor.key, found.dues[0])
    if found is not None or isinstance(item.job_id, UnsetType):
        return found
    revision = await queues.pop_job(tx, item.job_id, *monitor.key)
    return None if revision is None else arrival_beside(item, monitor, revision, source)


async def end_window(tx: Tx, key: MonitorKey, due: Instant) -> None:
    """Deletes the run of a canary window that has its result, from any holder."""
    await canary_runs_table.end_window(tx, key, due)
