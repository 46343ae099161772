"""Time zone and clock of the own account. They are personal, and therefore not audited."""

from uuid import UUID

from ...core.refusal import Refused, expect
from ...engine.pools import Tx
from ..rules.access import Need, Permission, Principal
from ..rules.time_preference import hour_clock_fault, time_zone_fault
from ..tables import users
from .authorize import demand

OWN = Permission(Need.SESSION)


async def put_time_preference(
    tx: Tx, principal: Principal, time_zone: str, hour_clock: int
) -> None:
    """Writes both values.

    Raises:
        Refused forbidden, invalid with the field, unauthorized if the account is gone.
    """
    demand(principal, OWN, None)
    expect("time_zone", time_zone_fault(time_zone))
    expect("hour_clock", hour_clock_fault(hour_clock))
    user = principal.user
    if not isinstance(user, UUID) or not await users.set_time_preference(
        tx, user, time_zone, hour_clock
    ):
        raise Refused("unauthorized")
