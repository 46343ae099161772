"""Support hours of a service, outside of which its incidents of low urgency wait."""

from collections.abc import Sequence
from uuid import UUID

from ...accounts.rules.access import Principal
from ...accounts.transactions.authorize import audit
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...oncall.rules.weekly_hours import WeeklyWindow, hours_fault, window_text
from ..rows import ServiceRow
from ..tables.services import set_support_hours
from .lock_service import demand_service, expect_unmanaged, target_of, written


async def put_support_hours(
    tx: Tx,
    principal: Principal,
    project: UUID,
    service: UUID,
    zone: str,
    windows: Sequence[WeeklyWindow],
) -> ServiceRow:
    """Sets the support hours; no windows remove them. A bundle that states none leaves them alone.

    Raises:
        Refused not_found, forbidden, invalid with its field, managed_by_file.
    """
    before = await demand_service(tx, principal, project, service)
    if before.hours_managed:
        expect_unmanaged(principal, before)
    fault = hours_fault(zone, windows)
    if fault is not None:
        raise Refused("invalid", *fault)
    texts = [window_text(window) for window in windows]
    zone = zone if texts else ""
    if (zone, texts) == (before.support_zone, before.support_hours):
        return before
    await set_support_hours(tx, before.key, zone, texts)
    target = f"{target_of(before)} support_hours={'set' if texts else 'none'}"
    await audit(tx, principal, before.org, "service.update", target)
    return await written(tx, service)
