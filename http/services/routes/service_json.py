"""JSON of services: detail, list item, graph and current health."""

from collections.abc import Collection
from typing import Final, Literal

from ....storage.alerting.queries.alerting_state import SignalState, select_alerting_state
from ....storage.alerting.queries.service_alerting import select_alertings
from ....storage.alerting.rows import LEASE_SECONDS, AlertingRow
from ....storage.alerting.rules.alert_episode import ServiceCondition
from ....storage.core.instant import SECOND, Instant, to_text
from ....storage.core.key import ServiceKey
from ....storage.engine.pools import Tx
from ....storage.services.queries.service_dependencies import select_edges, select_generation
from ....storage.services.queries.service_health import HealthNow, select_health_now
from ....storage.services.queries.service_list import ServiceMember, select_members
from ....storage.services.queries.services import select_service, select_services
from ....storage.services.rows import EpochRow, RevisionAuthor, ServiceRow
from ....storage.services.rules.epoch import Revision
from ....storage.services.rules.service_dependency import turned
from ....storage.services.rules.service_health import Health
from ....storage.services.rules.service_policy import written_policies
from ...wire.errors import Problem
from ...wire.route import Request
from ...wire.schema import instant_text, known
from ..schemas.services import (
    EvaluationEpoch,
    Service,
    ServiceAlerting,
    ServiceAlertingState,
    ServiceDeclaration,
    ServiceGraph,
    ServiceGraphEdge,
    ServiceHealthNow,
    ServiceSignalState,
)
from .support_hours import support_json

HealthWord = Literal["healthy", "degraded", "down", "unknown"]
_WORDS: Final[dict[Health | None, HealthWord]] = {
    Health.HEALTHY: "healthy",
    Health.DEGRADED: "degraded",
    Health.DOWN: "down",
}


async def service_named(ask: Request, tx: Tx) -> ServiceRow:
    """Returns the service of the path. Raises Problem `not_found` if its project differs."""
    row = await select_service(tx, ask.ids["serviceID"])
    if row is None or row.project_uid != ask.ids["projectID"]:
        raise Problem("not_found")
    return row


def service_json(row: ServiceRow) -> Service:
    return Service(
        id=row.uid,
        slug=row.slug,
        name=row.name,
        description=row.description,
        escalation_policy_id=known(row.escalation_policy_uid),
        oncall_schedule_id=known(row.oncall_schedule_uid),
        runbook_url=known(row.runbook_url or None),
        support_hours=known(support_json(row) if row.support_hours else None),
        created_at=to_text(row.created_at),
        updated_at=to_text(row.updated_at),
        managed_by=known(row.managed_by or None),
    )


def sealed_through(row: ServiceRow) -> Instant | None:
    """Returns the seal, None if no time was sealed."""
    start, sealed = row.materialization_start, row.sealed_through
    return sealed if start is not None and sealed is not None and sealed > start else None


async def declaration_json(
    tx: Tx, row: ServiceRow, revision: Revision, noted: RevisionAuthor
) -> ServiceDeclaration:
    members = await select_members(tx, row.org, revision.monitors)
    return ServiceDeclaration(
        revision=revision.revision,
        effective_at=to_text(revision.effective_at),
        created_at=to_text(noted.created_at),
        created_by=known(str(noted.author) if noted.author else None),
        monitors=[members[key].uid for key in revision.monitors if key in members],
        sli=[members[key].uid for key in revision.sli if key in members],
        policies=written_policies(revision.policies),
    )


def epoch_json(row: EpochRow) -> EvaluationEpoch:
    return EvaluationEpoch(
        id=row.uid,
        seq=row.seq,
        effective_at=to_text(row.effective_at),
        snapshot_hash=row.snapshot_hash,
        members=row.members,
    )


async def graph_json(tx: Tx, row: ServiceRow) -> ServiceGraph:
    edges = await select_edges(tx, row.org, row.project)
    upstreams = edges.get(row.id, [])
    dependants = turned(edges).get(row.id, [])
    found = await select_services(
        tx, [ServiceKey((row.org, key)) for key in {*upstreams, *dependants}]
    )
    health = await healths_of(tx, found)

    def shapes(keys: Collection[int]) -> list[ServiceGraphEdge]:
        rows = sorted((found[ServiceKey((row.org, key))] for key in keys), key=lambda one: one.slug)
        return [
            ServiceGraphEdge(
                id=one.uid,
                slug=one.slug,
                name=one.name,
                managed_by=known(one.managed_by or None),
                health=health[one.key],
            )
            for one in rows
        ]

    return ServiceGraph(
        graph_generation=await select_generation(tx, row.org, row.project),
        depends_on=shapes(upstreams),
        depended_on_by=shapes(dependants),
    )


async def healths_of(
    tx: Tx, services: Collection[ServiceKey]
) -> dict[ServiceKey, ServiceHealthNow]:
    keys = sorted(services)
    found = await select_health_now(tx, keys)
    alertings = await select_alertings(tx, keys)
    failing = {org: set[int]() for org, _ in keys}
    for (org, _), health in found.items():
        failing[org].update(health.failing)
    members = {org: await select_members(tx, org, sorted(ids)) for org, ids in failing.items()}
    return {
        key: _health_json(health, alertings.get(key), members[key[0]])
        for key, health in found.items()
    }


def _health_json(
    health: HealthNow, alerting: AlertingRow | None, members: dict[int, ServiceMember]
) -> ServiceHealthNow:
    failing = [str(members[key].uid) for key in health.failing if key in members]
    diagnostics: Literal["ok", "failing", "unknown"] = "failing"
    if not failing:
        diagnostics = "unknown" if health.unseen or not health.members else "ok"
    return ServiceHealthNow(
        unstable=_is_unstable(health, alerting),
        as_of=to_text(health.as_of),
        sli=_WORDS.get(health.state.health if health.state else None, "unknown"),
        diagnostics=diagnostics,
        failing_monitors=known(failing or None),
    )


def _is_unstable(health: HealthNow, alerting: AlertingRow | None) -> bool:
    """Returns whether the last evaluation differs from the current health or is unconfirmed."""
    if alerting is None or alerting.live_evaluated_at is None:
        return False
    if health.as_of - alerting.live_evaluated_at > LEASE_SECONDS * SECOND:
        return False
    state = health.state
    live = ServiceCondition.UNKNOWN
    if state is not None:
        live = (
            ServiceCondition.EXCLUDED
            if state.health is None
            else ServiceCondition(state.health.value)
        )
    return live != alerting.live_state or 0 < alerting.live_streak < alerting.confirm_evaluations


def alerting_json(row: AlertingRow) -> ServiceAlerting:
    return ServiceAlerting(
        owns_paging=row.owns_paging,
        page_on=row.page_on,  # type: ignore[arg-type]
        page_on_unknown=row.page_on_unknown,
        confirm_evaluations=row.confirm_evaluations,
        renotify_seconds=row.renotify_seconds,
    )


async def state_json(tx: Tx, key: ServiceKey) -> ServiceAlertingState:
    state = await select_alerting_state(tx, key, tx.now)
    return ServiceAlertingState(live=_signal_json(state.live), burn=_signal_json(state.burn))


def _signal_json(signal: SignalState) -> ServiceSignalState:
    return ServiceSignalState(
        armed=signal.armed,
        reason=known(signal.reason),
        evaluated_at=instant_text(signal.evaluated_at),
        lease_until=instant_text(signal.lease_until),
        last_error=known(signal.last_error),
    )
