"""Load of the regions: processes, agents and waiting jobs.

A window waits from its due instant until it is claimed or can no longer be claimed. If its holder
died, it waits again, unless it has a row in the ledger. Canaries are not counted: they wait for a
slot of the region and report refusals themselves.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ....probes.jobs.agent_protocol import LIVE_SECONDS
from ...core.instant import Instant
from ...engine.pools import Tx
from ...scheduling.rows import PresenceRow
from ...scheduling.tables import presences
from ...scheduling.tables.work_queues import HELD

# A published run batch contains only windows that were claimable then, and the claim period ends at
# most two minutes after the due instant. Older batches have no waiting windows.
FIRST_DUE_BACK_MINUTES: Final = 10
_PROBING: Final = frozenset({"all", "worker"})

_WINDOWS = f"""
select h.region, count(*) as pending, min(w.due) as oldest
from shards h
  join run_batches s on s.shard = h.id and s.kind = 'run' and s.published
    and s.first_due <= at(%(now)s)
    and s.first_due > at(%(now)s) - interval '{FIRST_DUE_BACK_MINUTES} minutes'
    and s.claim_until > at(%(now)s)
    and (s.holder is null or not {HELD.format(row="s")})
  cross join unnest(s.orgs, s.monitors, s.due_ats, s.claim_untils)
    as w(org, monitor, due, claim_until)
where w.due <= at(%(now)s) and w.claim_until > at(%(now)s)
  and (not s.claimed or not exists (select from verdict_of(w.org, w.monitor, w.due)))
group by h.region
"""
_JOBS = f"""
select h.region, count(*) as pending, min(j.due_at) as oldest
from shards h
  join jobs j on j.shard = h.id and j.due_at <= at(%(now)s) and j.claim_until > at(%(now)s)
    and (j.holder is null or not {HELD.format(row="j")})
  join monitors m on m.org = j.org and m.id = j.monitor and m.type <> 'async_canary'
group by h.region
"""
_WAITING = f"""
select region, sum(pending)::bigint, min(oldest)
from (({_WINDOWS}) union all ({_JOBS})) waiting group by region
"""
_AGENTS = f"""
select region, count(*) from agents
where last_seen_at > at(%(now)s) - interval '{LIVE_SECONDS} seconds' group by region
"""
_REGIONS = "select distinct region from shards"
# Push monitors and composites need no worker or agent in their region.
_WATCHED = """
select h.region, count(*) from monitors m join shards h on h.id = m.shard
where m.enabled and m.type <> all('{push,composite}'::text[]) group by h.region
"""


@dataclass(frozen=True, slots=True)
class RegionLoad:
    """Load of one region.

    `workers` and `agents` count live ones. `oldest_due` is the earliest waiting due instant, None
    without waiting jobs.
    """

    name: str
    workers: int
    agents: int
    pending_jobs: int
    oldest_due: Instant | None

    @property
    def is_live(self) -> bool:
        return self.workers > 0 or self.agents > 0

    def lag_us(self, now: Instant) -> int | None:
        """Returns how long the oldest job has waited in µs, None without waiting jobs."""
        return None if self.oldest_due is None else max(now - self.oldest_due, 0)


@dataclass(frozen=True, slots=True)
class Fleet:
    """State of all processes and regions at `at`."""

    at: Instant
    processes: list[PresenceRow]
    regions: list[RegionLoad]


async def select_fleet(tx: Tx, configured: Iterable[str]) -> Fleet:
    """Returns the live processes by host, and the regions by name.

    The regions are those that are configured, have shards, or have live workers or agents.
    """
    processes = await presences.select_live(tx, tx.now)
    waiting = {name: (many, oldest) for name, many, oldest in await tx.rows(_WAITING, now=tx.now)}
    agents: dict[str, int] = dict(await _counts(tx, _AGENTS, now=tx.now))
    workers: dict[str, int] = {}
    for process in processes:
        if _PROBING.intersection(process.roles):
            for name in process.regions:
                workers[name] = workers.get(name, 0) + 1
    names = {name for (name,) in await tx.rows(_REGIONS)}
    loads = []
    for name in sorted(names.union(configured, agents, workers)):
        many, oldest = waiting.get(name, (0, None))
        loads.append(RegionLoad(name, workers.get(name, 0), agents.get(name, 0), many, oldest))
    return Fleet(tx.now, processes, loads)


async def select_live_regions(tx: Tx) -> set[str]:
    """Returns the regions with a live worker or agent."""
    live = {str(name) for name, _ in await _counts(tx, _AGENTS, now=tx.now)}
    for process in await presences.select_live(tx, tx.now):
        if _PROBING.intersection(process.roles):
            live.update(process.regions)
    return live


async def count_watched(tx: Tx) -> dict[str, int]:
    """Returns the number of enabled monitors that must be probed, by region, without zeros."""
    return dict(await _counts(tx, _WATCHED))


async def _counts(tx: Tx, query: str, **given: object) -> list[tuple[str, int]]:
    return [(str(name), int(many)) for name, many in await tx.rows(query, **given)]
