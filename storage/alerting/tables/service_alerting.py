"""How services speak for their members, one row a service, and what was last seen of each.

Whoever holds the row decides alone whether the service speaks or its members do. Leases are written
and judged by the database's own clock, in the statement: a host whose clock is wrong holds none for
longer, and takes none away.
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
# The service before its row, as whoever deletes one does.
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
select org, service from service_alerting where due_at <= at(%(now)s)
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
# The lease begins where the statement runs, by the clock it will be judged by.
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
    """What an evaluation saw."""

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
    """Those that are there; with `skip_locked` those that nobody else holds."""
    tx.lock_rank(LockRank.SERVICE, "how services speak")
    tail = " skip locked" if skip_locked else ""
    held = [
        ServiceKey((row[0], row[1]))
        for row in await tx.rows(_HOLD_SERVICES + tail, **key_arrays(sorted(keys), "services"))
    ]
    locked = [
        ServiceKey((row[0], row[1]))
        for row in await tx.rows(_LOCK + tail, **key_arrays(sorted(held), "services"))
    ]
    # In a statement of its own: who has waited reads what its holder left.
    return await select_alertings(tx, locked)


async def select_due_alertings(tx: Tx, now: Instant, most: int) -> list[ServiceKey]:
    """The services that are to be looked at, longest due first."""
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
    """The row is locked. What was seen before is none of it any more, unless nothing but how often
    people are reminded was changed: that is read live."""
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
    assert found is not None, "the row is locked and there"
    return found


async def write_seen(tx: Tx, seen: Sequence[EvaluationRow], due: Instant) -> None:
    """What was seen of services that are held, each with a new lease; when to look again."""
    if seen:
        items = msgspec.json.encode(seen).decode()
        await tx.execute(_SEEN, items=items, lease=LEASE_SECONDS, now=tx.now, due=due)


async def write_failed(tx: Tx, key: ServiceKey, error: str, due: Instant) -> None:
    """Its lease runs on, and out."""
    await tx.execute(_FAILED, org=key[0], service=key[1], error=error, due=due)


async def write_burn_seen(tx: Tx, reasons: Mapping[ServiceKey, str | None]) -> None:
    """Of services that are held: why a rule of theirs could not be decided, None where all were."""
    found = reasons.items()
    items = [{"org": k[0], "service": k[1], "reason": reason} for k, reason in found]
    if items:
        text = msgspec.json.encode(items).decode()
        await tx.execute(_BURN_SEEN, items=text, lease=LEASE_SECONDS, now=tx.now)


async def write_burn_failed(tx: Tx, key: ServiceKey, error: str) -> None:
    await tx.execute(_BURN_FAILED, org=key[0], service=key[1], error=error)
