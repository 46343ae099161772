"""Routes of services: services, declarations, dependencies, objectives and alerting."""

from typing import Final

from ....storage.accounts.rules.access import Need, Permission
from ....storage.alerting.queries.service_alerting import select_alerting
from ....storage.core.availability import OBJECTIVE_SCALE
from ....storage.core.instant import to_text
from ....storage.engine.pools import Tx
from ....storage.monitors.queries.monitors import select_superseded
from ....storage.objectives.queries.service_targets import select_service_targets
from ....storage.objectives.transactions.set_service_objective import put_target
from ....storage.retirement.transactions.delete_service import delete_service
from ....storage.services.queries import service_revisions
from ....storage.services.queries.service_list import select_declared
from ....storage.services.queries.service_reports import select_repairing, select_repairing_counts
from ....storage.services.queries.services import select_services_of_project
from ....storage.services.rows import ServiceRow
from ....storage.services.rules.service_health import Policies
from ....storage.services.rules.service_policy import ServicePolicies, read_policies
from ....storage.services.rules.service_report import WINDOWS
from ....storage.services.transactions.create_service import ServiceDraft, create_service
from ....storage.services.transactions.declare_service import DeclarationDraft, declare
from ....storage.services.transactions.edit_dependencies import put_dependencies
from ....storage.services.transactions.lock_service import EDIT
from ....storage.services.transactions.set_paging_target import put_escalation_policy
from ....storage.services.transactions.set_runbook import put_runbook
from ...wire.errors import Problem
from ...wire.route import Request, Route
from ...wire.schema import given, instant_text, known
from ...wire.scope_keys import org_of, project_of
from ...wire.time_params import instant_given
from ..schemas.services import (
    CreateServiceRequest,
    Declared,
    EscalationOwner,
    EvaluationEpoch,
    PutDeclarationRequest,
    PutServiceDependenciesRequest,
    RepairRange,
    Service,
    ServiceDeclaration,
    ServiceDetail,
    ServiceGraph,
    ServiceMaterialization,
    ServiceRunbook,
    ServiceSLATarget,
    ServiceSummary,
    ServiceTarget,
    SetServiceSLATargetRequest,
    Superseded,
)
from .service_json import (
    alerting_json,
    declaration_json,
    epoch_json,
    graph_json,
    sealed_through,
    service_json,
    service_named,
    state_json,
)

ALL: Final = "/api/v1/projects/{projectID}/services"
ONE: Final = f"{ALL}/{{serviceID}}"


async def list_services(ask: Request) -> list[ServiceSummary]:
    org, project = org_of(ask), project_of(ask)
    async with ask.context.pool.transaction("list_services", read_only=True) as tx:
        rows = await select_services_of_project(tx, org, project)
        declared = await select_declared(tx, org, project)
        repairing = await select_repairing_counts(tx, org, [row.id for row in rows])
    return [
        ServiceSummary(
            service=service_json(row),
            revision=(said := declared[row.key]).revision,
            effective_at=instant_text(said.effective_at),
            context_members=said.monitors,
            sli_members=said.sli,
            epoch_seq=said.epoch,
            sealed_through=instant_text(sealed_through(row)),
            repairing_count=repairing.get(row.id, 0),
        )
        for row in rows
    ]


async def create(ask: Request) -> Service:
    body: CreateServiceRequest = ask.body
    slug = given(body.slug)
    name = given(body.name) or slug
    if name is None:
        raise Problem("slug: is required")
    draft = ServiceDraft(
        name=name,
        slug=slug,
        description=body.description,
        escalation_policy=body.escalation_policy_id,
        oncall_schedule=body.oncall_schedule_id,
        runbook_url=body.runbook_url,
        depends_on=body.depends_on,
    )
    async with ask.context.pool.transaction("create_service") as tx:
        return service_json(await create_service(tx, ask.who, ask.ids["projectID"], draft))


async def read(ask: Request) -> ServiceDetail:
    async with ask.context.pool.transaction("read_service", read_only=True) as tx:
        row = await service_named(ask, tx)
        declaration, epoch = await _declared(tx, row)
        alerting = await select_alerting(tx, row.key)
        targets = (await select_service_targets(tx, [row.key]))[row.key]
        return ServiceDetail(
            service=service_json(row),
            declaration=declaration,
            epoch=epoch,
            materialization=await _materialization(tx, row),
            reliability=None,
            alerting_state=await state_json(tx, row.key),
            alerting=known(None if alerting is None else alerting_json(alerting)),
            dependencies=await graph_json(tx, row),
            supersedes=[
                Superseded(
                    id=each.uid,
                    name=each.name,
                    slug=each.slug,
                    type=each.type,
                    enabled=each.enabled,
                    retired_at=instant_text(each.retired_at),
                )
                for each in await select_superseded(tx, *row.key)
            ],
            sla_targets=[
                ServiceSLATarget(
                    window=window,  # type: ignore[arg-type]
                    objective=target.objective / OBJECTIVE_SCALE,
                    updated_at=to_text(target.updated_at),
                )
                for window, target in sorted(targets.items(), key=lambda each: WINDOWS[each[0]])
            ],
        )


async def _declared(
    tx: Tx, row: ServiceRow
) -> tuple[ServiceDeclaration | None, EvaluationEpoch | None]:
    """Returns the newest revision, which can take effect in the future, and the newest epoch."""
    revisions = (await service_revisions.select_revisions(tx, [row.key]))[row.key]
    if not revisions:
        return None, None
    noted = await service_revisions.select_noted(tx, row.key)
    epochs = (await service_revisions.select_epochs(tx, [row.key]))[row.key]
    newest = max(epochs, key=lambda one: one.effective_at, default=None)
    declaration = await declaration_json(tx, row, revisions[-1], noted[-1])
    return declaration, None if newest is None else epoch_json(newest)


async def _materialization(tx: Tx, row: ServiceRow) -> ServiceMaterialization:
    return ServiceMaterialization(
        materialization_start=instant_text(row.materialization_start),
        sealed_through=instant_text(sealed_through(row)),
        repairing=[
            RepairRange(
                from_=to_text(each.from_),
                to=to_text(each.to),
                reason=each.reason,
                state=each.state,
                cursor=instant_text(each.cursor),
                attempts=each.attempts,
                last_error=known(each.last_error),
            )
            for each in await select_repairing(tx, row)
        ],
    )


async def delete(ask: Request) -> None:
    async with ask.context.pool.transaction("delete_service") as tx:
        await delete_service(tx, ask.who, ask.ids["projectID"], ask.ids["serviceID"])


async def write_declaration(ask: Request) -> Declared:
    body: PutDeclarationRequest = ask.body
    backfill = given(body.backfill_from)
    draft = DeclarationDraft(
        expected_revision=body.expected_revision,
        monitors=body.monitors,
        sli=body.sli,
        policies=_policies(body.policies),
        backfill_from=None if backfill is None else instant_given("backfill_from", backfill),
    )
    async with ask.context.pool.transaction("declare_service") as tx:
        row = await declare(
            tx,
            ask.who,
            ask.ids["projectID"],
            ask.ids["serviceID"],
            draft,
            ask.context.options.heartbeat_days,
        )
        declaration, epoch = await _declared(tx, row)
    assert declaration is not None, "it was just declared"
    assert epoch is not None, "an epoch begins with it"
    return Declared(declaration=declaration, epoch=epoch)


def _policies(given_: ServicePolicies) -> Policies:
    policies = read_policies(given_)
    if policies is None:
        raise Problem("policies.freshness.active_floor: must be whole microseconds")
    return policies


async def read_dependencies(ask: Request) -> ServiceGraph:
    async with ask.context.pool.transaction("read_dependencies", read_only=True) as tx:
        return await graph_json(tx, await service_named(ask, tx))


async def write_dependencies(ask: Request) -> ServiceGraph:
    body: PutServiceDependenciesRequest = ask.body
    async with ask.context.pool.transaction("put_dependencies") as tx:
        row = await put_dependencies(
            tx,
            ask.who,
            ask.ids["projectID"],
            ask.ids["serviceID"],
            body.depends_on,
            body.graph_generation,
        )
        return await graph_json(tx, row)


async def write_target(ask: Request) -> ServiceTarget:
    body: SetServiceSLATargetRequest = ask.body
    async with ask.context.pool.transaction("put_service_target") as tx:
        row = await put_target(
            tx,
            ask.who,
            ask.ids["projectID"],
            ask.ids["serviceID"],
            body.window,
            body.objective,
        )
    return ServiceTarget(window=body.window, objective=row.objective / OBJECTIVE_SCALE)


async def write_escalation_policy(ask: Request) -> EscalationOwner:
    async with ask.context.pool.transaction("put_service_policy") as tx:
        row = await put_escalation_policy(
            tx,
            ask.who,
            ask.ids["projectID"],
            ask.ids["serviceID"],
            ask.body.escalation_policy_id,
        )
    uid = row.escalation_policy_uid
    return EscalationOwner(escalation_policy_id="" if uid is None else str(uid))


async def write_runbook(ask: Request) -> ServiceRunbook:
    async with ask.context.pool.transaction("put_service_runbook") as tx:
        row = await put_runbook(
            tx, ask.who, ask.ids["projectID"], ask.ids["serviceID"], ask.body.runbook_url
        )
    return ServiceRunbook(runbook_url=row.runbook_url)


VIEW: Final = Permission(Need.VIEWER)
_PROJECT: Final = ("project", "projectID")
SERVICE: Final = ("service", "serviceID")

ROUTES: Final = (
    Route(
        method="GET",
        path=ALL,
        action=VIEW,
        scope=_PROJECT,
        handler=list_services,
        summary="The project's services, by slug.",
        tag="services",
        answer=list[ServiceSummary],
    ),
    Route(
        method="POST",
        path=ALL,
        action=EDIT,
        scope=_PROJECT,
        handler=create,
        summary="Create a service without a declaration.",
        tag="services",
        body=CreateServiceRequest,
        answer=Service,
        status=201,
        also=(409,),
    ),
    Route(
        method="GET",
        path=ONE,
        action=VIEW,
        scope=SERVICE,
        handler=read,
        summary="Read a service with its declaration; /reliability has the figures.",
        tag="services",
        answer=ServiceDetail,
    ),
    Route(
        method="DELETE",
        path=ONE,
        action=EDIT,
        scope=SERVICE,
        handler=delete,
        summary="Delete a service with its sealed data.",
        tag="services",
        status=204,
        also=(409,),
    ),
    Route(
        method="PUT",
        path=f"{ONE}/declaration",
        action=EDIT,
        scope=SERVICE,
        handler=write_declaration,
        summary="Declare the members and rules of a service, from the next minute on.",
        tag="services",
        body=PutDeclarationRequest,
        answer=Declared,
        also=(409, 422),
    ),
    Route(
        method="GET",
        path=f"{ONE}/dependencies",
        action=VIEW,
        scope=SERVICE,
        handler=read_dependencies,
        summary="Read the dependencies and dependents of a service.",
        tag="services",
        answer=ServiceGraph,
    ),
    Route(
        method="PUT",
        path=f"{ONE}/dependencies",
        action=EDIT,
        scope=SERVICE,
        handler=write_dependencies,
        summary="Replace the dependencies of a service.",
        tag="services",
        body=PutServiceDependenciesRequest,
        answer=ServiceGraph,
        also=(409,),
    ),
    Route(
        method="PUT",
        path=f"{ONE}/sla-target",
        action=EDIT,
        scope=SERVICE,
        handler=write_target,
        summary="Set the service's objective for a window.",
        tag="services",
        body=SetServiceSLATargetRequest,
        answer=ServiceTarget,
        also=(409,),
    ),
    Route(
        method="PUT",
        path=f"{ONE}/escalation-policy",
        action=EDIT,
        scope=SERVICE,
        handler=write_escalation_policy,
        summary="Set the escalation policy of the service's incidents.",
        tag="services",
        body=EscalationOwner,
        answer=EscalationOwner,
        also=(409,),
    ),
    Route(
        method="PUT",
        path=f"{ONE}/runbook",
        action=EDIT,
        scope=SERVICE,
        handler=write_runbook,
        summary="Set the runbook of the service.",
        tag="services",
        body=ServiceRunbook,
        answer=ServiceRunbook,
        also=(409,),
    ),
)
