"""Tokens of agents, created and revoked by global admins. Each is for one region.

A token belongs to the installation and not to an organization, so its audit entries are those of
the instance.
"""

from typing import Final
from uuid import UUID

from uuid_utils.compat import uuid7

from ...accounts.rows import INSTANCE
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import NOT_FOUND, audit, demand
from ...core.naming import name_fault
from ...core.refusal import Refused, expect
from ...engine.pools import Tx
from ...scheduling.tables import work_queues as queues
from ..rows import AgentTokenRow
from ..tables import agent_tokens, agents

LIVE_MOST: Final = 500
CREATE: Final = Permission(Need.GLOBAL_ADMIN, tokenless=True)
REVOKE: Final = Permission(Need.GLOBAL_ADMIN)


async def create_agent_token(
    tx: Tx,
    principal: Principal,
    name: str,
    region: str,
    token_hash: bytes,
    regions: frozenset[str],
) -> AgentTokenRow:
    """Creates a token. `regions` are those of the configuration.

    Raises:
        Refused forbidden, invalid with its field, agent_token_quota if LIVE_MOST valid tokens
        exist.
    """
    demand(principal, CREATE, None)
    expect("name", name_fault(name))
    if region not in regions:
        raise Refused("invalid", "region", "is not a region of this installation")
    await agent_tokens.lock_agent_tokens(tx)
    if await agent_tokens.count_live_agent_tokens(tx) >= LIVE_MOST:
        raise Refused("agent_token_quota")
    maker = principal.user if isinstance(principal.user, UUID) else None
    row = await agent_tokens.insert_agent_token(tx, uuid7(), name, region, token_hash, maker)
    await audit(tx, principal, INSTANCE, "agent_token.create", _target(row))
    return row


async def revoke_agent_token(tx: Tx, principal: Principal, token: UUID) -> None:
    """Revokes a token from the commit on, and ends the leases of its agents.

    Raises:
        Refused forbidden; not_found, also if it is already revoked.
    """
    demand(principal, REVOKE, None)
    row = await agent_tokens.revoke_agent_token(tx, token)
    if row is None:
        raise Refused(NOT_FOUND)
    holders = await agents.clear_credential(tx, f"token:{row.uid}")
    if holders:
        await queues.end_leases(tx, holders)
    await audit(tx, principal, INSTANCE, "agent_token.revoke", _target(row))


def _target(row: AgentTokenRow) -> str:
    return f"agent_token:{row.uid} region={row.region}"
