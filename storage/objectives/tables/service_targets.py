"""What is aimed at over a window, in percent × 10⁴."""

from collections.abc import Iterable
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from ...core.instant import Instant
from ...engine.pools import Tx

Key = tuple[int, int]

_COLUMNS = """
t.org, t.service, t."window", t.uid, t.objective, t.burn_enabled, t.created_at, t.updated_at
"""
_OF_SERVICES = f"""
select {_COLUMNS} from service_targets t
  join unnest(%(orgs)s::int[], %(services)s::int[]) as k(org, service)
    on k.org = t.org and k.service = t.service
order by t.org, t.service
"""
# Who aims at the same again has changed nothing.
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


class TargetRow(msgspec.Struct, frozen=True):
    """`owner` is the key of what it is aimed at for; `burn_enabled` whether somebody is told when
    its budget burns too fast. `updated_at` is when something else was aimed at."""

    org: int
    owner: int
    window: str
    uid: UUID
    objective: int
    burn_enabled: bool
    created_at: Instant
    updated_at: Instant


async def select_service_targets(
    tx: Tx, services: Iterable[Key]
) -> dict[Key, dict[str, TargetRow]]:
    """By service, and by window."""
    keys = list(services)
    rows = await tx.structs(
        TargetRow, _OF_SERVICES, orgs=[k[0] for k in keys], services=[k[1] for k in keys]
    )
    found: dict[Key, dict[str, TargetRow]] = {key: {} for key in keys}
    for row in rows:
        found[row.org, row.owner][row.window] = row
    return found


async def put_service_target(tx: Tx, key: Key, window: str, objective: int) -> None:
    """The service is held."""
    await tx.execute(
        _PUT_OF_SERVICE,
        org=key[0],
        service=key[1],
        window=window,
        uid=uuid7(),
        objective=objective,
        now=tx.now,
    )


async def set_service_burn(tx: Tx, key: Key, window: str, *, enabled: bool) -> None:
    """The service is held, and aims at something over the window."""
    count = await tx.execute(
        _SET_BURN_OF_SERVICE, org=key[0], service=key[1], window=window, enabled=enabled
    )
    assert count == 1, "the target is there"


async def drop_service_target(tx: Tx, key: Key, window: str) -> None:
    """The service is held, and its burn rules over the window are gone."""
    await tx.execute(_DROP_OF_SERVICE, org=key[0], service=key[1], window=window)
