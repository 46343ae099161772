"""Objectives of services per window, and the burn rules that notify of high burn rates."""

from collections.abc import Sequence
from uuid import UUID

from ...accounts.rules.access import Principal
from ...accounts.transactions.authorize import NOT_FOUND, audit
from ...alerting.tables.service_alerting import lock_alertings
from ...core.availability import OBJECTIVE_SCALE, objective_e4
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...services.rows import ServiceRow
from ...services.transactions.lock_service import demand_service, expect_unmanaged, target_of
from ..queries.service_targets import select_service_targets
from ..rows import ServiceTargetRow
from ..rules import SERVICE_SHORT_LEAST_US, BurnRule, faults
from ..tables.burn_rules import BurnTarget, lock_notified_rules, replace_rules
from ..tables.service_targets import delete_service_target, put_service_target, set_service_burn
from .notify_burn import notify_unwatched, of_service


async def put_target(
    tx: Tx, principal: Principal, project: UUID, service: UUID, window: str, objective: float
) -> ServiceTargetRow:
    """Sets an objective. An unchanged objective is not written.

    Raises: Refused not_found, forbidden, invalid, managed_by_file.
    """
    row = await demand_service(tx, principal, project, service)
    return await put_target_of(tx, principal, row, window, objective)


async def put_target_of(
    tx: Tx, principal: Principal, row: ServiceRow, window: str, objective: float
) -> ServiceTargetRow:
    """Sets the objective of a service that is locked or new.

    Raises: Refused invalid, managed_by_file.
    """
    scaled = objective_e4(objective)
    if scaled is None:
        raise Refused("invalid", "objective", "must be above 0 and below 100, to four decimals")
    expect_unmanaged(principal, row)
    before = (await select_service_targets(tx, [row.key]))[row.key].get(window)
    if before is None or before.objective != scaled:
        await put_service_target(tx, row.key, window, scaled)
        target = f"{target_of(row)} window={window} objective={scaled / OBJECTIVE_SCALE}"
        await audit(tx, principal, row.org, "service.update", target)
    return (await select_service_targets(tx, [row.key]))[row.key][window]


async def put_burn_alerting(
    tx: Tx,
    principal: Principal,
    project: UUID,
    service: UUID,
    window: str,
    rules: Sequence[BurnRule],
    *,
    enabled: bool,
) -> ServiceTargetRow:
    """Sets the burn rules of an objective.

    Unchanged rules keep their state. Channels with a firing notification of another rule are
    notified that it is no longer evaluated.
    Raises: Refused not_found, also without an objective, forbidden, invalid, managed_by_file.
    """
    row = await demand_service(tx, principal, project, service)
    before = (await select_service_targets(tx, [row.key]))[row.key].get(window)
    if before is None:
        raise Refused(NOT_FOUND)
    for field, rule in faults(rules, SERVICE_SHORT_LEAST_US):
        raise Refused("invalid", field, rule)
    expect_unmanaged(principal, row)
    await lock_alertings(tx, [row.key])
    told = await lock_notified_rules(tx, row.org, service=row.id)
    gone = [one for one in told if one.window == window and not (enabled and one.rule in rules)]
    await notify_unwatched(tx, of_service(row), gone)
    changed = await replace_rules(
        tx, BurnTarget(org=row.org, service=row.id, window=window), list(rules)
    )
    if not changed and before.burn_enabled == enabled:
        return before
    await set_service_burn(tx, row.key, window, enabled=enabled)
    target = f"{target_of(row)} window={window} burn_rules={len(rules)} enabled={enabled}"
    await audit(tx, principal, row.org, "service.update", target)
    return (await select_service_targets(tx, [row.key]))[row.key][window]


async def delete_target_of(tx: Tx, principal: Principal, row: ServiceRow, window: str) -> None:
    """Deletes an objective and its burn rules.

    Channels with a firing notification are notified that the rule is no longer evaluated.
    Locks: the caller must have locked the service and its alerting state.
    """
    told = await lock_notified_rules(tx, row.org, service=row.id)
    await notify_unwatched(tx, of_service(row), [one for one in told if one.window == window])
    await replace_rules(tx, BurnTarget(org=row.org, service=row.id, window=window), [])
    await delete_service_target(tx, row.key, window)
    await audit(tx, principal, row.org, "service.update", f"{target_of(row)} window={window} none")
