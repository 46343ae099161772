"""Canary windows that were not claimed in time, and the state of their region."""

import msgspec

from ....probes.check.monitor_spec import MonitorType
from ....probes.jobs.agent_protocol import CAPABILITY, LIVE_SECONDS, Generation
from ...core.instant import Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ..rules.canary_refusal import RefusalInputs

_UNCLAIMED = """
select w.org, w.monitor, w.due, w.claim, s.shard, h.region, m.timeout_seconds
from run_batches s join shards h on h.id = s.shard
  cross join unnest(s.orgs, s.monitors, s.due_ats, s.claim_untils) as w(org, monitor, due, claim)
  join monitors m on m.org = w.org and m.id = w.monitor and m.enabled
where s.kind = 'canary' and s.published and not s.claimed
  and w.claim > at(%(after)s) and w.claim <= at(%(through)s)
  and not exists (select from verdict_of(w.org, w.monitor, w.due))
order by w.claim, w.org, w.monitor limit %(most)s
"""
_RUNS = "select org, monitor from canary_runs where region = %(region)s"
_CAPABILITIES = f"""
select distinct kind from (
  select unnest(workflow_kinds) as kind from agents
  where region = %(region)s and last_seen_at > at(%(now)s) - interval '{LIVE_SECONDS} seconds'
    -- An agent of an older carrier generation receives no workflows, although it reports kinds.
    and carrier >= {Generation.WORKFLOWS:d}
  union all
  select '{CAPABILITY[MonitorType.ASYNC_CANARY]}' from presences
  where not ended and through_at > at(%(now)s) - interval '15 seconds'
    and roles && '{{all,worker}}' and %(region)s = any(regions)
) k
"""


class Unclaimed(msgspec.Struct, frozen=True):
    org: int
    monitor: int
    due: Instant
    claim_until: Instant
    shard: int
    region: str
    timeout_seconds: int

    @property
    def key(self) -> MonitorKey:
        return MonitorKey((self.org, self.monitor))


async def select_unclaimed(tx: Tx, after: Instant, through: Instant, most: int) -> list[Unclaimed]:
    """Returns unclaimed windows of enabled monitors with claim end in (after, through].

    The order is that of the claim ends.
    """
    return await tx.structs(Unclaimed, _UNCLAIMED, after=after, through=through, most=most)


class RegionCanaries(msgspec.Struct, frozen=True):
    """Running canaries and capabilities of one region."""

    running: set[MonitorKey]
    capabilities: set[str]

    def ground_of(self, window: Unclaimed, places: int) -> RefusalInputs:
        in_flight = window.key in self.running
        return RefusalInputs(in_flight, len(self.running), places, self.capabilities)


async def select_standing(tx: Tx, region: str) -> RegionCanaries:
    running = {MonitorKey((org, monitor)) for org, monitor in await tx.rows(_RUNS, region=region)}
    kinds = {kind for (kind,) in await tx.rows(_CAPABILITIES, region=region, now=tx.now)}
    return RegionCanaries(running, kinds)
