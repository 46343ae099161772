"""Release of a provider's objects to users.

For a provider that is no longer configured, whose files cannot release them.
"""

from typing import Final

from ...accounts.rows import INSTANCE
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import audit, demand
from ...core.refusal import Refused
from ...engine.pools import Tx
from ..tables.bundle_files import delete_provider
from ..tables.bundle_ownership import release_marks

ADMIN: Final = Permission(Need.GLOBAL_ADMIN)


async def release_provider(tx: Tx, principal: Principal, provider: str) -> tuple[int, int]:
    """Releases the objects of a provider and returns the numbers of monitors and services.

    Raises:
        Refused forbidden, invalid if the provider is unknown.
    """
    demand(principal, ADMIN, None)
    services = await release_marks(tx, "service", provider)
    monitors = await release_marks(tx, "monitor", provider)
    if not (await delete_provider(tx, provider) or monitors or services):
        raise Refused("invalid", "provider", f"{provider[:64]!r} manages nothing")
    said = f"provider:{provider} monitors={monitors} services={services}"
    await audit(tx, principal, INSTANCE, "provider.release", said)
    return monitors, services
