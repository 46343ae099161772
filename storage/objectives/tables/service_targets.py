"""Objectives of services per window, in percent × 10⁴."""

from uuid_utils.compat import uuid7

from ...core.key import ServiceKey
from ...engine.pools import Tx

# An unchanged objective keeps `updated_at`.
_PUT_OF_SERVICE = """
insert into service_targets (org, service, "window", uid, objective, created_at, updated_at)
values (%(org)s, %(service)s, %(window)s, %(uid)s, %(objective)s, at(%(now)s), at(%(now)s))
on conflict (org, service, "window") do update set objective = excluded.objective,
  updated_at = excluded.updated_at
where service_targets.objective <> excluded.objective
"""
_SET_BURN_OF_SERVICE = """
update service_targets set burn_enabled = %(enabled)s
where org = %(org)s and service = %(service)s and "window" = %(window)s
"""

_DROP_OF_SERVICE = """
delete from service_targets
where org = %(org)s and service = %(service)s and "window" = %(window)s
"""


async def put_service_target(tx: Tx, key: ServiceKey, window: str, objective: int) -> None:
    """Writes an objective. The caller must have locked the service."""
    await tx.execute(
        _PUT_OF_SERVICE,
        org=key[0],
        service=key[1],
        window=window,
        uid=uuid7(),
        objective=objective,
        now=tx.now,
    )


async def set_service_burn(tx: Tx, key: ServiceKey, window: str, *, enabled: bool) -> None:
    """Enables or disables burn alerts of a window, which must have an objective.

    Locks: the caller must have locked the service.
    """
    count = await tx.execute(
        _SET_BURN_OF_SERVICE, org=key[0], service=key[1], window=window, enabled=enabled
    )
    assert count == 1, "the target is there"


async def delete_service_target(tx: Tx, key: ServiceKey, window: str) -> None:
    """Deletes an objective.

    Locks: the caller must have locked the service and deleted the burn rules of the window.
    """
    await tx.execute(_DROP_OF_SERVICE, org=key[0], service=key[1], window=window)
