"""What probes where, and what waits there: the figures of each region, just now.

A window waits from when it is due until somebody has claimed it or it may be claimed no longer. One
that its holder died with waits again, unless it has its row in the ledger already. Canaries are not
counted: they wait for a place in their region too, and say themselves why they were refused one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ....probes.jobs.agent_protocol import LIVE_SECONDS
from ...core.instant import Instant
from ...engine.pools import Tx
from ...scheduling.rows import PresenceRow
from ...scheduling.tables import presences

# A run batch that was published holds only what could be claimed then, and a claim ends two minutes
# after its window was due at the latest: older ones hold nothing that waits, and are not read.
FIRST_DUE_BACK_MINUTES: Final = 10
_PROBING: Final = frozenset({"all", "worker"})

_HELD = """
(exists (select from presences p where p.process = {row}.holder and not p.ended
  and p.through_at > at(%(now)s) - interval '15 seconds')
or coalesce({row}.lease_until > at(%(now)s), false))
"""
_WINDOWS = f"""
select h.region, count(*) as pending, min(w.due) as oldest
from shards h
  join run_batches s on s.shard = h.id and s.kind = 'run' and s.published
    and s.first_due <= at(%(now)s)
    and s.first_due > at(%(now)s) - interval '{FIRST_DUE_BACK_MINUTES} minutes'
    and s.claim_until > at(%(now)s)
    and (s.holder is null or not {_HELD.format(row="s")})
  cross join unnest(s.orgs, s.monitors, s.due_ats, s.claim_untils)
    as w(org, monitor, due, claim_until)
where w.due <= at(%(now)s) and w.claim_until > at(%(now)s)
  and (not s.claimed or not exists (select from expected_runs r
    where r.org = w.org and r.monitor = w.monitor and r.due_at = w.due))
group by h.region
"""
_JOBS = f"""
select h.region, count(*) as pending, min(j.due_at) as oldest
from shards h
  join jobs j on j.shard = h.id and j.due_at <= at(%(now)s) and j.claim_until > at(%(now)s)
    and (j.holder is null or not {_HELD.format(row="j")})
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
# A push is heard and a composite is computed: neither needs anybody in its region.
_WATCHED = """
select h.region, count(*) from monitors m join shards h on h.id = m.shard
where m.enabled and m.type <> all('{push,composite}'::text[]) group by h.region
"""


@dataclass(frozen=True, slots=True)
class RegionLoad:
    """`workers` and `agents` are those that probe there just now; `oldest_due` is of what waits
    longest, None where nothing does."""

    name: str
    workers: int
    agents: int
    pending_jobs: int
    oldest_due: Instant | None

    @property
    def is_live(self) -> bool:
        return self.workers > 0 or self.agents > 0

    def lag_us(self, now: Instant) -> int | None:
        """How long the oldest has waited; None where none waits."""
        return None if self.oldest_due is None else max(now - self.oldest_due, 0)


@dataclass(frozen=True, slots=True)
class Fleet:
    """As it was at `at`."""

    at: Instant
    processes: list[PresenceRow]
    regions: list[RegionLoad]


async def select_fleet(tx: Tx, configured: Iterable[str]) -> Fleet:
    """The processes that are there, by host, and by name each region that is configured, has
    monitors, or is probed in."""
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


async def count_watched(tx: Tx) -> dict[str, int]:
    """How many monitors that are enabled somebody must probe for, by region; none is left out."""
    return dict(await _counts(tx, _WATCHED))


async def _counts(tx: Tx, query: str, **given: object) -> list[tuple[str, int]]:
    return [(str(name), int(many)) for name, many in await tx.rows(query, **given)]
