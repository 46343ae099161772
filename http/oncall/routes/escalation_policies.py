"""Routes of a project's escalation policies. PUT replaces the whole policy."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import to_text
from ....storage.engine.pools import Tx
from ....storage.oncall.queries.escalation_policies import (
    select_default_policy_uid,
    select_policies_of,
    select_targets,
)
from ....storage.oncall.rows import EscalationPolicyRow
from ....storage.oncall.rules.escalation import TargetKind
from ....storage.oncall.transactions.edit_escalation_policies import (
    EDIT,
    PolicyDraft,
    StepDraft,
    create_policy,
    delete_policy,
    put_default_policy,
    replace_policy,
)
from ...wire.route import Request, Route
from ...wire.schema import known
from ...wire.scope_keys import org_of, project_of
from ..schemas import (
    CreateEscalationPolicy,
    DefaultEscalationPolicy,
    EscalationPolicy,
    EscalationStep,
    EscalationTarget,
    PutDefaultEscalationPolicy,
)

_ALL: Final = "/api/v1/projects/{projectID}/escalation-policies"
_DEFAULT: Final = "/api/v1/projects/{projectID}/default-escalation-policy"
_ONE: Final = "/api/v1/escalation-policies/{policyID}"


async def policies_json(
    tx: Tx, org: int, rows: Sequence[EscalationPolicyRow]
) -> list[EscalationPolicy]:
    steps = {
        row.id: [EscalationStep(after_seconds=s, targets=[]) for s in row.after_seconds]
        for row in rows
    }
    for target in await select_targets(tx, org, list(steps)):
        steps[target.policy][target.step - 1].targets.append(
            EscalationTarget(type=target.kind.value, id=str(target.uid))
        )
    return [
        EscalationPolicy(
            id=row.uid,
            project_id=row.project_uid,
            name=row.name,
            repeat_last=row.repeat_last,
            ack_timeout_seconds=row.ack_timeout_seconds,
            steps=steps[row.id],
            managed_by=known(row.managed_by or None),
            created_at=to_text(row.created_at),
            updated_at=to_text(row.updated_at),
        )
        for row in rows
    ]


def _draft(body: CreateEscalationPolicy) -> PolicyDraft:
    steps = [
        StepDraft(step.after_seconds, [(TargetKind(t.type), t.id) for t in step.targets])
        for step in body.steps
    ]
    return PolicyDraft(body.name, steps, body.repeat_last, body.ack_timeout_seconds)


async def list_policies(ask: Request) -> list[EscalationPolicy]:
    async with ask.context.pool.transaction("list_policies", read_only=True) as tx:
        rows = await select_policies_of(tx, org_of(ask), project_of(ask))
        return await policies_json(tx, org_of(ask), rows)


async def create(ask: Request) -> EscalationPolicy:
    async with ask.context.pool.transaction("create_policy") as tx:
        row = await create_policy(tx, ask.who, ask.ids["projectID"], _draft(ask.body))
        (shape,) = await policies_json(tx, row.org, [row])
    return shape


async def replace(ask: Request) -> EscalationPolicy:
    async with ask.context.pool.transaction("replace_policy") as tx:
        row = await replace_policy(tx, ask.who, ask.ids["policyID"], _draft(ask.body))
        (shape,) = await policies_json(tx, row.org, [row])
    return shape


async def delete(ask: Request) -> None:
    async with ask.context.pool.transaction("delete_policy") as tx:
        await delete_policy(tx, ask.who, ask.ids["policyID"])


async def read_default(ask: Request) -> DefaultEscalationPolicy:
    async with ask.context.pool.transaction("read_default_policy", read_only=True) as tx:
        uid = await select_default_policy_uid(tx, org_of(ask), project_of(ask))
    return DefaultEscalationPolicy(escalation_policy_id=uid)


async def put_default(ask: Request) -> DefaultEscalationPolicy:
    async with ask.context.pool.transaction("put_default_policy") as tx:
        wanted = ask.body.escalation_policy_id
        await put_default_policy(tx, ask.who, ask.ids["projectID"], wanted)
    return DefaultEscalationPolicy(escalation_policy_id=wanted)


_VIEW: Final = Permission(Need.VIEWER)
_PROJECT: Final = ("project", "projectID")
_POLICY: Final = ("policy", "policyID")

_all: Final = partial(Route, path=_ALL, scope=_PROJECT, tag="escalation_policies")
_default: Final = partial(Route, path=_DEFAULT, scope=_PROJECT, tag="escalation_policies")
_one: Final = partial(Route, path=_ONE, scope=_POLICY, tag="escalation_policies")

ROUTES: Final = (
    _all(
        method="GET",
        action=_VIEW,
        handler=list_policies,
        summary="The project's escalation policies.",
        answer=list[EscalationPolicy],
    ),
    _all(
        method="POST",
        action=EDIT,
        handler=create,
        summary="Create an escalation policy.",
        body=CreateEscalationPolicy,
        answer=EscalationPolicy,
        status=201,
        also=(409,),
    ),
    _default(
        method="GET",
        action=_VIEW,
        handler=read_default,
        summary="The escalation policy of incidents about Leadline.",
        answer=DefaultEscalationPolicy,
    ),
    _default(
        method="PUT",
        action=EDIT,
        handler=put_default,
        summary="Set the escalation policy of incidents about Leadline.",
        body=PutDefaultEscalationPolicy,
        answer=DefaultEscalationPolicy,
        also=(409,),
    ),
    _one(
        method="PUT",
        action=EDIT,
        handler=replace,
        summary="Replace an escalation policy; open incidents continue with the new one.",
        body=CreateEscalationPolicy,
        answer=EscalationPolicy,
        also=(409,),
    ),
    _one(
        method="DELETE",
        action=EDIT,
        handler=delete,
        summary="Delete an escalation policy that no monitor or service uses.",
        status=204,
        also=(409,),
    ),
)
