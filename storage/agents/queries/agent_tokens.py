"""Reads of agent tokens."""

from uuid import UUID

from ...engine.pools import Tx
from ..rows import AgentTokenRow
from ..tables.agent_tokens import _COLUMNS, REVOKED_SHOWN

_LIVE_BY_HASH = f"""
select {_COLUMNS} from agent_tokens where token_hash = %(hash)s and revoked_at is null
"""

_BY_UID = f"select {_COLUMNS} from agent_tokens where uid = %(uid)s"

_ALL = f"""
select {_COLUMNS} from (
  select id, {_COLUMNS} from agent_tokens where revoked_at is null
  union all
  (select id, {_COLUMNS} from agent_tokens where revoked_at is not null
   order by revoked_at desc limit {REVOKED_SHOWN})
) t order by revoked_at is not null, id desc
"""


async def select_live_agent_token(tx: Tx, token_hash: bytes) -> AgentTokenRow | None:
    """Returns None for an unknown token, and after the commit of its revocation."""
    return await tx.one(AgentTokenRow, _LIVE_BY_HASH, hash=token_hash)


async def select_agent_token(tx: Tx, uid: UUID) -> AgentTokenRow | None:
    return await tx.one(AgentTokenRow, _BY_UID, uid=uid)


async def select_agent_tokens(tx: Tx) -> list[AgentTokenRow]:
    """Returns valid tokens, newest first, then the REVOKED_SHOWN latest revoked ones."""
    return await tx.structs(AgentTokenRow, _ALL)
