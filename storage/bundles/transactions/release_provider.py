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
from ..tables.bundle_ownership import KINDS, release_marks

ADMIN: Final = Permission(Need.GLOBAL_ADMIN)


async def release_provider(tx: Tx, principal: Principal, provider: str) -> tuple[int, int]:
    """Releases the objects of a provider and returns the numbers of monitors and services.

    On-call objects are released too.

    Raises:
        Refused forbidden, invalid if the provider is unknown.
    """
    demand(principal, ADMIN, None)
    numbers = {kind: await release_marks(tx, kind, provider) for kind in KINDS}
    services, monitors = numbers["service"], numbers["monitor"]
    if not (await delete_provider(tx, provider) or any(numbers.values())):
        raise Refused("invalid", "provider", f"{provider[:64]!r} manages nothing")
    said = f"provider:{provider} monitors={monitors} services={services}"
    await audit(tx, principal, INSTANCE, "provider.release", said)
    return monitors, services
