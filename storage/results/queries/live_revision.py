"""Revision of what a live screen of a project shows, for conditional requests."""

from collections.abc import Collection
from typing import Final
from uuid import UUID

from ....probes.jobs.agent_protocol import LIVE_SECONDS
from ...core.instant import Instant
from ...engine.pools import Tx

# Newest results that are read. A screen shows at most 100 monitors in a list.
RESULTS_MOST: Final = 200

_REVISION = f"""
select concat_ws('|',
  (select concat_ws(',', count(*), sum(m.revision), max(m.updated_at), sum(s.version),
      max(s.since), sum(hashtext(s.status || m.id)), count(*) filter (where m.enabled))
    from monitors m join monitor_states s on s.org = m.org and s.monitor = m.id
    where m.org = %(org)s and m.project = %(project)s),
  (select concat_ws(',', count(h.ts), sum(extract(epoch from h.ts)))
    from (select org, id from monitors
        where uid = any(%(shown)s::uuid[]) and org = %(org)s and project = %(project)s
        limit {RESULTS_MOST}) m
      -- Partitions created ahead are empty.
      cross join lateral newest_heartbeat(m.org, m.id, at(%(now)s) + interval '1 day') h),
  (select max(b.at) from push_bodies b join monitors m on m.org = b.org and m.id = b.monitor
    where m.uid = any(%(shown)s::uuid[]) and m.org = %(org)s and m.project = %(project)s),
  (select concat_ws(',', count(*), max(r.started_at), max(r.ended_at), count(r.judged))
    from push_runs r join monitors m on m.org = r.org and m.id = r.monitor
    where m.uid = any(%(shown)s::uuid[]) and m.org = %(org)s and m.project = %(project)s),
  (select concat_ws(',', count(*), sum(i.seq), max(i.id)) from incidents i
    where i.org = %(org)s and i.project = %(project)s and i.status <> 'resolved'),
  (select concat_ws(',', count(*), sum(hashtext(x.id || ' ' || coalesce(x.cancel_effective_at,
      x.ends_at)))) from maintenances x
    where x.org = %(org)s and x.project = %(project)s and x.starts_at <= at(%(now)s)
      and x.ends_at > at(%(now)s) and x.archived_at is null),
  (select concat_ws(',', count(*), max(e.at)) from probe_errors e
      join monitors m on m.org = e.org and m.id = e.monitor
    where m.org = %(org)s and m.project = %(project)s),
  (select string_agg(distinct region, ',' order by region) from (
      select region from agents
        where last_seen_at > at(%(now)s) - interval '{LIVE_SECONDS} seconds'
      union select unnest(regions) from presences
        where not ended and through_at > at(%(now)s) - interval '15 seconds'
          and roles && array['all', 'worker']) live),
  case when %(services)s then (
    select concat_ws(',', count(*), max(v.updated_at), max(v.sealed_through),
        sum(hashtext(v.id || a.live_state)), max(a.edited_at))
      from services v left join service_alerting a on a.org = v.org and a.service = v.id
      where v.org = %(org)s and v.project = %(project)s) end,
  case when %(services)s then (
    select concat_ws(',', count(*), sum(t.objective), max(t.updated_at))
      from service_targets t join services v on v.org = t.org and v.id = t.service
      where v.org = %(org)s and v.project = %(project)s) end)
"""

_NEWEST = """
select k.monitor, h.ts from unnest(%(monitors)s::int[]) as k(monitor)
  -- Partitions created ahead are empty.
  cross join lateral newest_heartbeat(
    %(org)s::int, k.monitor, at(%(now)s) + interval '1 day') h
"""


async def select_newest_results(tx: Tx, org: int, monitors: Collection[int]) -> dict[int, Instant]:
    """Returns the instant of the newest result by monitor, without those that have none."""
    return dict(await tx.rows(_NEWEST, org=org, monitors=list(monitors), now=tx.now))


async def select_live_revision(
    tx: Tx, org: int, project: int, shown: Collection[UUID], *, services: bool = False
) -> str:
    """Returns a text that changes with a status, an edit, an open incident, a probe error or a
    maintenance in force.

    It also changes with a new result or push run of the monitors in `shown`, with the regions that
    have a live worker or agent, and, if `services` is given, with the sealed time, the states and
    the objectives of the services. It does not contain the ages that a screen shows.
    """
    return str(
        await tx.value(
            _REVISION,
            org=org,
            project=project,
            shown=list(shown),
            services=services,
            now=tx.now,
        )
    )
