"""Objectives of monitors per window, in percent × 10⁴."""

from collections.abc import Sequence

import msgspec
from uuid_utils.compat import uuid7

from ...core.key import MonitorKey
from ...engine.pools import Tx
from ..rows import PlainTarget

_PUT = """
insert into monitor_targets (org, monitor, "window", uid, objective, burn_enabled, created_at,
  updated_at)
values (%(org)s, %(monitor)s, %(window)s, %(uid)s, %(objective)s, %(burn)s, at(%(now)s),
  at(%(now)s))
on conflict (org, monitor, "window") do update set objective = excluded.objective,
  burn_enabled = excluded.burn_enabled, updated_at = excluded.updated_at
"""
_DELETE = """
delete from monitor_targets
where org = %(org)s and monitor = %(monitor)s and "window" = %(window)s
"""
_PUT_MANY = """
insert into monitor_targets (org, monitor, "window", uid, objective, burn_enabled, created_at,
  updated_at)
select %(org)s, i.monitor, i."window", i.uid, i.objective, i.burn, at(%(now)s), at(%(now)s)
from json_to_recordset(%(items)s::json)
  as i(monitor int, "window" text, uid uuid, objective int, burn boolean)
on conflict (org, monitor, "window") do update set objective = excluded.objective,
  burn_enabled = excluded.burn_enabled, updated_at = excluded.updated_at
"""
_DELETE_MANY = """
delete from monitor_targets t using json_to_recordset(%(items)s::json)
  as i(monitor int, "window" text)
where t.org = %(org)s and t.monitor = i.monitor and t."window" = i."window"
"""
_ARE_MANAGED = """
select targets_managed from monitors where org = %(org)s and id = %(monitor)s
"""


async def put_monitor_target(
    tx: Tx, key: MonitorKey, window: str, objective: int, *, burn_enabled: bool
) -> None:
    """Writes an objective. The caller must have locked the monitor."""
    await tx.execute(
        _PUT,
        org=key[0],
        monitor=key[1],
        window=window,
        uid=uuid7(),
        objective=objective,
        burn=burn_enabled,
        now=tx.now,
    )


async def put_plain_targets(tx: Tx, org: int, targets: Sequence[PlainTarget]) -> None:
    """Writes objectives without burn rules. The caller must have locked the monitors."""
    if targets:
        found = [{**msgspec.structs.asdict(one), "uid": uuid7()} for one in targets]
        items = msgspec.json.encode(found).decode()
        await tx.execute(_PUT_MANY, org=org, items=items, now=tx.now)


async def delete_plain_targets(tx: Tx, org: int, targets: Sequence[tuple[int, str]]) -> None:
    """Deletes objectives without burn rules. The caller must have locked the monitors."""
    if targets:
        found = [{"monitor": monitor, "window": window} for monitor, window in targets]
        await tx.execute(_DELETE_MANY, org=org, items=msgspec.json.encode(found).decode())


async def delete_monitor_target(tx: Tx, key: MonitorKey, window: str) -> None:
    """Deletes an objective. The caller must have locked the monitor."""
    await tx.execute(_DELETE, org=key[0], monitor=key[1], window=window)


async def are_targets_managed(tx: Tx, key: MonitorKey) -> bool:
    """Returns whether a bundle states the objectives of a locked monitor."""
    found: bool = await tx.value(_ARE_MANAGED, org=key[0], monitor=key[1])
    return found
