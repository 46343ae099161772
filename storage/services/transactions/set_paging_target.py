"""Paging route of a service: an escalation policy or on-call schedule of its project.

An invalid id, an unknown one and one of another project have the same error code.
"""

from uuid import UUID

from ...accounts.rules.access import Principal
from ...accounts.transactions.authorize import audit
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...oncall.rules.escalation import TargetKind
from ...oncall.tables.escalation_policies import lock_shared_policy
from ...oncall.tables.oncall_schedules import lock_shared_schedules
from ...oncall.transactions.check_targets import RequestedTarget
from ..rows import ServiceRow
from ..tables.services import set_escalation_policy
from .lock_service import demand_service, expect_unmanaged, target_of, written

_FOREIGN = "owner_not_in_project"


async def lock_owning_policy(tx: Tx, org: int, project: int, text: str) -> int | None:
    """Locks an escalation policy, shared. Returns its id, None for an empty text."""
    if not text:
        return None
    uid = RequestedTarget("escalation_policy_id", TargetKind.CHANNEL, text).uid
    key = None if uid is None else await lock_shared_policy(tx, org, project, uid)
    if key is None:
        raise Refused(_FOREIGN)
    return key


async def lock_owning_schedule(tx: Tx, org: int, project: int, text: str) -> int | None:
    """Locks an on-call schedule, shared. Returns its id, None for an empty text."""
    if not text:
        return None
    uid = RequestedTarget("oncall_schedule_id", TargetKind.SCHEDULE, text).uid
    held = {} if uid is None else await lock_shared_schedules(tx, org, project, {uid})
    if uid is None or uid not in held:
        raise Refused(_FOREIGN)
    return held[uid]


async def put_first_policy(tx: Tx, principal: Principal, made: ServiceRow, policy: str) -> None:
    """Sets the escalation policy of a service that this transaction created.

    The creation authorized the principal and locked the service, so that this may follow the locks
    of its members.

    Raises:
        Refused owner_not_in_project.
    """
    key = await lock_owning_policy(tx, made.org, made.project, policy)
    await set_escalation_policy(tx, made.key, key)
    target = f"{target_of(made)} escalation_policy:{policy or 'none'}"
    await audit(tx, principal, made.org, "service.update", target)


async def put_escalation_policy(
    tx: Tx, principal: Principal, project: UUID, service: UUID, policy: str
) -> ServiceRow:
    """Sets the escalation policy; an empty id removes it.

    Raises:
        Refused not_found, forbidden, owner_not_in_project, managed_by_file.
    """
    before = await demand_service(tx, principal, project, service)
    key = await lock_owning_policy(tx, before.org, before.project, policy)
    expect_unmanaged(principal, before)
    if key == before.escalation_policy:
        return before
    await set_escalation_policy(tx, before.key, key)
    target = f"{target_of(before)} escalation_policy:{policy or 'none'}"
    await audit(tx, principal, before.org, "service.update", target)
    return await written(tx, service)
