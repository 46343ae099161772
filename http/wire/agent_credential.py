"""Authentication of agents by token.

A token is the catch-all or a named token of the configuration, or was issued by this installation.
No issued token is cached, so that a revoked token is refused from the commit of its revocation.
"""

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
    """Identity of an agent. `source` names the origin of its token.

    `region` is None if the token is valid for every region. `issued` is the id of an issued token,
    which can be revoked.
    """

    source: str
    name: str
    region: str | None
    issued: UUID | None = None


@dataclass(frozen=True, slots=True)
class ConfiguredAgents:
    """Agent tokens of the configuration, each as its SHA-256 with its credential."""

    tokens: tuple[tuple[bytes, AgentCredential], ...] = ()

    def find(self, hashed: bytes) -> AgentCredential | None:
        """Compares every token, so that the duration does not reveal a match."""
        found = None
        for known, credential in self.tokens:
            if compare_digest(known, hashed):
                found = found or credential
        return found


def configured_agents(
    catch_all: str, named: Mapping[str, tuple[str, str]] | None = None
) -> ConfiguredAgents:
    """Builds the credentials. `named` maps the name of an agent to its token and region."""
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
    """Returns the agent's credential; None if the token is unknown or revoked."""
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
    """Returns whether the token is still valid, for a caller that has waited since."""
    if credential.issued is None:
        return True
    row = await select_agent_token(tx, credential.issued)
    return row is not None and row.revoked_at is None
