"""Limits in force of an organization, and its present use."""

from typing import Final

import msgspec

from ...accounts.tables.instance_settings import select_setting
from ...engine.pools import Tx
from ..rules.fields import CONFIRMED
from ..rules.organization_limits import (
    CONFIRM_LEAST_SECONDS,
    RUN_LOAD,
    OrganizationLimits,
    OrganizationUse,
    OwnLimits,
)

NAME: Final = "organization_limits"
_OWN = """
select monitors, shortest_interval_seconds, runs_per_minute from organization_limits
where org = %(org)s
"""
# The rule of `load_of`.
_USE = f"""
select count(*), coalesce(sum({RUN_LOAD * 60}::bigint * (1 + confirming) / interval_seconds)
  filter (where enabled), 0)::bigint
from (select enabled, interval_seconds, case
    when type = any(%(confirmed)s::text[]) and confirm_interval_seconds > 0
    then least(failure_threshold - 1, (interval_seconds - 1)
      / greatest(least(confirm_interval_seconds, interval_seconds), {CONFIRM_LEAST_SECONDS}))
    else 0 end as confirming
  from monitors where org = %(org)s) m
"""


async def select_default_limits(tx: Tx) -> OrganizationLimits | None:
    """Returns the limits of the installation, None if they were not set."""
    found = await select_setting(tx, NAME)
    return None if found is None else msgspec.json.decode(found, type=OrganizationLimits)


async def select_own_limits(tx: Tx, org: int) -> OwnLimits:
    row = await tx.row(_OWN, org=org)
    if row is None:
        return OwnLimits()
    monitors, shortest, runs = row
    return OwnLimits(monitors=monitors, shortest_interval_seconds=shortest, runs_per_minute=runs)


async def limits_in_force(tx: Tx, org: int) -> OrganizationLimits:
    limits = await select_default_limits(tx) or OrganizationLimits()
    return (await select_own_limits(tx, org)).over(limits)


async def select_use(tx: Tx, org: int) -> OrganizationUse:
    """Returns the use of an organization, with what this transaction wrote."""
    row = await tx.row(_USE, org=org, confirmed=sorted(CONFIRMED))
    assert row is not None, "an aggregate has a row"
    return OrganizationUse(*row)
