"""Claims of an agent: due windows, and runs without a window, each for one agent.

An agent never receives work that it cannot run. That work stays for other agents and workers. If
none in the region can run it, the reason is recorded at the monitor.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final
from uuid import UUID

import msgspec

from ....probes.check.monitor_spec import MonitorType
from ....probes.jobs.agent_protocol import (
    CAPABILITY,
    CRON_SCHEDULE,
    OPTIONAL_TYPES,
    OPTIONS,
    Generation,
    generation_of,
    is_capable,
)
from ...core.instant import SECOND, Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ...monitors.queries.check_definitions import (
    Carried,
    Definition,
    select_carried,
    select_definitions,
)
from ...monitors.rows import ProbeErrorReason
from ...monitors.tables.probe_errors import record_probe_errors
from ...scheduling.queries.region_workers import has_worker
from ...scheduling.rows import OpenBatch
from ...scheduling.tables import work_queues as queues
from ...scheduling.tables.work_queues import LEASE_GRACE_SECONDS
from ...scheduling.transactions.claim_canary_runs import claim_canary_runs
from ...scheduling.transactions.split_batch import split_batch
from ..rows import AgentRow
from ..tables import agents

# Run batches per read, and reads per claim.
BATCHES_AT_ONCE: Final = 4
LOOKS_MOST: Final = 10


class ClaimedJobs(msgspec.Struct, frozen=True):
    """Run of a monitor. `job` is the id of a run without a window, otherwise None."""

    definition: Definition
    due: Instant
    lease_until: Instant
    carrier: Generation
    job: UUID | None = None


class _Window(msgspec.Struct, frozen=True):
    position: int
    key: MonitorKey
    due: Instant


async def claim_jobs(
    tx: Tx,
    agent: AgentRow,
    kinds: Collection[str],
    shards: Sequence[int],
    most: int,
    places: int,
) -> list[ClaimedJobs]:
    """Leases at most `most` runs to the agent, runs without a window first.

    `places` is the number of canaries that can run concurrently in the region.
    """
    runs = await _lease_jobs(tx, agent, kinds, shards, most)
    if is_capable(MonitorType.ASYNC_CANARY, kinds) and agent.carrier >= Generation.WORKFLOWS:
        runs += await _claim_canaries(tx, agent, shards, most - len(runs), places)
    after = 0
    for _ in range(LOOKS_MOST):
        if len(runs) >= most:
            break
        found = await queues.lock_open_batches(tx, shards, after, BATCHES_AT_ONCE)
        settled = await queues.select_settled(tx, [item.id for item in found])
        carried = await select_carried(tx, sorted({key for item in found for key in _keys(item)}))
        for item in found:
            open_ = _open_windows(item, settled, tx.now)
            fit = [w for w in open_ if _fits(carried.get(w.key), agent.carrier, kinds)]
            await _record_too_old(tx, agent, [w for w in open_ if w not in fit], carried)
            runs += await _lease_windows(tx, agent, item, fit[: most - len(runs)], carried)
        if len(found) < BATCHES_AT_ONCE:
            break
        after = found[-1].id
    return runs


async def _lease_jobs(
    tx: Tx, agent: AgentRow, kinds: Collection[str], shards: Sequence[int], most: int
) -> list[ClaimedJobs]:
    # Canaries are always claimed by `_claim_canaries`.
    refused = [kind for kind in CAPABILITY if not is_capable(kind, kinds)]
    refused.append(MonitorType.ASYNC_CANARY)
    if agent.carrier < Generation.SCENARIOS:
        refused.append(MonitorType.SYNTHETIC)
    plain = agent.carrier < Generation.PASSWORDS
    jobs = await queues.lease_jobs_out(
        tx,
        agent.holder,
        shards,
        refused,
        most,
        plain=plain,
        scheduled=CRON_SCHEDULE in kinds,
        optional=OPTIONAL_TYPES,
        unknown=[name for name, token in OPTIONS.items() if token not in kinds],
    )
    keys = [MonitorKey((job.org, job.monitor)) for job in jobs]
    carried = await select_carried(tx, keys)
    definitions = await select_definitions(tx, keys)
    return [
        ClaimedJobs(
            definition=definitions[key],
            due=job.due_at,
            lease_until=_lease_until(tx.now, definitions[key]),
            carrier=_generation(carried[key]),
            job=job.uid,
        )
        for key, job in zip(keys, jobs, strict=True)
    ]


async def _claim_canaries(
    tx: Tx, agent: AgentRow, shards: Sequence[int], most: int, places: int
) -> list[ClaimedJobs]:
    taken = await claim_canary_runs(
        tx, agent.region, shards, agent.holder, places, most, by_agent=True
    )
    definitions = await select_definitions(tx, [item.key for item in taken])
    return [
        ClaimedJobs(
            definition=definitions[item.key],
            due=item.due,
            lease_until=_lease_until(tx.now, definitions[item.key]),
            carrier=Generation.WORKFLOWS,
        )
        for item in taken
        if item.due is not None and item.key in definitions
    ]


def _keys(item: OpenBatch) -> list[MonitorKey]:
    return list(map(MonitorKey, zip(item.orgs, item.monitors, strict=True)))


def _open_windows(
    item: OpenBatch, settled: Collection[tuple[int, int, Instant]], now: Instant
) -> list[_Window]:
    """Returns the claimable windows without a result."""
    return [
        _Window(n, key, item.due_ats[n])
        for n, key in enumerate(_keys(item))
        if item.claim_untils[n] > now and (*key, item.due_ats[n]) not in settled
    ]


def _generation(carried: Carried) -> Generation:
    return generation_of(carried.type, has_secrets=carried.has_secrets)


def _fits(carried: Carried | None, carrier: int, kinds: Collection[str]) -> bool:
    if carried is None:
        return False
    if carried.has_schedule and CRON_SCHEDULE not in kinds:
        return False
    if any(OPTIONS[name] not in kinds for name in carried.options):
        return False
    return _generation(carried) <= carrier and is_capable(carried.type, kinds)


async def _record_too_old(
    tx: Tx, agent: AgentRow, refused: Sequence[_Window], carried: Mapping[MonitorKey, Carried]
) -> None:
    """Records `carrier_too_old` for monitors that no agent or worker of the region can run."""
    if not refused or await has_worker(tx, agent.region):
        return
    abilities = await agents.select_abilities(tx, agent.region)
    troubles = {
        key: (ProbeErrorReason.CARRIER_TOO_OLD, tx.now)
        for key in sorted({window.key for window in refused} & carried.keys())
        if not any(_fits(carried[key], carrier, kinds) for carrier, kinds in abilities)
    }
    if troubles:
        await record_probe_errors(tx, troubles)


async def _lease_windows(
    tx: Tx,
    agent: AgentRow,
    item: OpenBatch,
    chosen: Sequence[_Window],
    carried: Mapping[MonitorKey, Carried],
) -> list[ClaimedJobs]:
    if not chosen:
        return []
    definitions = await select_definitions(tx, sorted({w.key for w in chosen}))
    runs = [
        ClaimedJobs(
            definition=definitions[w.key],
            due=w.due,
            lease_until=_lease_until(max(w.due, tx.now), definitions[w.key]),
            carrier=_generation(carried[w.key]),
        )
        for w in chosen
        if w.key in definitions
    ]
    taken, left = split_batch(item, [w.position for w in chosen])
    until = max((run.lease_until for run in runs), default=tx.now)
    await queues.split_batch(tx, taken, left, agent.holder, until)
    return runs


def _lease_until(begins: Instant, definition: Definition) -> Instant:
    return Instant(begins + (definition.timeout_seconds + LEASE_GRACE_SECONDS) * SECOND)
