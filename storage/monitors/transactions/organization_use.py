"""Changes of the use of organizations in one transaction, and their check against the limits.

The check is late: the transaction writes its monitors, takes the lock of the organization, and then
counts. So two transactions cannot pass a limit together, and a bundle holds the lock only while it
ends.
"""

from dataclasses import dataclass, field

from ...core.refusal import Refused
from ...engine.pools import Tx
from ..queries.organization_limits import limits_in_force, select_use
from ..rules.organization_limits import (
    OrganizationLimits,
    OrganizationUse,
    Scheduled,
    interval_fault,
    interval_field,
    is_faster,
    raised_field,
    use_fault,
    use_of,
)
from ..tables.organization_limits import lock_use

# Field of a refusal that several monitors cause.
SEVERAL = "monitors"


@dataclass(slots=True)
class UseChanges:
    """Changes of a transaction. A change that raises no use costs no statement."""

    _limits: dict[int, OrganizationLimits] = field(default_factory=dict)
    _more: dict[int, OrganizationUse] = field(default_factory=dict)
    # The last field that raises the load.
    _field: str = SEVERAL

    async def change(self, tx: Tx, org: int, before: Scheduled | None, after: Scheduled) -> None:
        """Registers the creation or the edit of a monitor.

        Raises:
            Refused invalid if the monitor becomes faster than the shortest interval.
        """
        if is_faster(before, after):
            broken = interval_fault(await self._limits_of(tx, org), after)
            if broken is not None:
                raise Refused("invalid", interval_field(after), broken)
        more = use_of(after) - use_of(before)
        self._more[org] = self._more.get(org, OrganizationUse()) + more
        if more.load > 0:
            self._field = raised_field(before, after)

    async def expect_room(self, tx: Tx, name: str = "") -> None:
        """Locks the use of the organizations that use more, and checks it.

        All changes are written. `name` is the field of a refusal, empty for that of the monitor.

        Raises:
            Refused invalid with the field, the limit and the present use.
        """
        for org, more in sorted(self._more.items(), key=lambda item: item[0]):
            if more.monitors > 0 or more.load > 0:
                await lock_use(tx, org)
                await self._expect(tx, org, await select_use(tx, org), more, name or self._field)

    async def expect_room_after(self, tx: Tx, org: int, before: OrganizationUse) -> None:
        """Checks the changes against the use from before the first one. It takes no lock.

        Raises:
            Refused invalid with the field `monitors`.
        """
        more = self._more.get(org, OrganizationUse())
        await self._expect(tx, org, before + more, more, SEVERAL)

    async def _expect(
        self, tx: Tx, org: int, after: OrganizationUse, more: OrganizationUse, name: str
    ) -> None:
        fault = use_fault(await self._limits_of(tx, org), after, more, name)
        if fault is not None:
            raise Refused("invalid", *fault)

    async def _limits_of(self, tx: Tx, org: int) -> OrganizationLimits:
        found = self._limits.get(org)
        if found is None:
            found = self._limits[org] = await limits_in_force(tx, org)
        return found
