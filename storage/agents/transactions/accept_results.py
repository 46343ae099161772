"""Reads what an agent brings and makes arrivals of it; jobs without a window end with this commit.

It keeps true: a batch is taken whole or refused whole, so that an agent can tell which item is at
fault by sending them one by one; a job without a window is answered once.
"""

from collections.abc import Sequence
from uuid import UUID

from msgspec import UnsetType

from ....probes.check.monitor_spec import MonitorType
from ....probes.jobs.agent_protocol import AgentResult
from ...core.instant import Instant
from ...core.key import MonitorKey
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...results.rules.incoming_result import IncomingResult, ResultSource
from ...scheduling.rules.run_schedule import ScheduleTerm
from ...scheduling.tables import canary_runs
from ...scheduling.tables import canary_runs as canary_runs_table
from ...scheduling.tables import shards as schedules
from ...scheduling.tables import work_queues as queues
from ..queries.agent_monitors import select_watched
from ..rules import AgentMonitor, arrival_beside, arrival_of, fault, of_other_regions


async def accept_job_results(
    tx: Tx, region: str, items: Sequence[AgentResult], source: ResultSource, kept_days: int
) -> list[IncomingResult | None]:
    """One for each item; None for what is of no monitor, job or window that we know. Refused
    forbidden where one is of another region, invalid (`results[3].ts`) where one cannot be."""
    monitors = await select_watched(tx, sorted({item.monitor_id for item in items}))
    if of_other_regions(monitors, region):
        raise Refused("forbidden")
    for number, item in enumerate(items):
        wrong = fault(item, tx.now, kept_days)
        if wrong is not None:
            raise Refused("invalid", f"results[{number}].{wrong[0]}", wrong[1])
    terms = await schedules.select_terms_of(tx, {m.key for m in monitors.values()})
    return [await _arrival(tx, item, monitors, terms, source) for item in items]


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
    """The window has its result, whoever brought it."""
    await canary_runs_table.end_window(tx, key, due)
