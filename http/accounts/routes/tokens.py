"""Routes of an organization's API tokens. Only a create and a rotation return the secret."""

import os
from typing import Final

from msgspec import UnsetType

from ....storage.accounts.queries.api_tokens import select_tokens_of
from ....storage.accounts.rows import TokenRow
from ....storage.accounts.rules.access import Role
from ....storage.accounts.transactions.edit_tokens import (
    CREATE,
    DELETE,
    create_token,
    delete_token,
    rotate_token,
    update_token,
)
from ....storage.core.instant import to_text
from ....storage.core.token import RANDOM_BYTES, TokenKind, digest, token_from
from ...wire.route import Request, Route
from ...wire.schema import given, instant_text, known
from ...wire.scope_keys import org_of
from ...wire.time_params import instant_if_given
from ..schemas.tokens import (
    ApiToken,
    CreateApiToken,
    CreatedApiToken,
    RotateApiToken,
    UpdateApiToken,
)

_ALL: Final = "/api/v1/organizations/{orgID}/tokens"
_IN_ORG: Final = ("organization", "orgID")
# The prefix and four characters: enough to recognise a token, and 24 of its 256 bits.
_START: Final = len(TokenKind.API) + 4


def _token_json(row: TokenRow) -> ApiToken:
    return ApiToken(
        id=row.uid,
        org_id=row.org_uid,
        project_id=known(row.project_uid),
        name=row.name,
        role=Role(row.role),
        actions=row.actions,
        created_by=known(row.creator_uid),
        created_by_email=known(row.creator_email),
        last_used_at=instant_text(row.last_used_at),
        expires_at=instant_text(row.expires_at),
        rotated=row.is_rotated,
        start=known(row.start or None),
        created_at=to_text(row.created_at),
    )


async def list_tokens(ask: Request) -> list[ApiToken]:
    async with ask.context.pool.transaction("list_tokens", read_only=True) as tx:
        return [_token_json(row) for row in await select_tokens_of(tx, org_of(ask))]


async def create(ask: Request) -> CreatedApiToken:
    body = ask.body
    token = token_from(TokenKind.API, os.urandom(RANDOM_BYTES))
    async with ask.context.pool.transaction("create_token") as tx:
        row = await create_token(
            tx,
            ask.who,
            ask.ids["orgID"],
            body.name,
            body.role,
            given(body.project_id),
            given(body.actions),
            digest(token),
            token[:_START],
            instant_if_given("expires_at", given(body.expires_at)),
        )
    return CreatedApiToken(token=token, api_token=_token_json(row))


async def rotate(ask: Request) -> CreatedApiToken:
    token = token_from(TokenKind.API, os.urandom(RANDOM_BYTES))
    overlap = 86_400 if ask.body is None else ask.body.overlap_seconds
    async with ask.context.pool.transaction("rotate_token") as tx:
        row = await rotate_token(
            tx, ask.who, ask.ids["tokenID"], overlap, digest(token), token[:_START]
        )
    return CreatedApiToken(token=token, api_token=_token_json(row))


async def update(ask: Request) -> ApiToken:
    end = ask.body.expires_at
    if not isinstance(end, UnsetType):
        end = instant_if_given("expires_at", end)
    async with ask.context.pool.transaction("update_token") as tx:
        row = await update_token(
            tx, ask.who, ask.ids["tokenID"], given(ask.body.name), expires_at=end
        )
    return _token_json(row)


async def delete(ask: Request) -> None:
    async with ask.context.pool.transaction("delete_token") as tx:
        await delete_token(tx, ask.who, ask.ids["tokenID"])


ROUTES: Final = (
    Route(
        method="GET",
        path=_ALL,
        action=DELETE,
        scope=_IN_ORG,
        handler=list_tokens,
        summary="The API tokens of an organization, without their secrets.",
        tag="tokens",
        answer=list[ApiToken],
    ),
    Route(
        method="POST",
        path=_ALL,
        action=CREATE,
        scope=_IN_ORG,
        handler=create,
        summary="Create an API token; its secret is returned once. Tokens cannot create tokens.",
        tag="tokens",
        body=CreateApiToken,
        answer=CreatedApiToken,
        status=201,
    ),
    Route(
        method="POST",
        path="/api/v1/tokens/{tokenID}/rotate",
        action=CREATE,
        scope=("token", "tokenID"),
        handler=rotate,
        summary="Create the successor of an API token; the old token ends within at most 7 days.",
        tag="tokens",
        body=RotateApiToken,
        body_optional=True,
        answer=CreatedApiToken,
        status=201,
    ),
    Route(
        method="PATCH",
        path="/api/v1/tokens/{tokenID}",
        action=CREATE,
        scope=("token", "tokenID"),
        handler=update,
        summary="Change the name or the end of an API token. Its rights never change.",
        tag="tokens",
        body=UpdateApiToken,
        answer=ApiToken,
        also=(409,),
    ),
    Route(
        method="DELETE",
        path="/api/v1/tokens/{tokenID}",
        action=DELETE,
        scope=("token", "tokenID"),
        handler=delete,
        summary="Revoke an API token immediately.",
        tag="tokens",
        status=204,
    ),
)
