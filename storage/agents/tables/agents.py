"""Agents: one row per credential, region and instance, with the last contact."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from ....probes.jobs.agent_protocol import LIVE_SECONDS
from ...core.instant import Instant
from ...engine.pools import Tx
from ..rows import NOBODY, AgentRow

# Retention that lets the fleet show missing agents.
KEPT_DAYS: Final = 7
INSTANCES_MOST: Final = 200

_HEAR = """
insert into agents as a (credential, region, instance, name, holder, first_seen_at, last_seen_at)
select %(credential)s, %(region)s, %(instance)s, %(name)s, gen_random_uuid(), at(%(now)s),
  at(%(now)s)
where %(instance)s = %(nobody)s or (select count(*) from agents o
  where o.credential = %(credential)s and o.region = %(region)s
    and o.instance not in (%(instance)s, %(nobody)s)) < %(most)s
on conflict (credential, region, instance) do update set
  name = excluded.name, last_seen_at = greatest(a.last_seen_at, excluded.last_seen_at)
returning credential, region, instance, name, version, workflow_kinds, carrier, holder,
  first_seen_at, last_seen_at
"""
_TELL = """
update agents set version = %(version)s, workflow_kinds = %(kinds)s::text[], carrier = %(carrier)s
where holder = %(holder)s
"""
_ABILITIES = f"""
select distinct carrier, workflow_kinds from agents
where region = %(region)s and last_seen_at > at(%(now)s) - interval '{LIVE_SECONDS} seconds'
"""
_FORGET = "delete from agents where credential = %(credential)s returning holder"
_DROP = "delete from agents where last_seen_at < at(%(before)s)"


async def hear(tx: Tx, credential: str, region: str, instance: UUID, name: str) -> AgentRow:
    """Records a contact of an agent and returns its row.

    Up to INSTANCES_MOST instances of one credential and region have their own rows. Further ones
    share a row.
    """
    for one in (instance, NOBODY):
        row = await tx.one(
            AgentRow,
            _HEAR,
            credential=credential,
            region=region,
            instance=one,
            nobody=NOBODY,
            most=INSTANCES_MOST,
            name=name,
            now=tx.now,
        )
        if row is not None:
            return row
    raise AssertionError("the statement always returns a row")


async def record_heartbeat(
    tx: Tx, holder: UUID, version: str, kinds: Sequence[str], carrier: int
) -> None:
    """Records the declarations of a heartbeat."""
    await tx.execute(_TELL, holder=holder, version=version, kinds=list(kinds), carrier=carrier)


async def select_abilities(tx: Tx, region: str) -> list[tuple[int, list[str]]]:
    """Returns the generation and the capabilities of each live agent of the region."""
    return [
        (carrier, kinds) for carrier, kinds in await tx.rows(_ABILITIES, region=region, now=tx.now)
    ]


async def clear_credential(tx: Tx, credential: str) -> list[UUID]:
    """Deletes the agents of a credential and returns their lease holder ids."""
    return [holder for (holder,) in await tx.rows(_FORGET, credential=credential)]


async def purge_agents(tx: Tx, before: Instant) -> int:
    return await tx.execute(_DROP, before=before)
