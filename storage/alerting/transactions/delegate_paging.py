"""Delegation of outages to the services that their monitors are members of.

The alerting rows are locked, as by the service evaluator, so that either the monitor or the service
pages. If another transaction has locked a service, its members wait until the next pass.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ...core.instant import SECOND, Instant
from ...core.key import MonitorKey, ServiceKey
from ...engine.pools import Tx
from ...incidents.transactions.page_service_route import PagingRoute
from ...services.rows import ServiceRow
from ...services.tables.services import select_services
from ..queries.paging_owners import select_owners, select_owning
from ..rows import AlertingRow
from ..rules.paging_delegation import (
    Delegated,
    FailOpen,
    Owner,
    SignalReason,
    decide_paging,
    why_unheard,
)
from ..rules.suppression import Suppression, SuppressionReason
from ..tables import outages, service_alerting
from ..tables.outages import OutageRow

# Recheck interval of a service's page without a confirmed delivery.
UNHEARD_LOOK_US = 30 * SECOND


@dataclass(frozen=True, slots=True)
class OwnerIndex:
    """Owning services per monitor. Invariant: every service of `alertings` is locked.

    `alertings` also contains services that announced an outage and no longer own paging.
    """

    of: Mapping[MonitorKey, Sequence[ServiceKey]]
    alertings: Mapping[ServiceKey, AlertingRow]


@dataclass(frozen=True, slots=True)
class FailedOpen:
    """The monitor pages in place of an owning service. `route` is that service's route."""

    reason: SignalReason
    route: PagingRoute


@dataclass(frozen=True, slots=True)
class DelegationResult:
    """Decision about an outage. The monitor pages if neither `hold` nor `is_told` is set.

    With `hold`, the services page. `next_check_at` is the next check of the service's delivery.
    """

    hold: Suppression | None = None
    failed_open: FailedOpen | None = None
    is_told: bool = False
    next_check_at: Instant | None = None


SPEAK = DelegationResult()


async def lock_owning_services(
    tx: Tx, keys: Sequence[MonitorKey]
) -> tuple[OwnerIndex, list[MonitorKey]]:
    """Locks the owning and announcing services. Returns them and monitors with a busy service."""
    of = await select_owning(tx, keys, tx.now)
    told = await outages.select_notifiers(tx, keys)
    services = {service for found in of.values() for service in found} | {*told.values()}
    if not services:
        return OwnerIndex({}, {}), []
    alertings = await service_alerting.lock_alertings(tx, services, skip_locked=True)
    busy = {key for key, found in of.items() if any(s not in alertings for s in found)}
    busy |= {key for key, service in told.items() if service not in alertings}
    owned = {key for key, service in alertings.items() if service.owns_paging}
    owning = {key: [s for s in found if s in owned] for key, found in of.items()}
    return OwnerIndex(owning, alertings), sorted(busy)


async def decide_delegation(
    tx: Tx, owning: OwnerIndex, rows: Collection[OutageRow], *, is_steady: bool
) -> dict[MonitorKey, DelegationResult]:
    """Decides about outages that are ready to announce or were announced by a service."""
    wanted = {s for row in rows for s in owning.of.get(MonitorKey((row.org, row.monitor)), ())}
    tellers = {ServiceKey((row.org, row.service)) for row in rows if row.service is not None}
    wanted |= tellers & owning.alertings.keys()
    owners = await select_owners(tx, {key: owning.alertings[key] for key in wanted}, tx.now)
    services = await select_services(tx, sorted(wanted)) if wanted else {}
    found: dict[MonitorKey, DelegationResult] = {}
    for row in rows:
        key = MonitorKey((row.org, row.monitor))
        mine = [owners[service] for service in owning.of.get(key, ())]
        if row.service is not None:
            teller = owners.get(ServiceKey((row.org, row.service)))
            found[key] = _of_notified(teller, mine, services, tx.now)
        elif not mine:
            found[key] = SPEAK
        else:
            found[key] = _of_untold(row, mine, services, tx.now, is_steady=is_steady)
    return found


def _of_notified(
    teller: Owner | None,
    owners: Sequence[Owner],
    services: Mapping[ServiceKey, ServiceRow],
    now: Instant,
) -> DelegationResult:
    """Decides about an outage that a service announced.

    The page covers the outage while it is delivered or can still be, even if the service no longer
    owns the monitor. The delivered page of another owning service covers it as well.
    """
    again = DelegationResult(is_told=True, next_check_at=Instant(now + UNHEARD_LOOK_US))
    latch = None if teller is None else teller.latch
    if teller is None or latch is None:
        # The service announced the outage after the owners were read.
        return again
    if latch.heard:
        return DelegationResult(is_told=True)
    reason = why_unheard(latch, now)
    if reason is None or any(_has_notified(owner) for owner in owners):
        return again
    return DelegationResult(failed_open=FailedOpen(reason, _route(services[teller.key])))


def _has_notified(owner: Owner) -> bool:
    return owner.latch is not None and owner.latch.announced and owner.latch.heard


def _of_untold(
    row: OutageRow,
    owners: Sequence[Owner],
    services: Mapping[ServiceKey, ServiceRow],
    now: Instant,
    *,
    is_steady: bool,
) -> DelegationResult:
    hold = row.hold
    since = hold.since if hold is not None and hold.by is SuppressionReason.DELEGATED else None
    known_at = now if since is None else since
    match decide_paging(owners, known_at, now, is_steady=is_steady):
        case Delegated():
            return DelegationResult(hold=Suppression(SuppressionReason.DELEGATED, known_at))
        case FailOpen(reason, service) if service is not None:
            return DelegationResult(failed_open=FailedOpen(reason, _route(services[service])))
        case _:
            return SPEAK


def _route(service: ServiceRow) -> PagingRoute:
    return PagingRoute(service.escalation_policy, service.oncall_schedule)
