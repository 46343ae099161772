"""Who an agent is, by its token: the catch-all or a named one of the configuration, or one that was
issued here. A token that is revoked is refused from that commit on: none is remembered."""

from collections.abc import Mapping
from dataclasses import dataclass
from hmac import compare_digest
from uuid import UUID

from ...storage.agents.queries.agent_tokens import select_agent_token, select_live_agent_token
from ...storage.core.token import TokenKind, digest, kind_of
from ...storage.engine.pools import Pool, Tx
from .local_credentials import bearer_of

CATCH_ALL = "catch-all"


@dataclass(frozen=True, slots=True)
class AgentCredential:
    """`source` names where the token is from; `region` is None where it opens any. `issued` is the
    id of one that was issued here, and may be revoked."""

    source: str
    name: str
    region: str | None
    issued: UUID | None = None


@dataclass(frozen=True, slots=True)
class ConfiguredAgents:
    """What the configuration says of agents: each token by its SHA-256, with what it opens."""

    tokens: tuple[tuple[bytes, AgentCredential], ...] = ()

    def find(self, hashed: bytes) -> AgentCredential | None:
        """Every one is compared, so that the time taken tells nothing."""
        found = None
        for known, credential in self.tokens:
            if compare_digest(known, hashed):
                found = found or credential
        return found


def configured_agents(
    catch_all: str, named: Mapping[str, tuple[str, str]] | None = None
) -> ConfiguredAgents:
    """`named` are token and region by the agent's name."""
    tokens = [
        (digest(token), AgentCredential(f"agent:{name}", name, region))
        for name, (token, region) in (named or {}).items()
    ]
    if catch_all:
        tokens.append((digest(catch_all), AgentCredential(CATCH_ALL, "agent", None)))
    return ConfiguredAgents(tuple(tokens))


async def identify_agent(
    pool: Pool, headers: Mapping[str, str], configured: ConfiguredAgents
) -> AgentCredential | None:
    """None for a token that is none of ours, or no more."""
    bearer = bearer_of(headers.get("authorization", ""))
    if not bearer:
        return None
    hashed = digest(bearer)
    found = configured.find(hashed)
    if found is not None or kind_of(bearer) is not TokenKind.AGENT:
        return found
    async with pool.statement("identify_agent") as tx:
        row = await select_live_agent_token(tx, hashed)
    return (
        None if row is None else AgentCredential(f"token:{row.uid}", row.name, row.region, row.uid)
    )


async def still_opens(tx: Tx, credential: AgentCredential) -> bool:
    """For who has waited since it was identified."""
    if credential.issued is None:
        return True
    row = await select_agent_token(tx, credential.issued)
    return row is not None and row.revoked_at is None
