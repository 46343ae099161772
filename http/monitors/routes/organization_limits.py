"""Routes of the limits of organizations. Global admins set them, members read theirs."""

from functools import partial
from typing import Final

import msgspec

from ....storage.accounts.rules.access import Need, Permission
from ....storage.engine.pools import Tx
from ....storage.monitors.queries.organization_limits import (
    limits_in_force,
    select_default_limits,
    select_own_limits,
    select_use,
)
from ....storage.monitors.rules.organization_limits import OrganizationLimits as Limits
from ....storage.monitors.rules.organization_limits import OwnLimits as Own
from ....storage.monitors.transactions.put_organization_limits import (
    EDIT,
    put_limits_of_organization,
    put_organization_limits,
)
from ...wire.route import Request, Route, setting_routes
from ...wire.scope_keys import org_of
from ..schemas.organization_limits import (
    LimitsOfOrganization,
    OrganizationLimits,
    OwnLimits,
    PutOrganizationLimits,
    PutOwnLimits,
)

_ALL: Final = "/api/v1/settings/organization-limits"
_ONE: Final = "/api/v1/organizations/{orgID}/limits"


async def read(ask: Request) -> OrganizationLimits:
    async with ask.context.pool.transaction("read_organization_limits", read_only=True) as tx:
        found = await select_default_limits(tx)
    return _limits_json(found or Limits(), configured=found is not None)


async def put(ask: Request) -> OrganizationLimits:
    given = msgspec.structs.asdict(ask.body)
    del given["configured"]
    limits = Limits(**given)
    async with ask.context.pool.transaction("put_organization_limits") as tx:
        await put_organization_limits(tx, ask.who, limits)
    return _limits_json(limits, configured=True)


def _limits_json(found: Limits, *, configured: bool) -> OrganizationLimits:
    return OrganizationLimits(configured=configured, **msgspec.structs.asdict(found))


async def read_own(ask: Request) -> LimitsOfOrganization:
    name = "read_limits_of_organization"
    async with ask.context.pool.transaction(name, read_only=True) as tx:
        return await _own_json(tx, org_of(ask))


async def put_own(ask: Request) -> LimitsOfOrganization:
    given = {
        name: value
        for name, value in msgspec.structs.asdict(ask.body).items()
        if value is not msgspec.UNSET
    }
    async with ask.context.pool.transaction("put_limits_of_organization") as tx:
        row = await put_limits_of_organization(tx, ask.who, ask.ids["orgID"], Own(**given))
        return await _own_json(tx, row.id)


async def _own_json(tx: Tx, org: int) -> LimitsOfOrganization:
    own, use = await select_own_limits(tx, org), await select_use(tx, org)
    given = {
        name: value for name, value in msgspec.structs.asdict(own).items() if value is not None
    }
    return LimitsOfOrganization(
        **msgspec.structs.asdict(await limits_in_force(tx, org)),
        own=OwnLimits(**given),
        used_monitors=use.monitors,
        used_runs_per_minute=use.runs_per_minute,
    )


_one: Final = partial(
    Route,
    path=_ONE,
    scope=("organization", "orgID"),
    tag="organization_limits",
    answer=LimitsOfOrganization,
)

ROUTES: Final = (
    _one(
        method="GET",
        action=Permission(Need.VIEWER),
        handler=read_own,
        summary="Read the limits of an organization and its use.",
    ),
    _one(
        method="PUT",
        action=EDIT,
        handler=put_own,
        summary="Set own limits of an organization.",
        body=PutOwnLimits,
    ),
    *setting_routes(
        _ALL,
        read,
        put,
        EDIT,
        tag="organization_limits",
        body=PutOrganizationLimits,
        answer=OrganizationLimits,
        summaries=(
            "Read the limits of every organization without own ones.",
            "Set the limits of every organization without own ones, all of them.",
        ),
    ),
)
