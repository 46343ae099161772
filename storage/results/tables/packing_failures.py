"""Days of monitors that could not be packed as usual, and have a piece for each row.

A week whose pieces could not be merged is recorded by its first day.
"""

from collections.abc import Collection
from typing import Final

from ...core.instant import Instant
from ...core.key import MonitorKey, key_arrays
from ...engine.pools import Tx

_CAUSE_MOST: Final = 500
_INSERT = """
insert into packing_failures (org, monitor, day, cause, at)
values (%(org)s, %(monitor)s, at(%(day)s), %(cause)s, at(%(now)s))
on conflict (org, monitor, day) do update set cause = excluded.cause, at = excluded.at
"""
_COUNT = "select count(*) from packing_failures"
_DELETE_OLD = "delete from packing_failures where day < at(%(before)s)"
_DELETE_OF = """
delete from packing_failures where (org, monitor) in (
  select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
"""


async def insert_failure(tx: Tx, key: MonitorKey, day: Instant, cause: str) -> None:
    """Records the cause for a day of a monitor. A later one replaces it."""
    row = {"org": key[0], "monitor": key[1], "day": day, "cause": cause[:_CAUSE_MOST]}
    await tx.execute(_INSERT, now=tx.now, **row)


async def count_failures(tx: Tx) -> int:
    found: int = await tx.value(_COUNT)
    return found


async def delete_old_failures(tx: Tx, before: Instant) -> None:
    """Deletes those of days that begin before an instant."""
    await tx.execute(_DELETE_OLD, before=before)


async def delete_failures_of(tx: Tx, keys: Collection[MonitorKey]) -> None:
    await tx.execute(_DELETE_OF, **key_arrays(keys, "monitors"))
