"""Reads of support hours."""

from dataclasses import dataclass

from ...core.instant import Instant, to_datetime
from ...engine.pools import Tx
from ...oncall.rules.weekly_hours import zone_of_name
from ..rules.support_hours import opens_at

_OF_SERVICE = """
select support_zone, support_hours from services where org = %(org)s and id = %(service)s
"""


@dataclass(frozen=True, slots=True)
class SupportOpening:
    """Beginning of support hours, with the zone of the service."""

    at: Instant
    zone: str

    @property
    def text(self) -> str:
        local = to_datetime(self.at).astimezone(zone_of_name(self.zone))
        return f"{local:%A} {local.day} {local:%B %Y, %H:%M} ({self.zone or 'UTC'})"


async def select_opening(tx: Tx, org: int, service: int | None) -> SupportOpening | None:
    """Returns when the support hours of a service begin, None if nothing waits for them now."""
    if service is None:
        return None
    row = await tx.row(_OF_SERVICE, org=org, service=service)
    at = None if row is None else opens_at(row[0], row[1], tx.now)
    return None if row is None or at is None else SupportOpening(at, row[0])
