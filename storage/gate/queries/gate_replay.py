"""Past of a service as input of a policy replay."""

from collections.abc import Sequence
from typing import Final

from ...alerting.queries.alerting_state import select_alerting_state
from ...alerting.rules.paging_delegation import SignalReason
from ...core.instant import LATEST, MINUTE, Instant
from ...core.sli import Split
from ...core.time_span import TimeSpan, merged, without
from ...engine.pools import Tx
from ...objectives.queries.burn_rules import select_rules_of_services
from ...objectives.queries.service_targets import select_service_targets
from ...services.queries.service_revisions import select_revisions
from ...services.rows import ServiceRow
from ...services.rules.epoch import governed
from ...services.rules.service_report import WINDOWS
from ..rows import GatePolicyRow
from ..rules.gate_policy import Document, PolicySource
from ..rules.gate_replay import MinuteRun, ObjectiveSpan, ServicePast
from ..tables.gate_policies import select_policies_since

# The longest window before the first replayed instant.
_BACK_US: Final = max(WINDOWS.values())
# A run starts less than a day before its last minute.
_RUNS = """
select from_at, until_at, health_unknown_us, good_us, bad_us, unknown_us, excluded_us
from service_minutes
where org = %(org)s and service = %(service)s
  and from_at > at(%(from_at)s) - interval '1 day' and from_at < at(%(until_at)s)
  and until_at > at(%(from_at)s)
order by from_at
"""
_INCIDENTS = """
select created_at, resolved_at from incidents
where org = %(org)s and service = %(service)s and created_at < at(%(until_at)s)
  and (status <> 'resolved' or resolved_at > at(%(from_at)s))
order by created_at, id
"""
# Reasons for which a missing incident does not show that the service was well.
_DEAF: Final = frozenset(
    {
        SignalReason.NO_OWNING_SERVICE,
        SignalReason.POLICY_PAGES_NOTHING,
        SignalReason.NO_ENABLED_TARGET,
        SignalReason.UNROUTABLE,
    }
)


async def select_past(tx: Tx, service: ServiceRow, within: TimeSpan) -> ServicePast:
    key = service.key
    revisions = governed((await select_revisions(tx, [key]))[key])
    live = (await select_alerting_state(tx, key, tx.now)).live
    rows = await tx.rows(
        _INCIDENTS, org=service.org, service=service.id, from_at=within.from_, until_at=within.until
    )
    return ServicePast(
        runs=await _select_runs(tx, service, within),
        start=service.materialization_start,
        governed_from=revisions[0][0].from_ if revisions else None,
        aims=await _select_aims(tx, service),
        incidents=[TimeSpan(opened, LATEST if over is None else over) for opened, over in rows],
        deaf=live.reason if live.reason in _DEAF else None,
    )


async def select_policies_in_force(
    tx: Tx, service: ServiceRow, from_: Instant
) -> list[tuple[TimeSpan, Document]]:
    """Returns the spans in which each policy governed, in order.

    The service's policy takes precedence over the project's.
    """
    rows = await select_policies_since(tx, service.org, service.project, service.id, from_)
    own = [row for row in rows if row.source is PolicySource.SERVICE]
    taken = merged(_span(row) for row in own)
    found = [(_span(row), row.document) for row in own]
    for row in rows:
        if row.source is PolicySource.PROJECT:
            found += [(span, row.document) for span in without([_span(row)], taken)]
    return sorted(found, key=lambda each: each[0])


def _span(row: GatePolicyRow) -> TimeSpan:
    return TimeSpan(row.began_at, row.until)


async def _select_runs(tx: Tx, service: ServiceRow, within: TimeSpan) -> list[MinuteRun]:
    from_ = Instant(within.from_ - _BACK_US)
    rows = await tx.rows(
        _RUNS, org=service.org, service=service.id, from_at=from_, until_at=within.until
    )
    return [
        MinuteRun(TimeSpan(began, until), Split(*us), is_seen=unseen_us < MINUTE)
        for began, until, unseen_us, *us in rows
    ]


async def _select_aims(tx: Tx, service: ServiceRow) -> Sequence[ObjectiveSpan]:
    targets = (await select_service_targets(tx, [service.key]))[service.key]
    rules = (await select_rules_of_services(tx, [service.key])).get(service.key, {})
    return [
        ObjectiveSpan(
            window,
            targets[window].objective,
            targets[window].burn_enabled,
            [row.rule for row in rules.get(window, ())],
        )
        for window in WINDOWS
        if window in targets
    ]
