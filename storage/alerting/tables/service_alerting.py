"""Alerting settings and last evaluation of services, one row per service.

A transaction that locks the row decides alone whether the service or its members page. The
database clock sets and checks leases within the statement. A host with a wrong clock therefore
neither extends nor shortens a lease.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from ...core.instant import Instant
from ...core.key import ServiceKey, key_arrays
from ...engine.pools import LockRank, Tx
from ..rows import LEASE_SECONDS, AlertingRow

_KEYS = "unnest(%(orgs)s::int[], %(services)s::int[]) as k(org, service)"
_COLUMNS = """
a.org, a.service, a.owns_paging, a.page_on, a.page_on_unknown, a.confirm_evaluations,
a.renotify_seconds, a.generation, a.edited_at, a.live_evaluated_at, a.live_generation,
a.live_revision, a.live_state, a.live_streak, a.live_since, a.live_reason, a.live_error,
a.live_lease_until, coalesce(a.live_lease_until > clock_timestamp(), false),
a.due_at, a.burn_evaluated_at, a.burn_generation, a.burn_reason, a.burn_error, a.burn_lease_until,
coalesce(a.burn_lease_until > clock_timestamp(), false)
"""
_SELECT = f"""
select {_COLUMNS} from {_KEYS}
  join service_alerting a on a.org = k.org and a.service = k.service
order by a.org, a.service
"""
# Lock order: the service before its alerting row, as in the deletion of a service.
_HOLD_SERVICES = f"""
select s.org, s.id from {_KEYS} join services s on s.org = k.org and s.id = k.service
order by s.org, s.id for key share of s
"""
_LOCK = f"""
select a.org, a.service from {_KEYS}
  join service_alerting a on a.org = k.org and a.service = k.service
order by a.org, a.service for no key update of a
"""
_DUE = """
select org, service from service_alerting a where due_at <= at(%(now)s)
  -- Nothing is sent about what a deletion of its project is about to delete.
  and not exists (select from services s join projects p on p.org = s.org and p.id = s.project
    where s.org = a.org and s.id = a.service and p.deleting_since is not null)
order by due_at, org, service limit %(most)s
"""
_UPDATE = """
update service_alerting set owns_paging = %(owns_paging)s, page_on = %(page_on)s::text[],
  page_on_unknown = %(page_on_unknown)s, confirm_evaluations = %(confirm_evaluations)s,
  renotify_seconds = %(renotify_seconds)s, generation = generation + %(raised)s,
  edited_at = case when %(raised)s > 0 then at(%(now)s) else edited_at end,
  due_at = case when %(raised)s > 0 then least(due_at, at(%(now)s)) else due_at end
where org = %(org)s and service = %(service)s
"""
# The lease starts at the clock that later checks it, not at the start of the transaction.
_SEEN = """
update service_alerting a set live_evaluated_at = at(%(now)s), live_generation = i.generation,
  live_revision = i.revision, live_state = i.state, live_streak = i.streak,
  live_since = case when a.live_state is distinct from i.state then at(%(now)s)
    else a.live_since end,
  live_reason = i.reason, live_error = null,
  live_lease_until = clock_timestamp() + %(lease)s * interval '1 second', due_at = at(%(due)s)
from json_to_recordset(%(items)s::json)
  as i(org int, service int, generation int, revision int, state text, streak int, reason text)
where a.org = i.org and a.service = i.service
"""
_BURN_SEEN = """
update service_alerting a set burn_evaluated_at = at(%(now)s), burn_generation = a.generation,
  burn_reason = i.reason, burn_error = null,
  burn_lease_until = clock_timestamp() + %(lease)s * interval '1 second'
from json_to_recordset(%(items)s::json) as i(org int, service int, reason text)
where a.org = i.org and a.service = i.service
"""
_BURN_FAILED = """
update service_alerting set burn_error = %(error)s
where org = %(org)s and service = %(service)s
"""
_FAILED = """
update service_alerting set live_error = %(error)s, due_at = at(%(due)s)
where org = %(org)s and service = %(service)s
"""


class EvaluationRow(msgspec.Struct, frozen=True):
    """Result of one evaluation of a service."""

    org: int
    service: int
    generation: int
    revision: int | None
    state: str
    streak: int
    reason: str | None


async def select_alertings(tx: Tx, keys: Collection[ServiceKey]) -> dict[ServiceKey, AlertingRow]:
    rows = await tx.structs(AlertingRow, _SELECT, **key_arrays(sorted(keys), "services"))
    return {row.key: row for row in rows}


async def select_alerting(tx: Tx, key: ServiceKey) -> AlertingRow | None:
    return (await select_alertings(tx, [key])).get(key)


async def lock_alertings(
    tx: Tx, keys: Collection[ServiceKey], *, skip_locked: bool = False
) -> dict[ServiceKey, AlertingRow]:
    """Locks existing alerting rows; with `skip_locked`, only those without another lock."""
    tx.lock_rank(LockRank.SERVICE, "alerting of services")
    tail = " skip locked" if skip_locked else ""
    held = [
        ServiceKey((row[0], row[1]))
        for row in await tx.rows(_HOLD_SERVICES + tail, **key_arrays(sorted(keys), "services"))
    ]
    locked = [
        ServiceKey((row[0], row[1]))
        for row in await tx.rows(_LOCK + tail, **key_arrays(sorted(held), "services"))
    ]
    # A separate statement, so that a transaction that waited reads the committed rows.
    return await select_alertings(tx, locked)


async def select_due_alertings(tx: Tx, now: Instant, most: int) -> list[ServiceKey]:
    """Returns services due for evaluation, longest overdue first."""
    return [ServiceKey((org, service)) for org, service in await tx.rows(_DUE, now=now, most=most)]


async def update_alerting(
    tx: Tx,
    row: AlertingRow,
    *,
    owns_paging: bool,
    page_on: Sequence[str],
    page_on_unknown: bool,
    confirm_evaluations: int,
    renotify_seconds: int,
) -> AlertingRow:
    """Updates a locked row. Invalidates earlier evaluations unless only the reminders change.

    `renotify_seconds` is read at each evaluation and needs no new generation.
    """
    before = (row.owns_paging, sorted(row.page_on), row.page_on_unknown, row.confirm_evaluations)
    after = (owns_paging, sorted(page_on), page_on_unknown, confirm_evaluations)
    await tx.execute(
        _UPDATE,
        org=row.org,
        service=row.service,
        owns_paging=owns_paging,
        page_on=list(page_on),
        page_on_unknown=page_on_unknown,
        confirm_evaluations=confirm_evaluations,
        renotify_seconds=renotify_seconds,
        raised=int(before != after),
        now=tx.now,
    )
    found = await select_alerting(tx, row.key)
    assert found is not None, "the locked row is missing"
    return found


async def write_seen(tx: Tx, seen: Sequence[EvaluationRow], due: Instant) -> None:
    """Writes the evaluations of locked services. Renews their leases and sets `due_at`."""
    if seen:
        items = msgspec.json.encode(seen).decode()
        await tx.execute(_SEEN, items=items, lease=LEASE_SECONDS, now=tx.now, due=due)


async def write_failed(tx: Tx, key: ServiceKey, error: str, due: Instant) -> None:
    """Writes the error of a failed evaluation. Does not renew the lease."""
    await tx.execute(_FAILED, org=key[0], service=key[1], error=error, due=due)


async def write_burn_seen(tx: Tx, reasons: Mapping[ServiceKey, str | None]) -> None:
    """Writes burn evaluations of locked services and renews their leases.

    Args:
        reasons: why a burn rule has no result, None if all rules have one.
    """
    found = reasons.items()
    items = [{"org": k[0], "service": k[1], "reason": reason} for k, reason in found]
    if items:
        text = msgspec.json.encode(items).decode()
        await tx.execute(_BURN_SEEN, items=text, lease=LEASE_SECONDS, now=tx.now)


async def write_burn_failed(tx: Tx, key: ServiceKey, error: str) -> None:
    await tx.execute(_BURN_FAILED, org=key[0], service=key[1], error=error)
