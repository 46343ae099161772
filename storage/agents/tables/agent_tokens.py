"""Tokens of agents, found by the SHA-256 of the secret. Revoked tokens are not accepted."""

from typing import Final
from uuid import UUID

from ...engine.pools import LockRank, Tx
from ..rows import AgentTokenRow

# Rows of revoked tokens are kept. This many of the latest are listed after the valid ones.
REVOKED_SHOWN: Final = 100

_COLUMNS = "uid, name, region, created_at, revoked_at"
# Waits for another creation or revocation. Readers, and agents that use a token, do not wait.
_LOCK = "lock table agent_tokens in share row exclusive mode"
_COUNT_LIVE = "select count(*) from agent_tokens where revoked_at is null"
_INSERT = f"""
insert into agent_tokens (uid, name, region, token_hash, created_by, created_at)
values (%(uid)s, %(name)s, %(region)s, %(hash)s,
  (select id from users where uid = %(creator)s::uuid), at(%(now)s))
returning {_COLUMNS}
"""
_REVOKE = f"""
update agent_tokens set revoked_at = at(%(now)s)
where uid = %(uid)s and revoked_at is null
returning {_COLUMNS}
"""


async def lock_agent_tokens(tx: Tx) -> None:
    """Locks the table against creations and revocations, so that a count after it is exact."""
    tx.lock_rank(LockRank.REGION, "the agent tokens that are counted")
    await tx.execute(_LOCK)


async def count_live_agent_tokens(tx: Tx) -> int:
    count: int = await tx.value(_COUNT_LIVE)
    return count


async def insert_agent_token(
    tx: Tx, uid: UUID, name: str, region: str, token_hash: bytes, creator: UUID | None
) -> AgentTokenRow:
    row = await tx.one(
        AgentTokenRow,
        _INSERT,
        uid=uid,
        name=name,
        region=region,
        hash=token_hash,
        creator=creator,
        now=tx.now,
    )
    assert row is not None, "an insert answers with its row"
    return row


async def revoke_agent_token(tx: Tx, uid: UUID) -> AgentTokenRow | None:
    """Revokes a token. Returns None if no valid token has this id."""
    return await tx.one(AgentTokenRow, _REVOKE, uid=uid, now=tx.now)
