"""Limits of single organizations, and the lock under which the use of one is counted."""

from typing import Final

from ...engine.pools import LockRank, Tx
from ..rules.organization_limits import OwnLimits

# First key of the advisory locks. The second key is the organization.
LOCK_CLASS: Final = 1_279_610_182

_LOCK = f"select pg_advisory_xact_lock({LOCK_CLASS}, %(org)s::int)"
_PUT = """
insert into organization_limits
  (org, monitors, shortest_interval_seconds, runs_per_minute, updated_at)
values (%(org)s, %(monitors)s::int, %(shortest)s::int, %(runs)s::int, at(%(now)s))
on conflict (org) do update set monitors = excluded.monitors,
  shortest_interval_seconds = excluded.shortest_interval_seconds,
  runs_per_minute = excluded.runs_per_minute, updated_at = excluded.updated_at
"""


async def lock_use(tx: Tx, org: int) -> None:
    """Serializes the changes that raise the use of an organization until the transaction ends.

    A count after it is exact: every such change either is committed, or counts after this one.
    """
    tx.lock_rank(LockRank.USE, "the use of an organization")
    await tx.rows(_LOCK, org=org)


async def put_own_limits(tx: Tx, org: int, limits: OwnLimits) -> None:
    await tx.execute(
        _PUT,
        org=org,
        monitors=limits.monitors,
        shortest=limits.shortest_interval_seconds,
        runs=limits.runs_per_minute,
        now=tx.now,
    )
