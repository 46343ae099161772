"""Reads of agents."""

from ...engine.pools import Tx
from ..rows import AgentRow

_COLUMNS = """
credential, region, instance, name, version, workflow_kinds, carrier, holder, first_seen_at,
last_seen_at
"""

_ALL = f"select {_COLUMNS} from agents order by region, name, first_seen_at limit %(most)s"


async def select_agents(tx: Tx, most: int) -> list[AgentRow]:
    return await tx.structs(AgentRow, _ALL, most=most)
