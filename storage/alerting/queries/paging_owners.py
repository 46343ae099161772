"""Queries for the services that own a monitor's paging, with the inputs of delegation."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

import msgspec

from ...core.instant import SECOND, Instant
from ...core.key import MonitorKey, ServiceKey, key_arrays
from ...engine.pools import Tx
from ...services.queries.service_revisions import select_revisions
from ...services.rules.epoch import Revision, governs
from ..rows import AlertingRow
from ..rules.alert_episode import AlertingPolicy, NoPageReason, ServiceCondition
from ..rules.paging_delegation import EpisodeLatch, Owner, PagingSignal, RouteState
from .paging_routes import select_reach

_KEYS = "unnest(%(orgs)s::int[], %(keys)s::int[]) as k(org, key)"
# Services with any revision that names the monitor; the caller finds the governing revision. One
# statement serves all monitors, because a list can contain 5 000.
_DECLARING = f"""
select distinct k.org, k.key, r.service
from service_revisions r
  join service_alerting a on a.org = r.org and a.service = r.service and a.owns_paging
  cross join unnest(r.monitors) as m(monitor)
  join {_KEYS} on k.org = r.org and k.key = m.monitor
where r.org = any(%(orgs)s::int[]) and r.monitors && %(keys)s::int[]
"""
_BURNING = f"""
select distinct t.org, t.service from {_KEYS}
  join service_targets t on t.org = k.org and t.service = k.key and t.burn_enabled
  join burn_rules b on b.org = t.org and b.service = t.service and b."window" = t."window"
"""
# Retention deletes delivered outbox rows before their thread. A thread without outbox rows
# therefore counts as delivered.
_LATCHES = f"""
select e.org, e.service, e.announced_at is not null, i.id is not null,
  coalesce(p.notified_at, t.notified_at), coalesce(i.escalate_at is not null, false),
  e.page_delivered_at is not null or i.acknowledged_at is not null or i.snoozed_until is not null
    or coalesce(i.status = 'resolved', false) or coalesce(p.delivered, false)
    or (t.notified_at is not null and p.many = 0),
  p.many > 0 and p.pending = 0 and not p.delivered
from {_KEYS}
  join service_episodes e on e.org = k.org and e.service = k.key and e.ended_at is null
  left join incidents i on i.org = e.org and i.id = e.incident
  left join lateral (
    select min(o.created_at) as notified_at, bool_or(o.status = 'delivered') as delivered,
      count(*) filter (where o.status = 'pending') as pending, count(*) as many
    from outbox o join destinations d on d.org = o.org and d.id = o.destination
    where o.org = i.org and o.thread = i.uid and d.channel is not null) p on true
  left join lateral (
    select min(c.created_at) as notified_at from notification_threads c
    where c.org = i.org and c.thread = i.uid) t on true
"""


class _LatchRow(msgspec.Struct, frozen=True):
    org: int
    service: int
    announced: bool
    has_incident: bool
    notified_at: Instant | None
    is_due: bool
    heard: bool
    dead: bool

    @property
    def latch(self) -> EpisodeLatch:
        return EpisodeLatch(
            announced=self.announced,
            has_incident=self.has_incident,
            notified_at=self.notified_at,
            is_due=self.is_due,
            heard=self.heard,
            dead=self.dead,
        )


async def select_owning(
    tx: Tx, monitors: Collection[MonitorKey], now: Instant
) -> dict[MonitorKey, list[ServiceKey]]:
    """Returns the services that own the paging of the given monitors.

    The governing revision decides. If none governs yet, any revision decides.
    """
    declaring: dict[ServiceKey, list[MonitorKey]] = defaultdict(list)
    for org, monitor, service in await tx.rows(_DECLARING, **key_arrays(monitors, "keys")):
        declaring[ServiceKey((org, service))].append(MonitorKey((org, monitor)))
    if not declaring:
        return {}
    revisions = await select_revisions(tx, sorted(declaring))
    found: dict[MonitorKey, list[ServiceKey]] = defaultdict(list)
    for service in sorted(declaring):
        _, governing = governs(revisions[service], now)
        heard = [governing] if governing is not None else revisions[service]
        for monitor in declaring[service]:
            if any(monitor[1] in revision.sli for revision in heard):
                found[monitor].append(service)
    return dict(found)


async def select_owners(
    tx: Tx, alertings: Mapping[ServiceKey, AlertingRow], now: Instant
) -> dict[ServiceKey, Owner]:
    """Returns the current owners. A caller that decides by them must lock the alerting rows."""
    keys = sorted(alertings)
    if not keys:
        return {}
    revisions = await select_revisions(tx, keys)
    reach = await select_reach(tx, keys, now)
    latches = await select_latches(tx, keys)
    burning = {
        ServiceKey((org, key)) for org, key in await tx.rows(_BURNING, **key_arrays(keys, "keys"))
    }
    return {
        key: _owner(
            row,
            governs(revisions[key], now),
            reach[key],
            latches.get(key),
            burns=key in burning,
        )
        for key, row in alertings.items()
    }


async def select_latches(tx: Tx, services: Iterable[ServiceKey]) -> dict[ServiceKey, EpisodeLatch]:
    """Returns the delivery state of each open episode."""
    rows = await tx.structs(_LatchRow, _LATCHES, **key_arrays(list(services), "keys"))
    return {ServiceKey((row.org, row.service)): row.latch for row in rows}


def alerting_policy_of(row: AlertingRow) -> AlertingPolicy:
    return AlertingPolicy(
        owns_paging=row.owns_paging,
        page_on=frozenset(ServiceCondition(state) for state in row.page_on),
        page_on_unknown=row.page_on_unknown,
        confirm_evaluations=row.confirm_evaluations,
        renotify_us=row.renotify_seconds * SECOND,
    )


def _owner(
    row: AlertingRow,
    governing: tuple[Instant | None, Revision | None],
    reach: RouteState,
    latch: EpisodeLatch | None,
    *,
    burns: bool,
) -> Owner:
    since, revision = governing
    return Owner(
        key=row.key,
        revision=None if revision is None else revision.revision,
        governs_from=since,
        speaking=alerting_policy_of(row),
        reach=reach,
        generation=row.generation,
        edited_at=row.edited_at,
        live=_live(row),
        burn=_burn(row),
        burns=burns,
        latch=latch,
    )


def _live(row: AlertingRow) -> PagingSignal:
    return PagingSignal(
        evaluated_at=row.live_evaluated_at,
        generation=row.live_generation,
        failed=row.live_error is not None,
        lease_holds=row.live_lease_holds,
        revision=row.live_revision,
        state=None if row.live_state is None else ServiceCondition(row.live_state),
        held=row.live_reason == NoPageReason.HELD,
    )


def _burn(row: AlertingRow) -> PagingSignal:
    return PagingSignal(
        evaluated_at=row.burn_evaluated_at,
        generation=row.burn_generation,
        failed=row.burn_error is not None,
        lease_holds=row.burn_lease_holds,
        undecided=row.burn_reason is not None,
    )
