"""Routes of gate overrides: create, revoke and list."""

from typing import Final

from ....storage.gate.queries.gate_overrides import (
    select_override,
    select_overrides,
    select_standing,
)
from ....storage.gate.queries.gate_policies import select_governing
from ....storage.gate.transactions.edit_gate_overrides import (
    ADMIN,
    create_override,
    revoke_override,
    status_of,
)
from ...services.routes.service_json import service_named
from ...wire.errors import Problem
from ...wire.route import Request, Route
from ...wire.time_params import instant_given
from ..schemas import GateOverride, GateOverrideCreate, GateOverrideRecord, GateOverrides
from .gate import OF_SERVICE, READ, SERVICE
from .gate_json import override_json, record_json


async def read_active(ask: Request) -> GateOverride:
    async with ask.context.pool.transaction("read_gate_override", read_only=True) as tx:
        service = await service_named(ask, tx)
        policy = await select_governing(tx, service.org, service.project, service.id)
        found = None
        if policy is not None:
            found = await select_standing(tx, service.key, policy.source, policy.revision)
    if found is None:
        raise Problem("none_active")
    return override_json(found)


async def create(ask: Request) -> GateOverride:
    body: GateOverrideCreate = ask.body
    expires_at = instant_given("expires_at", body.expires_at)
    async with ask.context.pool.transaction("create_gate_override") as tx:
        return override_json(
            await create_override(
                tx,
                ask.who,
                ask.ids["projectID"],
                ask.ids["serviceID"],
                body.policy_revision,
                body.reason,
                expires_at,
            )
        )


async def list_all(ask: Request) -> GateOverrides:
    async with ask.context.pool.transaction("list_gate_overrides", read_only=True) as tx:
        service = await service_named(ask, tx)
        policy = await select_governing(tx, service.org, service.project, service.id)
        rows = await select_overrides(tx, service.key)
        now = tx.now
    return GateOverrides(items=[record_json(row, status_of(row, policy, now)) for row in rows])


async def read(ask: Request) -> GateOverrideRecord:
    async with ask.context.pool.transaction("read_gate_override", read_only=True) as tx:
        service = await service_named(ask, tx)
        policy = await select_governing(tx, service.org, service.project, service.id)
        row = await select_override(tx, service.key, ask.ids["overrideID"])
        if row is None:
            raise Problem("not_found")
        return record_json(row, status_of(row, policy, tx.now))


async def revoke(ask: Request) -> None:
    async with ask.context.pool.transaction("revoke_gate_override") as tx:
        await revoke_override(
            tx, ask.who, ask.ids["projectID"], ask.ids["serviceID"], ask.ids["overrideID"]
        )


ROUTES: Final = (
    Route(
        method="GET",
        path=f"{OF_SERVICE}/override",
        action=READ,
        scope=SERVICE,
        handler=read_active,
        summary="Read the active override.",
        tag="gate_overrides",
        answer=GateOverride,
    ),
    Route(
        method="POST",
        path=f"{OF_SERVICE}/override",
        action=ADMIN,
        scope=SERVICE,
        handler=create,
        summary="Create an override of BLOCK for at most 7 days.",
        tag="gate_overrides",
        body=GateOverrideCreate,
        answer=GateOverride,
        status=201,
        also=(409,),
    ),
    Route(
        method="GET",
        path=f"{OF_SERVICE}/overrides",
        action=READ,
        scope=SERVICE,
        handler=list_all,
        summary="All overrides of a service, newest first; at most 200.",
        tag="gate_overrides",
        answer=GateOverrides,
    ),
    Route(
        method="GET",
        path=f"{OF_SERVICE}/overrides/{{overrideID}}",
        action=READ,
        scope=SERVICE,
        handler=read,
        summary="An override, and how it ended.",
        tag="gate_overrides",
        answer=GateOverrideRecord,
    ),
    Route(
        method="DELETE",
        path=f"{OF_SERVICE}/overrides/{{overrideID}}",
        action=ADMIN,
        scope=SERVICE,
        handler=revoke,
        summary="Revoke an active or inert override.",
        tag="gate_overrides",
        status=204,
        also=(409,),
    ),
)
