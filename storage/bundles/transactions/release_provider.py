"""Release of a provider's objects to users.

For a provider that is no longer configured, whose files cannot release them.
"""

from dataclasses import dataclass
from typing import Final

from ...accounts.rows import INSTANCE
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import audit, demand
from ...core.refusal import Refused
from ...engine.pools import Tx
from ..rules.bundle_diff import Kind
from ..tables.bundle_files import delete_provider
from ..tables.bundle_ownership import KINDS, release_marks
from ..tables.bundle_people import delete_released_people

OTHERS: Final[tuple[Kind, ...]] = (
    "project_settings",
    "maintenance_series",
    "status_page",
    "webhook",
)
ADMIN: Final = Permission(Need.GLOBAL_ADMIN)


@dataclass(frozen=True, slots=True)
class Released:
    """Numbers of released objects.

    `oncall` are channels, schedules, policies and route lists. `others` are the settings of
    projects, maintenance series, status pages and webhooks.
    """

    monitors: int
    services: int
    oncall: int
    others: int = 0


async def release_provider(tx: Tx, principal: Principal, provider: str) -> Released:
    """Releases the objects of a provider and returns their numbers.

    Raises:
        Refused forbidden, invalid if the provider is unknown.
    """
    demand(principal, ADMIN, None)
    numbers = {kind: await release_marks(tx, kind, provider) for kind in KINDS}
    await delete_released_people(tx)
    monitors, services = numbers.pop("monitor"), numbers.pop("service")
    others = sum(numbers.pop(kind) for kind in OTHERS)
    released = Released(monitors, services, sum(numbers.values()), others)
    if not (await delete_provider(tx, provider) or released != Released(0, 0, 0, 0)):
        raise Refused("invalid", "provider", f"{provider[:64]!r} manages nothing")
    said = f"provider:{provider} monitors={monitors} services={services} oncall={released.oncall}"
    said += f" others={others}" if others else ""
    await audit(tx, principal, INSTANCE, "provider.release", said)
    return released
