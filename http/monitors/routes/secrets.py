"""Secrets of a project. Editors write them and monitors use them. No route returns a value."""

from functools import partial
from typing import Final

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import to_text
from ....storage.engine.pools import Tx
from ....storage.monitors.queries.secret_list import ListedSecret, select_secrets
from ....storage.monitors.transactions.edit_secrets import (
    EDIT,
    create_secret,
    delete_secret,
    edit_secret,
)
from ...wire.route import Request, Route
from ...wire.schema import given
from ...wire.scope_keys import org_of, project_of
from ..schemas.secrets import (
    CreatedSecret,
    CreateSecretRequest,
    ProjectSecret,
    UpdateSecretRequest,
    UsedBy,
)

_ALL: Final = "/api/v1/projects/{projectID}/secrets"
_ONE: Final = f"{_ALL}/{{name}}"
_IN_PROJECT: Final = ("project", "projectID")


def _secret_json(row: ListedSecret) -> ProjectSecret:
    return ProjectSecret(
        id=row.uid,
        name=row.name,
        created_at=to_text(row.created_at),
        rotated_at=None if row.rotated_at is None else to_text(row.rotated_at),
        used_by=UsedBy(total=row.uses, file_managed=row.managed_uses),
    )


async def list_secrets(ask: Request) -> list[ProjectSecret]:
    async with ask.context.pool.transaction("list_secrets", read_only=True) as tx:
        return [_secret_json(row) for row in await select_secrets(tx, org_of(ask), project_of(ask))]


async def create(ask: Request) -> CreatedSecret:
    context, body = ask.context, ask.body
    async with context.pool.transaction("create_secret") as tx:
        row = await create_secret(
            tx, ask.who, ask.ids["projectID"], body.name, body.value, context.keyring
        )
    context.on_edit()
    return CreatedSecret(id=row.uid, name=row.name, created_at=to_text(row.created_at))


async def update(ask: Request) -> None:
    context, body = ask.context, ask.body

    async def edit(tx: Tx) -> None:
        await edit_secret(
            tx,
            ask.who,
            ask.ids["projectID"],
            ask.words["name"],
            given(body.name),
            given(body.value),
            context.keyring,
        )

    # A monitor can come to refer to a secret that is being renamed.
    await context.pool.transact("edit_secret", edit)
    context.on_edit()


async def delete(ask: Request) -> None:
    async with ask.context.pool.transaction("delete_secret") as tx:
        await delete_secret(tx, ask.who, ask.ids["projectID"], ask.words["name"])


_all: Final = partial(Route, path=_ALL, scope=_IN_PROJECT, tag="secrets")
_one: Final = partial(Route, path=_ONE, scope=_IN_PROJECT, tag="secrets")

ROUTES: Final = (
    _all(
        method="GET",
        action=Permission(Need.VIEWER),
        handler=list_secrets,
        summary="The project's secrets, by name, and how many monitors refer to each.",
        answer=list[ProjectSecret],
    ),
    _all(
        method="POST",
        action=EDIT,
        handler=create,
        summary="Store a secret; its value is never returned.",
        body=CreateSecretRequest,
        answer=CreatedSecret,
        status=201,
        also=(409,),
    ),
    _one(
        method="PATCH",
        action=EDIT,
        handler=update,
        summary="Replace a secret's value, or rename it, also in the monitors that refer to it.",
        body=UpdateSecretRequest,
        status=204,
        also=(409,),
    ),
    _one(
        method="DELETE",
        action=EDIT,
        handler=delete,
        summary="Delete a secret that no monitor refers to.",
        status=204,
        also=(409,),
    ),
)
