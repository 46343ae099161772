"""Writes the verified backups of the schedule, and keeps the newest."""

from typing import Final

from ..core.instant import Instant
from ..engine.pools import Tx

KEPT: Final = 100

_INSERT: Final = """
insert into backups (created_at, verified_at, file, bytes, row_count)
values (at(%(created_at)s), greatest(clock_timestamp(), at(%(created_at)s)), %(file)s, %(bytes)s,
  %(row_count)s)
"""
# By id, since instants of a clock that was ahead would never be deleted.
_PURGE: Final = """
delete from backups where id not in (
  select id from backups order by id desc limit %(kept)s
)
"""


async def insert_backup(
    tx: Tx, created_at: Instant, *, file: str, size: int, row_count: int
) -> None:
    """Records a backup as verified now, and deletes all rows but the `KEPT` last ones."""
    await tx.execute(_INSERT, created_at=created_at, file=file, bytes=size, row_count=row_count)
    await tx.execute(_PURGE, kept=KEPT)
