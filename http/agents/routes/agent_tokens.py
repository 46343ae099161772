"""Management of agent tokens by global admins. Only the creation returns the secret."""

import os
from typing import Final

from ....storage.agents.queries.agent_tokens import select_agent_tokens
from ....storage.agents.rows import AgentTokenRow
from ....storage.agents.transactions.edit_agent_tokens import (
    CREATE,
    REVOKE,
    create_agent_token,
    revoke_agent_token,
)
from ....storage.core.instant import to_text
from ....storage.core.token import RANDOM_BYTES, TokenKind, digest, token_from
from ...wire.route import Request, Route
from ...wire.schema import instant_text
from ..schemas.agent_tokens import AgentToken, CreateAgentToken, CreatedAgentToken

_ALL: Final = "/api/v1/agent-tokens"


def _token_json(row: AgentTokenRow) -> AgentToken:
    return AgentToken(
        id=row.uid,
        name=row.name,
        region=row.region,
        created_at=to_text(row.created_at),
        revoked_at=instant_text(row.revoked_at),
    )


async def list_agent_tokens(ask: Request) -> list[AgentToken]:
    async with ask.context.pool.transaction("list_agent_tokens", read_only=True) as tx:
        return [_token_json(row) for row in await select_agent_tokens(tx)]


async def create(ask: Request) -> CreatedAgentToken:
    return await make(ask, ask.body.name, ask.body.region)


async def make(ask: Request, name: str, region: str) -> CreatedAgentToken:
    token = token_from(TokenKind.AGENT, os.urandom(RANDOM_BYTES))
    async with ask.context.pool.transaction("create_agent_token") as tx:
        row = await create_agent_token(
            tx, ask.who, name, region, digest(token), ask.context.options.regions
        )
    return CreatedAgentToken(id=row.uid, name=row.name, region=row.region, token=token)


async def revoke(ask: Request) -> None:
    async with ask.context.pool.transaction("revoke_agent_token") as tx:
        await revoke_agent_token(tx, ask.who, ask.ids["tokenID"])


ROUTES: Final = (
    Route(
        method="GET",
        path=_ALL,
        action=REVOKE,
        handler=list_agent_tokens,
        summary="List agent tokens without secrets, including recently revoked ones.",
        tag="agent_tokens",
        answer=list[AgentToken],
    ),
    Route(
        method="POST",
        path=_ALL,
        action=CREATE,
        handler=create,
        summary="Create an agent token; its secret is returned once.",
        tag="agent_tokens",
        body=CreateAgentToken,
        answer=CreatedAgentToken,
        status=201,
        also=(409,),
    ),
    Route(
        method="DELETE",
        path=f"{_ALL}/{{tokenID}}",
        action=REVOKE,
        handler=revoke,
        summary="Revoke an agent token immediately.",
        tag="agent_tokens",
        status=204,
    ),
)
