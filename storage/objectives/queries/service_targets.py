"""Read-only SQL of service targets."""

from collections.abc import Iterable

from ...core.key import ServiceKey, key_arrays
from ...engine.pools import Tx
from ..rows import ServiceTargetRow

_COLUMNS = """
t.org, t.service, t."window", t.uid, t.objective, t.burn_enabled, t.created_at, t.updated_at
"""

_OF_SERVICES = f"""
select {_COLUMNS} from service_targets t
  join unnest(%(orgs)s::int[], %(services)s::int[]) as k(org, service)
    on k.org = t.org and k.service = t.service
order by t.org, t.service
"""


async def select_service_targets(
    tx: Tx, services: Iterable[ServiceKey]
) -> dict[ServiceKey, dict[str, ServiceTargetRow]]:
    """Returns targets by service and window."""
    keys = list(services)
    rows = await tx.structs(ServiceTargetRow, _OF_SERVICES, **key_arrays(keys, "services"))
    found: dict[ServiceKey, dict[str, ServiceTargetRow]] = {key: {} for key in keys}
    for row in rows:
        found[ServiceKey((row.org, row.owner))][row.window] = row
    return found
