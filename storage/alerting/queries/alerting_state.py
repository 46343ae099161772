"""Alerting state of services and paging delegation of monitors, as shown to users.

The rules of the alert processor apply, with `is_steady` set.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from ...core.instant import Instant
from ...core.key import MonitorKey, ServiceKey, key_arrays
from ...engine.pools import Tx
from ...services.rows import ServiceRow
from ...services.tables.services import select_services
from ..rows import AlertingRow
from ..rules.alert_episode import ServiceCondition
from ..rules.paging_delegation import (
    Delegated,
    FailOpen,
    Owner,
    SignalReason,
    decide_burn_paging,
    decide_paging,
    why_not,
    why_not_burn,
)
from ..tables.service_alerting import select_alertings
from .paging_owners import select_owners, select_owning

# Delegation start of a delegated outage; start of the outage if it failed open.
_LEFT = """
select k.org, k.monitor, o.failed_open,
  case when o.suppressed_by = 'delegated' then o.waits_since
    when o.failed_open is not null then o.began_at end
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  join outages o on o.org = k.org and o.monitor = k.monitor and o.ended_at is null
where o.suppressed_by = 'delegated' or o.failed_open is not null
"""
_LEFT_TO = """
select min(case when o.suppressed_by = 'delegated' then o.waits_since else o.began_at end)
from service_revisions r join outages o on o.org = r.org and o.monitor = any(r.sli)
  and o.ended_at is null and (o.suppressed_by = 'delegated' or o.failed_open is not null)
where r.org = %(org)s and r.service = %(service)s and r.revision = %(revision)s
"""


@dataclass(frozen=True, slots=True)
class SignalState:
    """State of one signal. Invariant: `reason` is set exactly if the signal is not armed."""

    armed: bool
    reason: SignalReason | None
    evaluated_at: Instant | None
    lease_until: Instant | None
    last_error: str | None


@dataclass(frozen=True, slots=True)
class AlertingState:
    """Live and burn signals of a service. `seen` is None before the first evaluation."""

    live: SignalState
    burn: SignalState
    seen: ServiceCondition | None


class OwnerName(NamedTuple):
    uid: UUID
    slug: str
    name: str


@dataclass(frozen=True, slots=True)
class SignalDelegation:
    """Delegation of one signal: `owners` if it is delegated, `reason` if it is not."""

    delegated: bool
    owners: Sequence[OwnerName]
    reason: SignalReason | None


@dataclass(frozen=True, slots=True)
class Delegation:
    live: SignalDelegation
    burn: SignalDelegation


NOBODYS = SignalDelegation(False, (), SignalReason.NO_OWNING_SERVICE)


async def select_alerting_state(
    tx: Tx, service: ServiceKey, now: Instant, known: AlertingRow | None = None
) -> AlertingState:
    """Returns the state of the signals. `known` is the row, if this transaction has read it."""
    alertings = {service: known} if known else await select_alertings(tx, [service])
    owner = (await select_owners(tx, alertings, now)).get(service)
    if owner is None:
        nothing = SignalState(False, SignalReason.NO_OWNING_SERVICE, None, None, None)
        return AlertingState(nothing, nothing, None)
    row = alertings[service]
    left_at = await tx.value(_LEFT_TO, org=service[0], service=service[1], revision=owner.revision)
    live, burn = _live_state(row, owner, left_at, now), _burn_state(row, owner, now)
    return AlertingState(
        live, burn, None if row.live_state is None else ServiceCondition(row.live_state)
    )


async def select_delegations(
    tx: Tx, monitors: Collection[MonitorKey], now: Instant
) -> dict[MonitorKey, Delegation]:
    """Returns the delegation of every given monitor. A monitor without an owner pages itself."""
    found = dict.fromkeys(monitors, Delegation(NOBODYS, NOBODYS))
    of = await select_owning(tx, monitors, now)
    services = sorted({service for owning in of.values() for service in owning})
    if not services:
        return found
    owners = await select_owners(tx, await select_alertings(tx, services), now)
    rows = await select_services(tx, services)
    left = await _select_left(tx, of)
    for monitor, owning in of.items():
        mine = [owners[service] for service in owning if service in owners]
        if mine:
            found[monitor] = _delegation(mine, rows, left.get(monitor), now)
    return found


async def _select_left(
    tx: Tx, monitors: Collection[MonitorKey]
) -> dict[MonitorKey, tuple[str | None, Instant]]:
    rows = await tx.rows(_LEFT, **key_arrays(monitors, "monitors"))
    return {
        MonitorKey((org, monitor)): (failed_open, since)
        for org, monitor, failed_open, since in rows
    }


def _delegation(
    owners: Sequence[Owner],
    rows: Mapping[ServiceKey, ServiceRow],
    left: tuple[str | None, Instant] | None,
    now: Instant,
) -> Delegation:
    failed_open, since = left if left is not None else (None, now)
    burn = _shown(decide_burn_paging(owners, now, is_steady=True), rows)
    if failed_open is not None:
        # The monitor has already paged, so the present state of the services is irrelevant.
        spoken = SignalDelegation(False, (), SignalReason(failed_open))
        return Delegation(spoken, burn)
    return Delegation(_shown(decide_paging(owners, since, now, is_steady=True), rows), burn)


def _shown(
    verdict: Delegated | FailOpen, rows: Mapping[ServiceKey, ServiceRow]
) -> SignalDelegation:
    match verdict:
        case Delegated(services):
            found = [rows[key] for key in services if key in rows]
            names = [OwnerName(row.uid, row.slug, row.name) for row in found]
            return SignalDelegation(True, names, None)
        case FailOpen(reason):
            return SignalDelegation(False, (), reason)


def _live_state(
    row: AlertingRow, owner: Owner, left_at: Instant | None, now: Instant
) -> SignalState:
    known_at = left_at
    if known_at is None and row.live_evaluated_at is not None:
        # Assume that a member went down just before the last evaluation.
        known_at = Instant(row.live_evaluated_at - 1)
    reason = _owned(row) or why_not(owner, now, known_at, is_steady=True)
    return SignalState(
        reason is None, reason, row.live_evaluated_at, row.live_lease_until, row.live_error
    )


def _burn_state(row: AlertingRow, owner: Owner, now: Instant) -> SignalState:
    reason = _owned(row) or why_not_burn(owner, now, is_steady=True)
    return SignalState(
        reason is None, reason, row.burn_evaluated_at, row.burn_lease_until, row.burn_error
    )


def _owned(row: AlertingRow) -> SignalReason | None:
    return None if row.owns_paging else SignalReason.NO_OWNING_SERVICE
